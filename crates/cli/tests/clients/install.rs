//! Clients from the package registries, installed once into folders of the user's cache.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use crate::run::{cache, texts};

const NODE_PACKAGE: &str = "node@24";

/// The folder in which all programs that npm installs share one Node.
const NPM_FOLDER: &str = "clients";

/// One installation at a time: npm and pip do not lock their folders.
static INSTALLING: Mutex<()> = Mutex::new(());

/// What is installed for a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Package {
    /// A program from npm: the package, and the command that it brings.
    Npm {
        package: &'static str,
        command: &'static str,
    },
    /// Libraries from npm, in a folder of their own, that one of our programs uses.
    NodeLibraries {
        folder: &'static str,
        packages: &'static [&'static str],
    },
    /// Libraries for Python, in an environment of their own: the oldest Python 3 that they run
    /// on, the packages, and the modules that they bring.
    Python {
        folder: &'static str,
        minor: u32,
        packages: &'static [&'static str],
        modules: &'static [&'static str],
    },
}

/// Most clients need a newer Node than systems have, and npm installs older versions of clients
/// where it runs on an older Node.
pub(crate) const NEWER_NODE: Package = Package::npm(NODE_PACKAGE, "node");
/// The SDKs of the providers for Python.
pub(crate) const PYTHON_SDKS: Package = Package::Python {
    folder: "sdk-venv",
    minor: 9,
    packages: &["openai", "anthropic"],
    modules: &["openai", "anthropic"],
};
/// The SDKs of the providers for Node.
pub(crate) const NODE_SDKS: Package = Package::NodeLibraries {
    folder: "sdk-node",
    packages: &["openai", "@anthropic-ai/sdk"],
};

impl Package {
    /// The command that a package of npm brings.
    pub(crate) const fn npm(package: &'static str, command: &'static str) -> Self {
        Self::Npm { package, command }
    }

    /// Installs what is not there yet; the folder in which it is, or why it cannot be had.
    pub(crate) fn installed(self) -> Result<PathBuf, String> {
        let _one = INSTALLING.lock().map_err(|error| error.to_string())?;
        let cache = cache().ok_or("there is no folder for what can be made again")?;
        let root = cache.join("trimtab");
        match self {
            Self::Npm { package, command } => npm_program(&root.join(NPM_FOLDER), package, command),
            Self::NodeLibraries { folder, packages } => {
                node_libraries(&root.join(folder), packages)
            }
            Self::Python {
                folder,
                minor,
                packages,
                modules,
            } => python(&root.join(folder), minor, packages, modules),
        }
    }
}

/// The folder of the commands that npm installs, Node among them.
pub(crate) fn commands() -> Option<PathBuf> {
    let cache = cache()?;
    Some(
        cache
            .join("trimtab")
            .join(NPM_FOLDER)
            .join("node_modules/.bin"),
    )
}

fn npm_program(folder: &Path, package: &str, command: &str) -> Result<PathBuf, String> {
    let bin = folder.join("node_modules/.bin");
    if !bin.join("node").exists() {
        npm(folder, &[NODE_PACKAGE])?;
    }
    if !bin.join(command).exists() {
        npm(folder, &[package])?;
    }
    if !bin.join(command).exists() {
        return Err(format!("{package} brings no command {command}"));
    }
    Ok(folder.to_owned())
}

fn node_libraries(folder: &Path, packages: &[&str]) -> Result<PathBuf, String> {
    let is_there = |package: &&str| folder.join("node_modules").join(package).exists();
    if !packages.iter().all(is_there) {
        npm(folder, packages)?;
    }
    Ok(folder.to_owned())
}

fn npm(folder: &Path, packages: &[&str]) -> Result<(), String> {
    std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund"])
        .args(packages);
    if let Some(commands) = commands() {
        let path = std::env::var("PATH").unwrap_or_default();
        npm.env("PATH", format!("{}:{path}", commands.display()));
    }
    done(npm.current_dir(folder))
}

fn python(
    folder: &Path,
    minor: u32,
    packages: &[&str],
    modules: &[&str],
) -> Result<PathBuf, String> {
    let python = folder.join("bin/python");
    // Finds the modules without running them, which takes some of them seconds.
    let find = "import sys, importlib.util as util; \
                sys.exit(any(util.find_spec(name) is None for name in sys.argv[1:]))";
    let ready = || done(Command::new(&python).args(["-c", find]).args(modules));
    if ready().is_err() {
        let system = system_python(minor)?;
        done(Command::new(system).args(["-m", "venv"]).arg(folder))?;
        let pip = |what: &[&str]| {
            let mut pip = Command::new(&python);
            done(pip.args(["-m", "pip", "install", "--quiet"]).args(what))
        };
        // An old pip takes many minutes to resolve what a new one does in one.
        pip(&["--upgrade", "pip"])?;
        pip(packages)?;
        ready()?;
    }
    Ok(folder.to_owned())
}

/// A Python 3 that is new enough: the plain one, a numbered one, or one of pyenv.
fn system_python(minor: u32) -> Result<PathBuf, String> {
    let mut names: Vec<PathBuf> = vec!["python3".into()];
    names.extend((minor..minor + 4).map(|minor| format!("python3.{minor}").into()));
    let pyenv = std::env::var_os("HOME").map(|home| Path::new(&home).join(".pyenv/versions"));
    let versions = pyenv.and_then(|folder| std::fs::read_dir(folder).ok());
    let versions = versions.into_iter().flatten().flatten();
    names.extend(versions.map(|version| version.path().join("bin/python3")));
    let test = format!("import sys; sys.exit(sys.version_info < (3, {minor}))");
    let is_new = |name: &PathBuf| done(Command::new(name).args(["-c", &test])).is_ok();
    let found = names.into_iter().find(is_new);
    found.ok_or_else(|| format!("there is no Python 3.{minor} or newer"))
}

/// Runs a command to its end, or says why that did not work.
fn done(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let (_, stderr) = texts(&output);
    let line = stderr.lines().rfind(|line| !line.trim().is_empty());
    Err(format!("{program} failed: {}", line.unwrap_or_default()))
}
