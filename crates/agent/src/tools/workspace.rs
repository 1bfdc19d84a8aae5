//! The workspace: the folder to which the tools are confined.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;
use rustix::io::Errno;
use thiserror::Error;

use super::Confirm;
use super::confined_path::{self, LocatedPath};

/// The workspace of the tools, and their permissions.
///
/// No path leads out of it, neither through `..` nor through a symbolic link, even if a link is
/// created while a tool works: everything is opened relative to folder handles. This contains a
/// model's mistakes; a command that the user allows can still go anywhere.
#[derive(Clone, Debug)]
pub struct Workspace {
    root: PathBuf,
    /// The root as it was given, which may contain links.
    named: PathBuf,
    commands: Confirm,
    protected_files: Confirm,
    writes: Confirm,
}

/// An invalid path. The text is for the model.
#[derive(Debug, Error)]
pub enum WorkspaceError {
    /// The path leads out of the workspace.
    #[error("`{0}` is outside the workspace\nhint: give a path relative to the workspace")]
    Escapes(String),
    /// The path does not name a regular file.
    #[error("`{path}` is a {kind}, not a regular file")]
    NotRegular {
        /// The path as the model gave it.
        path: String,
        /// The type of the object.
        kind: &'static str,
    },
    /// The system reports an error.
    #[error("`{path}`: {error}")]
    Unreadable {
        /// The path as the model gave it.
        path: String,
        /// The error of the system.
        error: io::Error,
    },
}

impl WorkspaceError {
    /// True if the path does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Unreadable { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl Workspace {
    /// The workspace at `root`, which must be a folder. `confirm` decides about commands, and about
    /// writes to [protected files](super::is_protected) if it asks somebody; otherwise those are
    /// refused. Other files are written without asking, unless
    /// [`confirm_writes`](Self::confirm_writes) is set.
    pub fn new(root: impl AsRef<Path>, confirm: Confirm) -> io::Result<Self> {
        let named = std::path::absolute(root.as_ref())?;
        let root = root.as_ref().canonicalize()?;
        if !root.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        let protected_files = match &confirm {
            Confirm::Ask(_) => confirm.clone(),
            // "Always" was said about commands. A protected file needs somebody who looks at it.
            Confirm::Always | Confirm::Never => Confirm::Never,
        };
        Ok(Self {
            root,
            named,
            commands: confirm,
            protected_files,
            writes: Confirm::Always,
        })
    }

    /// Sets who decides about writes to protected files.
    #[must_use]
    pub fn confirm_protected(mut self, confirm: Confirm) -> Self {
        self.protected_files = confirm;
        self
    }

    /// Sets who decides about writes to all other files.
    #[must_use]
    pub fn confirm_writes(mut self, confirm: Confirm) -> Self {
        self.writes = confirm;
        self
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Decides about commands.
    pub fn confirm(&self) -> &Confirm {
        &self.commands
    }

    /// Decides about a write.
    pub(super) fn decides_write(&self, is_protected: bool) -> &Confirm {
        if is_protected {
            &self.protected_files
        } else {
            &self.writes
        }
    }

    /// Resolves `path`. All file tools use this.
    pub(super) fn locate(&self, path: &str) -> Result<LocatedPath, WorkspaceError> {
        let relative = self.relative(Path::new(path));
        let relative = relative.ok_or_else(|| WorkspaceError::Escapes(path.to_owned()))?;
        let located = confined_path::locate(&self.root, relative);
        located.map_err(|error| error.of_path(path))
    }

    /// Opens the regular file at `path` for reading.
    pub(super) fn open_file(&self, path: &str) -> Result<File, WorkspaceError> {
        match self.locate(path)? {
            LocatedPath::File {
                folder, name, kind, ..
            } => confined_path::open_regular(&folder, &name, kind)
                .map_err(|error| error.of_path(path)),
            LocatedPath::Folder { .. } => Err(not_regular(path, FileType::Directory)),
            LocatedPath::Missing { .. } => Err(missing(path)),
        }
    }

    /// Opens the folder at `path` and returns its resolved path, relative to the root.
    pub(super) fn open_folder(&self, path: &str) -> Result<(OwnedFd, PathBuf), WorkspaceError> {
        match self.locate(path)? {
            LocatedPath::Folder { folder, path } => Ok((folder, path)),
            LocatedPath::File { .. } => Err(WorkspaceError::Unreadable {
                path: path.to_owned(),
                error: Errno::NOTDIR.into(),
            }),
            LocatedPath::Missing { .. } => Err(missing(path)),
        }
    }

    fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        if path.is_relative() {
            return Some(path);
        }
        let below = |root: &Path| path.strip_prefix(root).ok();
        // Users and models write the path that they see, which may go through a link.
        below(&self.root).or_else(|| below(&self.named))
    }
}

