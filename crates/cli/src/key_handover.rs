//! Hides API keys and the credentials of the store from the commands that a model runs.
//!
//! Children can read the initial environment of their parent in `/proc/ID/environ` for as long as
//! it runs. A verb that lets a model run commands therefore re-executes itself without keys in its
//! environment and receives them through a pipe that is read once. After that, other processes of
//! the same user cannot inspect the process.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::OFlags;
use rustix::io::FdFlags;
use trimtab::store::ServerVariables;
use trimtab_agent::tools::CommandEnvironment;

use crate::exit::Failure;

/// Names the file descriptor of the pipe for the re-executed process.
const HANDOVER: &str = "TRIMTAB_HANDOVER";
/// The prefix of our own variables.
const OWN: &str = "TRIMTAB_";
/// The folder that lists the open files of a process.
const OPEN_FILES: &str = "/dev/fd";
/// The keys that are passed through the pipe.
const KEYS: [&str; 2] = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];
/// The maximum size of all keys. A pipe usually buffers this much without a reader.
const MOST_BYTES: usize = 16 << 10;

/// Variables that we need ourselves, in addition to `TRIMTAB_*` and the variables of commands.
const NEEDED: [&str; 13] = [
    "ALL_PROXY",
    "ANTHROPIC_BASE_URL",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "LESS",
    "LESSCHARSET",
    "OPENAI_BASE_URL",
    "PAGER",
    "TERM",
    "TERM_PROGRAM",
];

/// The keys that were received through the pipe, with their variables.
static HELD: OnceLock<Vec<(String, String)>> = OnceLock::new();

/// The key in the environment variable `name`, or the key received for it.
pub fn key(name: &str) -> Option<String> {
    let held = HELD.get().into_iter().flatten();
    let mut held = held.filter(|(known, _)| known == name);
    let key = held.next().map(|(_, key)| key.clone());
    let key = key.or_else(|| std::env::var(name).ok());
    key.filter(|key| !key.trim().is_empty())
}

/// The variables that say how to reach the store, from the pipe and from the environment.
pub fn server_variables() -> ServerVariables {
    let held = HELD.get().into_iter().flatten().cloned();
    let of_process = ServerVariables::of_process();
    let of_process = of_process.iter();
    let of_process = of_process.map(|(name, value)| (name.to_owned(), value.to_owned()));
    // The first value of a name counts. Those of the pipe are the ones that the user set.
    held.chain(of_process).collect()
}

/// Moves the keys out of reach of commands, which run with `environment`. Call this before printing
/// or reading anything, because the process may re-execute itself.
pub fn protect_keys(environment: &CommandEnvironment) -> Result<(), Failure> {
    match std::env::var(HANDOVER) {
        Ok(number) => {
            let held = receive(&number).map_err(|error| Failure::WithHint {
                message: format!("cannot pass the keys to the new process: {error}"),
                hint: Some(format!("{HANDOVER} is for internal use: unset it")),
            })?;
            // Cannot fail: this is the only place that sets it.
            let _ = HELD.set(held);
        }
        // Without `/dev/fd` the pipe cannot be reopened. The keys then stay in our environment, but
        // commands still get a clean one.
        Err(_) if !Path::new(OPEN_FILES).exists() => {}
        Err(_) => reexecute(environment)?,
    }
    seal();
    Ok(())
}

