//! Real clients: which ones to run, and their environment.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::install::Package;
use crate::run::{say, trimtab};

/// The longest time that a client may take.
const LIMIT: Duration = Duration::from_mins(3);
/// How often its end is looked for.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

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
    // Some clients take the folder from here.
    command.env("PWD", folder);
    command
}

/// Runs a client to its end, which must come in time, and ends what it leaves behind. Services
/// that it starts keep what it writes open, so that goes to files.
pub(crate) fn run_client(mut command: Command) -> Output {
    let records = tempfile::tempdir().unwrap();
    let record = |name: &str| File::create(records.path().join(name)).unwrap();
    command.stdout(record("stdout")).stderr(record("stderr"));
    let mut child = command.process_group(0).spawn().unwrap();
    let until = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if Instant::now() > until => break None,
            None => std::thread::sleep(LOOKS_EVERY),
        }
    };
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    let said = |name: &str| std::fs::read(records.path().join(name)).unwrap();
    let (stdout, stderr) = (said("stdout"), said("stderr"));
    let Some(status) = status else {
        let said = [&stdout[..], &stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        panic!("{command:?} takes longer than {LIMIT:?}\n{said}");
    };
    Output {
        status,
        stdout,
        stderr,
    }
}

/// Writes a file with its folders.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}
