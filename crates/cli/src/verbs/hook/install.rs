//! Adds the hook to the settings of a client, and removes it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::json_file::{add, remove};
use super::{HookClient, HookFileArgs};
use crate::common::CommonArgs;
use crate::exit::Failure;
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
    let before = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(unusable(&path, "read", &error)),
    };
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

/// Writes the file and keeps a copy of the old one. Returns the path of the copy.
fn write(path: &Path, before: &str, after: &str) -> io::Result<Option<PathBuf>> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let backup = (!before.is_empty()).then(|| free_name(path));
    if let Some(backup) = &backup {
        fs::copy(path, backup)?;
    }
    // Rename a new file over the old one, so that the client never reads half a file. Follow a
    // link, because settings are often linked from elsewhere.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let new = with_ending(&target, ".trimtab-new");
    write_private(&new, after)?;
    if let Ok(metadata) = fs::metadata(&target) {
        fs::set_permissions(&new, metadata.permissions())?;
    }
    fs::rename(&new, &target)?;
    Ok(backup)
}

/// Writes a file that only its owner can read, because settings can contain keys.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    // The rename must not become durable before the text.
    file.sync_all()
}

/// The first unused name for a copy.
fn free_name(path: &Path) -> PathBuf {
    let numbered = (1..).map(|number: u32| with_ending(path, &format!(".backup-{number}")));
    let mut free = numbered.filter(|name| !name.exists());
    free.next().unwrap_or_else(|| with_ending(path, ".backup"))
}

fn with_ending(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    PathBuf::from(name)
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
