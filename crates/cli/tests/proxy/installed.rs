//! Real clients, installed once from the package registries into a folder of the user's cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{cache, say, texts, trimtab};

/// Node, which the clients need in a newer version than most systems have.
const NODE: &str = "node@24";

/// True if tests with the real client `name` are wanted; says so if they are skipped.
/// `TRIMTAB_CLIENTS` is `all`, or the names of some clients with commas between them.
pub(crate) fn wants(name: &str) -> bool {
    let clients = std::env::var("TRIMTAB_CLIENTS").unwrap_or_default();
    let is_wanted = clients == "all" || clients.split(',').any(|one| one == name);
    if !is_wanted {
        say(&format!(
            "SKIPPED {name}: set TRIMTAB_CLIENTS=all, or run ./test --clients"
        ));
    }
    is_wanted
}

/// The folder with the command of a client, which is installed if it is not there.
pub(crate) fn installed(package: &str, command: &str) -> PathBuf {
    npm_folder(command, &[package], command)
}

/// The folder with Node.
pub(crate) fn node() -> PathBuf {
    npm_folder("node", &[NODE], "node")
}

fn npm_folder(name: &str, packages: &[&str], command: &str) -> PathBuf {
    let folder = cache().unwrap().join("trimtab/wrap-clients").join(name);
    let bin = folder.join("node_modules/.bin");
    if !bin.join(command).exists() {
        std::fs::create_dir_all(&folder).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"])
            .args(packages)
            .current_dir(&folder);
        let output = npm.output().unwrap();
        assert!(output.status.success(), "{name}: {}", texts(&output).1);
    }
    bin
}

/// `PATH` with these folders in front.
pub(crate) fn path_with(folders: &[PathBuf]) -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    let folders = folders.iter().map(|folder| folder.display().to_string());
    folders.chain([path]).collect::<Vec<_>>().join(":")
}

/// A command in `folder`, with the environment of every run of ours and no input.
pub(crate) fn command_in(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, value) in trimtab(folder, &[]).get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(folder).stdin(Stdio::null());
    command
}

/// Writes a file with its folders.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
