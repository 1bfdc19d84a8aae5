//! Adds the hook to the settings of a client, and removes it.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::json_file::{add, remove};
use super::{HookClient, HookFileArgs};
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::out_file;
use crate::ui::Terminal;
use crate::ui::visible::visible;
use crate::verbs::chat::diff::{DiffLine, diff};

/// The list of hooks that run after a tool.
const HOOKS: [&str; 2] = ["hooks", "PostToolUse"];
/// The end of the command that the hook runs.
const COMMAND: &str = "hook claude";
/// How long the client waits for the hook, in seconds. Outputs of many MB take less than one
/// second.
const TIMEOUT: u64 = 30;
/// How long to wait for another edit of the same settings.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// Adds the hook.
pub(super) fn install(
    args: &HookFileArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let command = format!("{} {COMMAND}", quoted(&std::env::current_exe()?));
    let hook = json!({"matcher": "*", "hooks": [
        {"type": "command", "command": command, "timeout": TIMEOUT},
    ]});
    edit(args, common, terminal, |before| {
        // The path of this program may have changed since the hook was installed.
        let hook = hook.to_string();
        let is_old = |entry: &str| is_ours(entry) && entry != hook;
        let text = remove(before, &HOOKS, &is_old)?;
        if text.contains(&hook) {
            return Ok(text);
        }
        add(&text, &HOOKS, &hook)
    })
}

/// Removes the hook.
pub(super) fn uninstall(
    args: &HookFileArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    edit(args, common, terminal, |before| {
        remove(before, &HOOKS, &is_ours)
    })
}

/// True for an entry whose only command is ours.
fn is_ours(entry: &str) -> bool {
    let entry: Value = serde_json::from_str(entry).unwrap_or_default();
    let hooks = entry.get("hooks").and_then(Value::as_array);
    let is_our_command = |hook: &Value| {
        let command = hook.get("command").and_then(Value::as_str);
        command.is_some_and(|command| command.ends_with(COMMAND) && command.contains("trimtab"))
    };
    hooks.is_some_and(|hooks| !hooks.is_empty() && hooks.iter().all(is_our_command))
}

fn edit(
    args: &HookFileArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
    change: impl FnOnce(&str) -> serde_json::Result<String>,
) -> Result<(), Failure> {
    let path = settings_file(args)?;
    let _locked = if args.yes {
        lock(&path).map_err(|error| unusable(&path, "lock", &error))?
    } else {
        None
    };
    let before = read(&path).map_err(|error| unusable(&path, "read", &error))?;
    let settings = if before.trim().is_empty() {
        "{}\n"
    } else {
        before.as_str()
    };
    let after = change(settings).map_err(|error| {
        let hint = "correct the file, or name another one with --file";
        Failure::input(format!("{}: {error}", path.display()), hint)
    })?;
    let differs = after != settings;
    if differs && !common.json {
        print_difference(&before, &after, terminal)?;
    }
    let backup = if differs && args.yes {
        write(&path, &before, &after).map_err(|error| unusable(&path, "write", &error))?
    } else {
        None
    };
    let edit = FileEdit {
        path,
        differs,
        is_written: differs && args.yes,
        backup,
    };
    edit.report(common, terminal)
}

fn unusable(path: &Path, verb: &str, error: &io::Error) -> Failure {
    Failure::WithHint {
        message: format!("{}: cannot {verb}: {error}", path.display()),
        hint: Some("name another settings file with --file".to_owned()),
    }
}

/// The result of editing a settings file.
struct FileEdit {
    path: PathBuf,
    differs: bool,
    is_written: bool,
    /// The copy of the old file, if there was one.
    backup: Option<PathBuf>,
}

impl FileEdit {
    fn report(&self, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
        if common.json {
            let report = json!({
                "file": self.path, "changes": self.differs, "written": self.is_written,
                "backup": self.backup,
            });
            return Ok(terminal.json(&report)?);
        }
        let name = self.path.display();
        terminal.note(&match (self.differs, self.is_written, &self.backup) {
            (false, ..) => format!("{name} needs no change"),
            (true, false, _) => format!("{name} was not changed\nhint: --yes writes it"),
            (true, true, None) => format!("wrote {name}"),
            (true, true, Some(backup)) => {
                format!("wrote {name}; the old file is {}", backup.display())
            }
        });
        Ok(())
    }
}

/// Keeps another edit of these settings waiting as long as the result is open: of two at once, each
/// would write what the other one has not seen. None where folders cannot be locked.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let Ok(folder) = File::open(folder) else {
        return Ok(None);
    };
    let give_up = Instant::now() + LONGEST_WAIT;
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(Some(folder)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() > give_up => {
                return Err(io::Error::other("another program has locked its folder"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}

/// Reads the settings; empty if there are none. Anything but a regular file is refused: opening a
/// pipe would wait for its writer.
fn read(path: &Path) -> io::Result<String> {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags);
    }
    let mut file = match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        opened => opened?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Writes the file and keeps a copy of the old one. Returns the path of the copy.
fn write(path: &Path, before: &str, after: &str) -> io::Result<Option<PathBuf>> {
    let original = (!before.is_empty()).then_some(before);
    let backup = original.map(|text| copy(path, text)).transpose()?;
    // Settings are often linked from elsewhere, so links are followed.
    if !out_file::replace(path, after.as_bytes(), original.map(str::as_bytes))? {
        return Err(io::Error::other("it has changed meanwhile"));
    }
    Ok(backup)
}

/// Keeps the old text under the first free name. Nothing that is there is written to, not even a
/// link that leads nowhere.
fn copy(path: &Path, text: &str) -> io::Result<PathBuf> {
    let mut number: u32 = 1;
    loop {
        let mut name = OsString::from(path);
        name.push(format!(".backup-{number}"));
        let mut options = File::options();
        options.write(true).create_new(true);
        // Settings can contain keys.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(&name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            opened => {
                let mut file = opened?;
                file.write_all(text.as_bytes())?;
                file.sync_all()?;
                return Ok(PathBuf::from(name));
            }
        }
    }
}

/// The settings file of a client.
fn settings_file(args: &HookFileArgs) -> Result<PathBuf, Failure> {
    if args.client != HookClient::Claude {
        let (name, command) = match args.client {
            HookClient::Codex => ("Codex", "codex"),
            HookClient::Qwen | HookClient::Claude => ("Qwen Code", "qwen"),
        };
        return Err(Failure::input(
            format!("the hooks of {name} cannot replace the output of a tool"),
            format!("run it through a private proxy: trimtab wrap {command}"),
        ));
    }
    if let Some(file) = &args.file {
        return Ok(file.clone());
    }
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let folder = variable("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let folder = folder.or_else(|| Some(PathBuf::from(variable("HOME")?).join(".claude")));
    let folder = folder.ok_or_else(|| {
        Failure::input("HOME is not set", "name the settings file with --file FILE")
    })?;
    Ok(folder.join("settings.json"))
}

fn print_difference(before: &str, after: &str, terminal: &mut Terminal) -> io::Result<()> {
    for line in diff(before, after) {
        let (mark, text) = match line {
            DiffLine::Same(text) => (' ', text),
            DiffLine::Removed(text) => ('-', text),
            DiffLine::Added(text) => ('+', text),
            DiffLine::Gap => (' ', "..."),
        };
        writeln!(terminal.out(), "{mark} {}", visible(text))?;
    }
    Ok(())
}

/// A path as a word of a shell command.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if path.chars().all(is_plain) {
        path
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}
