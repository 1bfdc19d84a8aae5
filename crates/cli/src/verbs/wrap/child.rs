//! Runs the client as a child process that has the terminal and receives the signals.

use std::ffi::{OsStr, OsString};
use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, Command};

use crate::exit::Failure;
use crate::key_handover;

/// Shells add this to the number of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// Runs a command in the foreground and returns its exit code.
pub(super) async fn run(
    name: &OsStr,
    args: impl Iterator<Item = OsString>,
    env: Vec<(String, String)>,
) -> Result<u8, Failure> {
    // Register before the child starts, so that no signal is missed.
    let mut signals = ChildSignals::new()?;
    let mut command = Command::new(name);
    for secret in key_handover::own_secrets() {
        command.env_remove(secret);
    }
    let spawned = command.args(args).envs(env).spawn();
    let mut child = spawned.map_err(|error| failed(name, &error))?;
    loop {
        tokio::select! {
            ended = child.wait() => return Ok(code(ended?)),
            signal = signals.next() => forward(&child, signal),
        }
    }
}

/// The output of a command with these arguments; none if it fails.
pub(super) fn output_of(name: &OsStr, args: &[&str]) -> Option<String> {
    let mut command = std::process::Command::new(name);
    for secret in key_handover::own_secrets() {
        command.env_remove(secret);
    }
    let output = command.args(args).stdin(Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

fn failed(name: &OsStr, error: &io::Error) -> Failure {
    let name = name.display();
    if error.kind() == io::ErrorKind::NotFound {
        return Failure::NotFound(format!("{name}: command not found"));
    }
    Failure::WithHint {
        message: format!("{name}: {error}"),
        hint: Some("the client must be an executable program".to_owned()),
    }
}

/// The exit code as a shell reports it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status
        .code()
        .or(signal.map(|signal: i32| BY_SIGNAL + signal));
    code.and_then(|code| u8::try_from(code & 0xff).ok())
        .unwrap_or(1)
}

/// Signals that must not end us before the child has ended.
#[cfg(unix)]
struct ChildSignals {
    interrupt: tokio::signal::unix::Signal,
    quit: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
}

/// A signal to forward.
#[cfg(unix)]
type ForwardedSignal = Option<rustix::process::Signal>;

#[cfg(unix)]
impl ChildSignals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> ForwardedSignal {
        use rustix::process::Signal;
        tokio::select! {
            // Keys typed at the terminal reach the child directly, because it is in the same
            // process group.
            _ = self.interrupt.recv() => None,
            _ = self.quit.recv() => None,
            _ = self.terminate.recv() => Some(Signal::TERM),
            _ = self.hang_up.recv() => Some(Signal::HUP),
        }
    }
}

#[cfg(unix)]
fn forward(child: &Child, signal: ForwardedSignal) {
    let id = child.id().and_then(|id| i32::try_from(id).ok());
    let id = id.and_then(rustix::process::Pid::from_raw);
    if let (Some(id), Some(signal)) = (id, signal) {
        // The child may have just ended.
        let _ = rustix::process::kill_process(id, signal);
    }
}

#[cfg(not(unix))]
struct ChildSignals;

#[cfg(not(unix))]
impl ChildSignals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(not(unix))]
fn forward(_: &Child, (): ()) {}
