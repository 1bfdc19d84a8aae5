//! What a client is run with, so that its requests come to the proxy.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use trimtab_proxy::Upstream;

/// What stands for the proxy's address in variables, arguments and files.
pub(super) const URL: &str = "{url}";
/// What stands for the folder with the temporary files.
pub(super) const FOLDER: &str = "{folder}";
/// Where addresses are that a client has of its own.
const REDIRECTED: &str = "/to";

/// What a client finds when it starts.
pub(super) struct Surroundings<'a> {
    /// The value of a variable; none if it is empty.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file.
    pub(super) read: &'a dyn Fn(&Path) -> Option<String>,
    /// What the client itself prints when it is run with these arguments.
    pub(super) ask: &'a dyn Fn(&[&str]) -> Option<String>,
    /// True if flags or settings of ours say where requests go.
    pub(super) has_upstreams: bool,
}

impl Surroundings<'_> {
    pub(super) fn is_set(&self, name: &str) -> bool {
        (self.variable)(name).is_some()
    }

    /// The folder that a variable names, else the one of this name in the user's home.
    pub(super) fn folder(&self, name: &str, in_home: &str) -> PathBuf {
        let home = || PathBuf::from((self.variable)("HOME").unwrap_or_default()).join(in_home);
        (self.variable)(name).map_or_else(home, PathBuf::from)
    }

    /// A file as JSON.
    pub(super) fn json(&self, path: &Path) -> Option<Value> {
        serde_json::from_str(&(self.read)(path)?).ok()
    }

    /// A file as TOML.
    pub(super) fn toml(&self, path: &Path) -> Option<Value> {
        toml::from_str(&(self.read)(path)?).ok()
    }
}

/// How a client is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Setup {
    /// Variables to set.
    pub(super) env: Vec<(String, String)>,
    /// Arguments to put before the user's own.
    pub(super) args: Vec<String>,
    /// The user's own arguments.
    pub(super) rest: Vec<OsString>,
    /// Temporary files, by their names.
    pub(super) files: Vec<(String, String)>,
    /// Where the proxy sends requests, where nothing else says so.
    pub(super) upstreams: Vec<Upstream>,
}

impl Setup {
    /// Sets a variable.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Adds arguments before the user's own.
    pub(super) fn pass<const N: usize>(&mut self, args: [&str; N]) {
        self.args.extend(args.map(str::to_owned));
    }

    /// The address at the proxy that stands for `base`, which the client has of its own;
    /// `from` says who set it.
    pub(super) fn redirect(&mut self, around: &Surroundings<'_>, base: &str, from: &str) -> String {
        if around.has_upstreams {
            return format!("{URL}{}", version(base));
        }
        let known = self.upstreams.iter().find(|known| known.url == base);
        if let Some(known) = known.filter(|known| !known.prefix.is_empty()) {
            return format!("{URL}{}", known.prefix);
        }
        let prefix = format!("{REDIRECTED}/{}", self.upstreams.len() + 1);
        self.upstreams.push(Upstream {
            prefix: prefix.clone(),
            ..Upstream::new(from, base)
        });
        format!("{URL}{prefix}")
    }

    /// Redirects every address that stands in a field of this name, however deep; gives their
    /// number.
    pub(super) fn redirect_all(
        &mut self,
        around: &Surroundings<'_>,
        value: &mut Value,
        (field, from): (&str, &str),
    ) -> usize {
        match value {
            Value::Array(list) => {
                let inside = list.iter_mut();
                inside
                    .map(|one| self.redirect_all(around, one, (field, from)))
                    .sum()
            }
            Value::Object(fields) => {
                let inside = fields.iter_mut();
                inside
                    .map(|(name, value)| match value {
                        Value::String(base) if name == field && is_address(base) => {
                            *base = self.redirect(around, base, from);
                            1
                        }
                        other => self.redirect_all(around, other, (field, from)),
                    })
                    .sum()
            }
            _ => 0,
        }
    }

    /// The same for a proxy at `url`, with its files written. They are there as long as the
    /// folder is.
    pub(super) fn at(mut self, url: &str) -> io::Result<(Self, Option<TempDir>)> {
        let folder = (!self.files.is_empty()).then(private_folder).transpose()?;
        let path = folder
            .as_ref()
            .map(|folder| folder.path().display().to_string());
        let path = path.unwrap_or_else(|| FOLDER.to_owned());
        let fill = |text: &mut String| *text = text.replace(URL, url).replace(FOLDER, &path);
        self.env.iter_mut().for_each(|(_, value)| fill(value));
        self.args.iter_mut().for_each(fill);
        self.files.iter_mut().for_each(|(_, text)| fill(text));
        if let Some(folder) = &folder {
            for (name, text) in &self.files {
                std::fs::write(folder.path().join(name), text)?;
            }
        }
        Ok((self, folder))
    }
}

/// A temporary folder that nobody else can look into: copies of settings may hold keys.
fn private_folder() -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o700));
    }
    builder.prefix("trimtab-").tempdir()
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// The version at the end of an address, with its slash: clients put their paths behind it.
fn version(base: &str) -> String {
    let last = base.trim_end_matches('/').rsplit('/').next();
    let last = last.unwrap_or_default();
    let number = last.strip_prefix('v').unwrap_or_default();
    if number.starts_with(|first: char| first.is_ascii_digit()) {
        format!("/{last}")
    } else {
        String::new()
    }
}
