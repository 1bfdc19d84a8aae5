//! The environment, arguments and files that direct a client's requests to the proxy.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use trimtab_proxy::UpstreamConfig;

/// The placeholder for the proxy's address.
pub(super) const URL: &str = "{url}";
/// The placeholder for the folder of temporary files.
pub(super) const FOLDER: &str = "{folder}";
/// The path prefix at the proxy for addresses from a client's settings.
const REDIRECTED: &str = "/to";

/// The environment of the client, behind functions so that tests can replace it.
pub(super) struct ClientSurroundings<'a> {
    /// The value of a variable; none if it is empty.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    /// The text of a file.
    pub(super) read: &'a dyn Fn(&Path) -> Option<String>,
    /// The output of the client when run with these arguments.
    pub(super) ask: &'a dyn Fn(&[&str]) -> Option<String>,
    /// True if our flags or settings name upstreams.
    pub(super) has_upstreams: bool,
}

impl ClientSurroundings<'_> {
    pub(super) fn is_set(&self, name: &str) -> bool {
        (self.variable)(name).is_some()
    }

    /// The folder that a variable names, else this folder in the user's home.
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

/// How to run a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientSetup {
    /// Variables to set.
    pub(super) env: Vec<(String, String)>,
    /// Arguments to insert before the user's.
    pub(super) args: Vec<String>,
    /// The user's own arguments.
    pub(super) user_args: Vec<OsString>,
    /// Temporary files, by name.
    pub(super) files: Vec<(String, String)>,
    /// Upstreams of the proxy, unless flags or settings name others.
    pub(super) upstreams: Vec<UpstreamConfig>,
}

impl ClientSetup {
    /// Sets a variable.
    pub(super) fn set(&mut self, name: &str, value: &str) {
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Inserts arguments before the user's.
    pub(super) fn pass<const N: usize>(&mut self, args: [&str; N]) {
        self.args.extend(args.map(str::to_owned));
    }

    /// The address at the proxy that replaces `base`, an address from the client's settings. `from`
    /// names the source of the setting.
    pub(super) fn redirect(
        &mut self,
        surroundings: &ClientSurroundings<'_>,
        base: &str,
        from: &str,
    ) -> String {
        // Our own settings decide where requests go; keep only the version, which clients expect.
        if surroundings.has_upstreams {
            return format!("{URL}{}", version(base));
        }
        // Several models often share one server.
        let known = self.upstreams.iter().find(|known| known.url == base);
        if let Some(known) = known.filter(|known| !known.prefix.is_empty()) {
            return format!("{URL}{}", known.prefix);
        }
        let prefix = format!("{REDIRECTED}/{}", self.upstreams.len() + 1);
        self.upstreams.push(UpstreamConfig {
            prefix: prefix.clone(),
            ..UpstreamConfig::new(from, base)
        });
        format!("{URL}{prefix}")
    }

    /// Redirects the address in every field of this name, at any depth. Returns their number.
    pub(super) fn redirect_all(
        &mut self,
        surroundings: &ClientSurroundings<'_>,
        value: &mut Value,
        (field, from): (&str, &str),
    ) -> usize {
        match value {
            Value::Array(list) => {
                let inside = list.iter_mut();
                inside
                    .map(|one| self.redirect_all(surroundings, one, (field, from)))
                    .sum()
            }
            Value::Object(fields) => {
                let inside = fields.iter_mut();
                inside
                    .map(|(name, value)| match value {
                        Value::String(base) if name == field && is_address(base) => {
                            *base = self.redirect(surroundings, base, from);
                            1
                        }
                        other => self.redirect_all(surroundings, other, (field, from)),
                    })
                    .sum()
            }
            _ => 0,
        }
    }

    /// Fills in the proxy's address and writes the files, which exist as long as the folder.
    pub(super) fn at(mut self, url: &str) -> io::Result<(Self, Option<TempDir>)> {
        let folder = (!self.files.is_empty()).then(private_folder).transpose()?;
        let path = folder
            .as_ref()
            .map(|folder| folder.path().display().to_string());
        let path = path.unwrap_or_else(|| FOLDER.to_owned());
        // The address is known only now, because the proxy listens on a free port.
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

/// A private temporary folder, because copies of settings may contain keys.
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

/// The version at the end of an address, with its slash, because clients append their paths to it.
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
