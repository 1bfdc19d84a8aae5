//! A client: how it is installed, and how it is run without a user.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::install::{NEWER_NODE, Package};

/// A client in one of the ways in which it is used.
pub(crate) struct ClientSetup {
    /// What it is called in the table, and to choose it.
    pub(crate) name: &'static str,
    pub(crate) package: Package,
    /// Writes its settings and says how to start it: one command after the other.
    pub(crate) launch: fn(&RunPlace) -> Vec<Launch>,
    /// How to continue the session in a new process, if the client can.
    pub(crate) resume: Option<fn(&RunPlace) -> Launch>,
    /// True if it is run under all presets, and not only under some of them.
    pub(crate) is_under_all_presets: bool,
}

/// Where one run of a client takes place.
pub(crate) struct RunPlace {
    /// The base address of the provider or of the proxy, without `/v1`.
    pub(crate) url: String,
    /// The folder that the client works in.
    pub(crate) folder: PathBuf,
    /// The client's home, which begins empty.
    pub(crate) home: PathBuf,
    /// Where the client was installed.
    pub(crate) installed: PathBuf,
}

/// A command and its own environment.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(String, String)>,
}

impl ClientSetup {
    pub(crate) const fn new(
        name: &'static str,
        package: Package,
        launch: fn(&RunPlace) -> Vec<Launch>,
    ) -> Self {
        Self {
            name,
            package,
            launch,
            resume: None,
            is_under_all_presets: false,
        }
    }

    /// The same client, which continues a session by this command.
    pub(crate) const fn resumed_by(mut self, resume: fn(&RunPlace) -> Launch) -> Self {
        self.resume = Some(resume);
        self
    }

    /// The same client, under all presets.
    pub(crate) const fn under_all_presets(mut self) -> Self {
        self.is_under_all_presets = true;
        self
    }
}

impl RunPlace {
    /// The address with `/v1`, as most clients want it.
    pub(crate) fn v1(&self) -> String {
        format!("{}/v1", self.url)
    }

    /// Writes a file of settings under the home.
    pub(crate) fn write(&self, path: &str, text: impl AsRef<str>) -> PathBuf {
        let path = self.home.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text.as_ref()).unwrap();
        path
    }

    /// Starts a program that npm installed.
    pub(crate) fn npm<'a>(&self, program: &str, args: impl IntoIterator<Item = &'a str>) -> Launch {
        Launch::new(self.installed.join("node_modules/.bin").join(program), args)
    }

    /// Starts one of our own Python programs; all of them take the same arguments.
    pub(crate) fn python(&self, program: &str, mode: &str) -> Vec<Launch> {
        vec![self.program(self.installed.join("bin/python"), program, mode)]
    }

    /// Starts one of our own programs for Node.
    pub(crate) fn node(&self, program: &str, mode: &str) -> Vec<Launch> {
        let node = NEWER_NODE
            .installed()
            .unwrap()
            .join("node_modules/.bin/node");
        let mut launch = self.program(node, program, mode);
        launch.args.push(self.installed.clone().into());
        vec![launch]
    }

    fn program(&self, runs: PathBuf, program: &str, mode: &str) -> Launch {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/programs");
        let mut launch = Launch::new(runs, []);
        launch.args = vec![
            programs.join(program).into(),
            self.url.clone().into(),
            crate::scenario::TASK.into(),
            mode.into(),
        ];
        // Python programs leave no compiled files beside their source, and ask nobody for prices.
        launch.with_env([
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
        ])
    }
}

impl Launch {
    pub(crate) fn new<'a>(program: PathBuf, args: impl IntoIterator<Item = &'a str>) -> Self {
        Self {
            program,
            args: args.into_iter().map(OsString::from).collect(),
            env: Vec::new(),
        }
    }

    /// The same with these variables.
    pub(crate) fn with_env<'a>(
        mut self,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        self.env.extend(variables.into_iter().map(owned));
        self
    }
}
