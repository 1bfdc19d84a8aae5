//! The tool `write_file`.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    Access, AtFlags, FileType, Mode, OFlags, accessat, fchmod, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::parse_as;
use super::confined_path::{LocatedPath, OpenError, open_folder};
use super::confirm::{Confirm, FileChange, QuestionKind};
use super::text::has_nul;
use super::workspace::display_path;
use super::{Tool, ToolDefinition, ToolFuture, ToolOutcome, Workspace, blocking, is_protected};

/// The maximum number of questions per write. A path that leads elsewhere each time is an attack.
const MOST_QUESTIONS: u32 = 3;
/// Larger files are replaced without showing the difference.
const MOST_COMPARED: u64 = 1 << 20;
/// The reason why a file is protected.
const STEERS: &str = ", which can run commands or steer agents";

/// Writes a file of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteFile;

#[derive(Deserialize)]
struct WriteFileArgs {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(
            "write_file",
            "Writes a text file of the workspace, in place of what was in it. Folders on the way \
             to it are made.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Path, relative to the workspace." },
                    "content": { "type": "string", "description": "All that the file shall hold." },
                },
                "required": ["path", "content"],
            }),
        )
    }

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move { ToolOutcome::from(write(arguments, workspace).await) })
    }
}

async fn write(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let args: Arc<WriteFileArgs> = Arc::new(parse_as(arguments)?);
    let mut allowed = None;
    // Ask again if, by the time of the answer, the path leads elsewhere or the file has changed.
    for _ in 0..MOST_QUESTIONS {
        let (inner, wanted) = (workspace.clone(), Arc::clone(&args));
        // The first attempt finds out what the path names; it writes only if no question is needed.
        let written = blocking(move || replace(&inner, &wanted, allowed.as_ref())).await?;
        let unasked = match written {
            WriteResult::Done(told) => return Ok(told),
            WriteResult::NeedsQuestion(unasked) => unasked,
        };
        let confirm = workspace.decides_write(unasked.is_protected);
        let (kind, what) = unasked.question(args.content.len());
        let change = unasked.change(&args.content);
        if !confirm
            .allows_change(kind, ("write_file", &what), change)
            .await
        {
            let why = if unasked.is_protected { STEERS } else { "" };
            return Err(format!(
                "the user did not allow to write `{}`{why}",
                display_path(&unasked.path)
            ));
        }
        allowed = Some(unasked);
    }
    Err(format!("`{}` keeps changing", args.path))
}

/// The result of an attempt to write.
enum WriteResult {
    Done(String),
    /// Nothing was written: the user must be asked first.
    NeedsQuestion(UnconfirmedWrite),
}

/// A write that needs a confirmation.
#[derive(PartialEq, Eq)]
struct UnconfirmedWrite {
    path: PathBuf,
    is_protected: bool,
    /// The first bytes of the current file; none if it does not exist.
    before: Option<Vec<u8>>,
}

impl UnconfirmedWrite {
    fn question(&self, size: usize) -> (QuestionKind, String) {
        let shown = display_path(&self.path);
        if self.is_protected {
            return (
                QuestionKind::ProtectedFile,
                format!("{size} bytes to {shown}{STEERS}"),
            );
        }
        let place = match &self.before {
            None => ", a new file",
            Some(before) if text(before).is_none() => {
                ", in place of what is too large to compare or not text"
            }
            Some(_) => "",
        };
        (
            QuestionKind::WriteFile,
            format!("{size} bytes to {shown}{place}"),
        )
    }

    fn change(&self, after: &str) -> FileChange {
        FileChange {
            path: display_path(&self.path),
            before: self.before.as_deref().and_then(text),
            after: after.to_owned(),
        }
    }
}

/// The content of a file, if it can be compared.
fn text(bytes: &[u8]) -> Option<String> {
    let is_whole = bytes.len() as u64 <= MOST_COMPARED;
    let text = std::str::from_utf8(bytes).ok();
    text.filter(|_| is_whole && !has_nul(bytes))
        .map(str::to_owned)
}

/// Writes the file, unless a confirmation is needed and `allowed` does not match.
fn replace(
    workspace: &Workspace,
    args: &WriteFileArgs,
    allowed: Option<&UnconfirmedWrite>,
) -> Result<WriteResult, String> {
    let located = workspace.locate(&args.path);
    let (folder, names, path) = match located.map_err(|error| error.to_string())? {
        LocatedPath::Folder { .. } => return Err(format!("`{}` is a folder", args.path)),
        LocatedPath::Missing {
            folder,
            names,
            path,
        } => (folder, names, path),
        LocatedPath::File {
            folder,
            name,
            kind,
            path,
        } => {
            check_writable(&folder, &name, kind).map_err(|error| {
                let error = error.of_path(&args.path);
                error.to_string()
            })?;
            (folder, vec![name], path)
        }
    };
    // Check both names: the path may reach a protected file through a link, or be protected itself.
    let is_protected = is_protected(&path) || is_protected(Path::new(&args.path));
    if !matches!(workspace.decides_write(is_protected), Confirm::Always) {
        let unasked = UnconfirmedWrite {
            before: first_bytes(workspace, &args.path),
            path: path.clone(),
            is_protected,
        };
        // The user allowed exactly this file with exactly this content.
        if allowed != Some(&unasked) {
            return Ok(WriteResult::NeedsQuestion(unasked));
        }
    }
    let (size, shown) = (args.content.len(), display_path(&path));
    put(folder, &names, args.content.as_bytes())
        .map_err(|error| format!("cannot write `{shown}`: {error}"))?;
    Ok(WriteResult::Done(format!("wrote {size} bytes to {shown}")))
}

/// The start of the current file, one byte more than is compared; none if it cannot be read.
fn first_bytes(workspace: &Workspace, path: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = workspace.open_file(path).ok()?;
    file.take(MOST_COMPARED + 1).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Replacing a file must not bypass its permissions.
fn check_writable(folder: &OwnedFd, name: &OsStr, kind: FileType) -> Result<(), OpenError> {
    if kind != FileType::RegularFile {
        return Err(OpenError::NotRegular(kind));
    }
    Ok(accessat(folder, name, Access::WRITE_OK, AtFlags::empty())?)
}

/// Creates missing folders and moves the file into place atomically.
fn put(mut folder: OwnedFd, names: &[OsString], content: &[u8]) -> io::Result<()> {
    let (name, folders) = names.split_last().ok_or(io::ErrorKind::InvalidInput)?;
    for missing in folders {
        match mkdirat(&folder, missing, Mode::from_raw_mode(0o777)) {
            // Somebody else may have created the folder meanwhile. If it is a link now, opening
            // fails.
            Ok(()) | Err(Errno::EXIST) => folder = open_folder(&folder, missing)?,
            Err(error) => return Err(error.into()),
        }
    }
    // Write to a temporary name first, so that a crash never leaves half a file.
    let temporary = OsString::from(format!(".trimtab-{}", unique()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(0o666);
    let file = openat(&folder, &temporary, flags | OFlags::CLOEXEC, mode)?;
    let written = fill(file, &folder, name, content)
        .and_then(|()| Ok(renameat(&folder, &temporary, &folder, name)?));
    if written.is_err() {
        // Report the first error.
        let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    }
    written
}

/// Writes the content with the permissions of the file that it replaces.
fn fill(file: OwnedFd, folder: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    if let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    }
    File::from(file).write_all(content)
}

/// A temporary name that is unique on this machine.
fn unique() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}", std::process::id())
}
