//! Writing a file.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
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

use super::arguments::typed;
use super::beneath::{Located, OpenError, open_folder};
use super::confirm::QuestionKind;
use super::workspace::shown;
use super::{Definition, Outcome, Tool, Work, Workspace, blocking, is_protected};

/// How often one write may ask: a path that leads elsewhere each time is no mistake.
const MOST_QUESTIONS: u32 = 3;

/// Writes a file of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteFile;

#[derive(Deserialize)]
struct Asked {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn definition(&self) -> Definition {
        Definition::new(
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

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> Work<'a> {
        Box::pin(async move { Outcome::from(write(arguments, workspace).await) })
    }
}

async fn write(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let asked: Arc<Asked> = Arc::new(typed(arguments)?);
    let mut allowed = None;
    // Asked again if the path leads elsewhere by the time it is answered.
    for _ in 0..MOST_QUESTIONS {
        let (inner, wanted) = (workspace.clone(), Arc::clone(&asked));
        let written = blocking(move || replace(&inner, &wanted, allowed.as_deref())).await?;
        let path = match written {
            Written::Done(told) => return Ok(told),
            Written::Protected(path) => path,
        };
        let (shown, size) = (shown(&path), asked.content.len());
        let what = format!("{size} bytes to {shown}, which can run commands or steer agents");
        let confirm = workspace.protected_files();
        let kind = QuestionKind::ProtectedFile;
        if !confirm.allows(kind, "write_file", &what).await {
            return Err(format!(
                "the user did not allow to write `{shown}`, which can run commands or steer agents"
            ));
        }
        allowed = Some(path);
    }
    Err(format!("`{}` keeps changing", asked.path))
}

/// What came of a write.
enum Written {
    Done(String),
    /// Nothing was written: this path needs a question first.
    Protected(PathBuf),
}

/// Writes the file, unless it is protected and not `allowed`.
fn replace(
    workspace: &Workspace,
    asked: &Asked,
    allowed: Option<&Path>,
) -> Result<Written, String> {
    let located = workspace.locate(&asked.path);
    let (folder, names, path) = match located.map_err(|error| error.to_string())? {
        Located::Folder { .. } => return Err(format!("`{}` is a folder", asked.path)),
        Located::Missing {
            folder,
            names,
            path,
        } => (folder, names, path),
        Located::File {
            folder,
            name,
            kind,
            path,
        } => {
            check_writable(&folder, &name, kind).map_err(|error| {
                let error = error.of_path(&asked.path);
                error.to_string()
            })?;
            (folder, vec![name], path)
        }
    };
    let is_protected = is_protected(&path) || is_protected(Path::new(&asked.path));
    if is_protected && allowed != Some(path.as_path()) {
        return Ok(Written::Protected(path));
    }
    let (size, shown) = (asked.content.len(), shown(&path));
    put(folder, &names, asked.content.as_bytes())
        .map_err(|error| format!("cannot write `{shown}`: {error}"))?;
    Ok(Written::Done(format!("wrote {size} bytes to {shown}")))
}

/// What takes the place of a file must not get around its permissions.
fn check_writable(folder: &OwnedFd, name: &OsStr, kind: FileType) -> Result<(), OpenError> {
    if kind != FileType::RegularFile {
        return Err(OpenError::NotRegular(kind));
    }
    Ok(accessat(folder, name, Access::WRITE_OK, AtFlags::empty())?)
}

/// Makes the folders that are missing, and puts the file in place in one step.
fn put(mut folder: OwnedFd, names: &[OsString], content: &[u8]) -> io::Result<()> {
    let (name, folders) = names.split_last().ok_or(io::ErrorKind::InvalidInput)?;
    for missing in folders {
        match mkdirat(&folder, missing, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => folder = open_folder(&folder, missing)?,
            Err(error) => return Err(error.into()),
        }
    }
    let temporary = OsString::from(format!(".trimtab-{}", unique()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(0o666);
    let file = openat(&folder, &temporary, flags | OFlags::CLOEXEC, mode)?;
    let written = fill(file, &folder, name, content)
        .and_then(|()| Ok(renameat(&folder, &temporary, &folder, name)?));
    if written.is_err() {
        // The error that is told is the first one.
        let _ = unlinkat(&folder, &temporary, AtFlags::empty());
    }
    written
}

/// Writes the content, with the permissions of the file whose place it takes.
fn fill(file: OwnedFd, folder: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    if let Ok(stat) = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o777))?;
    }
    File::from(file).write_all(content)
}

/// A name that no other write of this machine uses now.
fn unique() -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    format!("{}-{count}", std::process::id())
}