/// Re-executes this program without keys in its environment. Returns only on failure.
fn reexecute(environment: &CommandEnvironment) -> Result<(), Failure> {
    let servers = ServerVariables::of_process();
    let keys = KEYS
        .into_iter()
        .filter_map(|name| Some((name, std::env::var(name).ok()?)));
    let servers = servers.iter().map(|(name, value)| (name, value.to_owned()));
    let keys: Vec<(&str, String)> = keys.chain(servers).collect();
    let names: Vec<&str> = keys.iter().map(|(name, _)| *name).collect();
    let keys = serde_json::to_vec(&keys).map_err(io::Error::other)?;
    let (reader, writer) = io::pipe()?;
    if keys.len() > MOST_BYTES || write_at_once(writer, &keys).is_err() {
        return Err(Failure::input(
            format!("the values of {} are too long", names.join(", ")),
            "set them to valid keys, or unset those that are not needed",
        ));
    }
    // Clear close-on-exec, so that the new process inherits the reading end.
    rustix::io::fcntl_setfd(&reader, FdFlags::empty()).map_err(io::Error::from)?;
    let mut arguments = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(name) = arguments.next() {
        // Keep `argv[0]`, which the user sees in `ps`.
        command.arg0(name);
    }
    let kept = std::env::vars_os().filter(|(name, value)| is_kept(name, value, environment));
    let kept: Vec<(OsString, OsString)> = kept.collect();
    let error = command
        .args(arguments)
        .env_clear()
        .envs(kept)
        .env(HANDOVER, reader.as_raw_fd().to_string())
        .exec();
    Err(Failure::WithHint {
        message: format!("cannot restart with a clean environment: {error}"),
        hint: Some("the program must be an executable file".to_owned()),
    })
}

/// Writes to a pipe that nobody reads until `exec`. An error if its buffer is too small, instead of
/// waiting forever.
fn write_at_once(mut writer: io::PipeWriter, bytes: &[u8]) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(&writer)?;
    rustix::fs::fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
    writer.write_all(bytes)
}

/// True for variables to keep in our environment. None of them is a key.
fn is_kept(name: &OsStr, value: &OsStr, environment: &CommandEnvironment) -> bool {
    let Some(text) = name.to_str() else {
        return false;
    };
    let is_own = text.starts_with(OWN) && !has_secret(text);
    // Proxy variables are written in capitals or in lower case.
    let is_needed = NEEDED.contains(&text.to_ascii_uppercase().as_str());
    is_own || is_needed || environment.has(name, value)
}

/// Our own variables that hold secrets. Clients that we start must not inherit them.
pub fn own_secrets() -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    let is_own_secret = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with(OWN) && has_secret(&name)
    };
    names.filter(is_own_secret).collect()
}

/// True if the name of a variable suggests a secret.
fn has_secret(name: &str) -> bool {
    let words = ["KEY", "PASSWORD", "SECRET", "TOKEN"];
    words.iter().any(|word| name.contains(word))
}

/// Reads the keys from the pipe, which is empty afterwards.
fn receive(number: &str) -> io::Result<Vec<(String, String)>> {
    let number: u32 = number.parse().map_err(io::Error::other)?;
    // Opened by name, because adopting the inherited descriptor would need unsafe code.
    let pipe = File::open(Path::new(OPEN_FILES).join(number.to_string()))?;
    let mut bytes = Vec::new();
    pipe.take(MOST_BYTES as u64).read_to_end(&mut bytes)?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// Prevents other processes of the same user from inspecting this one.
#[cfg(target_os = "linux")]
fn seal() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    use rustix::thread::{CapabilitySet, remove_capability_from_bounding_set};

    // If this fails, the keys are still not in the environment.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    // A command of root could use this capability to inspect us anyway. Other users do not have it.
    let _ = remove_capability_from_bounding_set(CapabilitySet::SYS_PTRACE);
}

#[cfg(not(target_os = "linux"))]
fn seal() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_kept() {
        let environment = CommandEnvironment::new(["MY_SETTING"]).unwrap();
        let is_kept = |name: &str| is_kept(name.as_ref(), "value".as_ref(), &environment);
        for name in [
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "TRIMTAB_PROXY_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "DATABASE_URL",
        ] {
            assert!(!is_kept(name), "{name}");
        }
        for name in ["PATH", "TRIMTAB_STORE", "https_proxy", "TERM", "MY_SETTING"] {
            assert!(is_kept(name), "{name}");
        }
    }
}
