//! Runs of real clients: which are wanted, and in what environment they run.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::install::Package;
use crate::run::{say, trimtab};

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

/// `PATH` with the command of a client, which is installed if it is not there, and with Node.
pub(crate) fn path_with_client(package: &'static str, command: &'static str) -> String {
    let installed = Package::Npm { package, command }.installed();
    let commands = installed.unwrap().join("node_modules/.bin");
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{}:{path}", commands.display())
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