fn missing(path: &str) -> WorkspaceError {
    WorkspaceError::Unreadable {
        path: path.to_owned(),
        error: Errno::NOENT.into(),
    }
}

fn not_regular(path: &str, kind: FileType) -> WorkspaceError {
    confined_path::OpenError::NotRegular(kind).of_path(path)
}

/// A path relative to the root as the model sees it, on one line.
pub(super) fn display_path(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return ".".to_owned();
    }
    let shown = path.to_string_lossy();
    if !shown.contains(char::is_control) {
        return shown.into_owned();
    }
    // A line break in a name could otherwise look like another line of a tool's output.
    let escaped = |c: char| match c {
        c if c.is_control() => c.escape_default().to_string(),
        c => c.to_string(),
    };
    shown.chars().map(escaped).collect()
}

/// The path of `names` below `path`.
pub(super) fn join_names(path: &Path, names: &[OsString]) -> PathBuf {
    let mut path = path.to_owned();
    path.extend(names);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("work");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a.txt"), "a").unwrap();
        fs::write(folder.path().join("secret"), "s").unwrap();
        let workspace = Workspace::new(&root, Confirm::Never).unwrap();
        (folder, workspace)
    }

    fn text(workspace: &Workspace, path: &str) -> String {
        let mut text = String::new();
        let mut file = workspace.open_file(path).unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn paths_inside_are_found() {
        let (folder, workspace) = workspace();
        let root = workspace.root().to_owned();
        symlink("sub", root.join("relative")).unwrap();
        symlink("../sub/a.txt", root.join("sub/up_and_down")).unwrap();
        symlink(root.join("sub"), root.join("absolute")).unwrap();
        symlink(&root, folder.path().join("alias")).unwrap();
        let absolute = root.join("sub/a.txt");
        for path in [
            "sub/a.txt",
            "./sub/../sub/a.txt",
            "relative/a.txt",
            "relative/../relative/up_and_down",
            "absolute/a.txt",
            absolute.to_str().unwrap(),
        ] {
            assert_eq!(text(&workspace, path), "a", "{path}");
        }
        let alias = folder.path().join("alias");
        let aliased = Workspace::new(&alias, Confirm::Never).unwrap();
        let path = alias.join("sub/a.txt");
        assert_eq!(text(&aliased, path.to_str().unwrap()), "a");
        let (_, found) = workspace.open_folder("absolute/..//relative").unwrap();
        assert_eq!(found, Path::new("sub"));
        assert_eq!(workspace.open_folder(".").unwrap().1, Path::new(""));
    }

    #[test]
    fn no_path_leads_out() {
        let (folder, workspace) = workspace();
        let root = workspace.root().to_owned();
        symlink(folder.path(), root.join("up")).unwrap();
        symlink("../secret", root.join("link")).unwrap();
        symlink(folder.path().join("not there"), root.join("dangling")).unwrap();
        symlink("/proc/self/root", root.join("magic")).unwrap();
        for path in [
            "../secret",
            "sub/../../secret",
            "/etc/passwd",
            "/no/such",
            "up/secret",
            "link",
            "dangling",
            "magic/etc/passwd",
        ] {
            let found = workspace.locate(path);
            assert!(
                matches!(found, Err(WorkspaceError::Escapes(_))),
                "{path}: {found:?}"
            );
        }
        assert!(matches!(
            workspace.open_file("no such"),
            Err(WorkspaceError::Unreadable { .. })
        ));
        symlink("loop", root.join("loop")).unwrap();
        assert!(workspace.open_file("loop").is_err());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let (_folder, workspace) = workspace();
        let pipe = workspace.root().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let socket = workspace.root().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        for (path, kind) in [("pipe", "FIFO"), ("socket", "socket"), ("sub", "folder")] {
            let refused = workspace.open_file(path).unwrap_err().to_string();
            assert!(refused.contains(kind), "{refused}");
        }
    }
}
