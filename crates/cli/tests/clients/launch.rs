//! Runs the commands of a client with a time limit, and leaves no process behind.

use std::fs::{File, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::install::commands;
use crate::setup::{Launch, RunPlace};

/// The longest time that one command of a client may take.
const LIMIT: Duration = Duration::from_mins(4);
/// How often its end is looked for.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// How the commands of a client ended.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    /// What went wrong with one of them: the exit code, or that it took too long.
    pub(crate) trouble: Option<String>,
    /// All that they wrote to standard output.
    pub(crate) stdout: String,
}

/// Runs the commands one after the other until one fails; what they write goes to `records`.
pub(crate) fn run_all(launches: &[Launch], place: &RunPlace, records: &Path) -> Ended {
    let mut ended = Ended::default();
    for launch in launches {
        ended.trouble = run_one(launch, place, records);
        if ended.trouble.is_some() {
            break;
        }
    }
    end_leftovers(&place.home);
    let stdout = std::fs::read(records.join("stdout.txt")).unwrap_or_default();
    ended.stdout = String::from_utf8_lossy(&stdout).into_owned();
    ended
}

fn run_one(launch: &Launch, place: &RunPlace, records: &Path) -> Option<String> {
    let mut child = match start(launch, place, records) {
        Ok(child) => child,
        Err(error) => return Some(format!("it cannot be started: {error}")),
    };
    let status = wait(&mut child);
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // What it started and left behind; usually there is nothing.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
    match status {
        Some(status) if status.success() => None,
        Some(status) => Some(format!("it ended with {status}")),
        None => Some(format!("it took longer than {} s", LIMIT.as_secs())),
    }
}

fn start(launch: &Launch, place: &RunPlace, records: &Path) -> std::io::Result<Child> {
    let record = |name: &str| -> std::io::Result<File> {
        let path = records.join(name);
        OpenOptions::new().create(true).append(true).open(path)
    };
    let home = |path: &str| place.home.join(path);
    let mut path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(commands) = commands() {
        let mut all = vec![commands];
        all.extend(std::env::split_paths(&path));
        path = std::env::join_paths(all).unwrap_or(path);
    }
    Command::new(&launch.program)
        .args(&launch.args)
        .current_dir(&place.folder)
        .env_clear()
        .env("PATH", path)
        .env("HOME", &place.home)
        .env("XDG_CONFIG_HOME", home(".config"))
        .env("XDG_DATA_HOME", home(".local/share"))
        .env("XDG_CACHE_HOME", home(".cache"))
        .env("XDG_STATE_HOME", home(".local/state"))
        .env("LANG", "C.UTF-8")
        .env("TERM", "dumb")
        .env("CI", "1")
        .env("NO_COLOR", "1")
        .env("NO_PROXY", "127.0.0.1,localhost")
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(record("stdout.txt")?)
        .stderr(record("stderr.txt")?)
        .process_group(0)
        .spawn()
}

/// Waits for the end; none if it takes too long.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let until = Instant::now() + LIMIT;
    while Instant::now() < until {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => std::thread::sleep(LOOKS_EVERY),
            Err(_) => return None,
        }
    }
    None
}

/// Ends what left its process group but lives in the home of this run, such as the background
/// service that some clients start.
fn end_leftovers(home: &Path) {
    let mark = format!("HOME={}\0", home.display());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in processes {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let name = process.file_name();
        let id = name.to_str().and_then(|name| name.parse().ok());
        if memchr::memmem::find(&environment, mark.as_bytes()).is_some()
            && let Some(id) = id.and_then(Pid::from_raw)
        {
            let _ = kill_process(id, Signal::KILL);
        }
    }
}
