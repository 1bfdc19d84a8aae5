//! Opens files below a folder safely, even if links change meanwhile.
//!
//! A path is resolved name by name, each relative to the handle of its parent and never through a
//! link. The target of a link is read and resolved in the same way, so a link that is swapped
//! between two steps cannot lead anywhere else.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, open, openat, readlinkat, statat};
use rustix::io::Errno;

use super::workspace::{WorkspaceError, join_names};

/// The maximum number of links in a path, as in the kernel.
const MOST_LINKS: u32 = 40;

/// The object that a path names.
#[derive(Debug)]
pub(super) enum LocatedPath {
    /// An existing folder.
    Folder {
        folder: OwnedFd,
        /// Its resolved path, relative to the root.
        path: PathBuf,
    },
    /// Another existing object.
    File {
        /// Its parent folder.
        folder: OwnedFd,
        name: OsString,
        kind: FileType,
        path: PathBuf,
    },
    /// Nothing yet.
    Missing {
        /// The last existing folder of the path.
        folder: OwnedFd,
        /// The missing names; the last one may be that of a file.
        names: Vec<OsString>,
        path: PathBuf,
    },
}

/// The reasons why opening fails.
#[derive(Debug)]
pub(super) enum OpenError {
    Escapes,
    NotRegular(FileType),
    System(io::Error),
}

impl OpenError {
    /// The error for the model, which knows the object as `path`.
    pub(super) fn of_path(self, path: &str) -> WorkspaceError {
        let path = path.to_owned();
        match self {
            Self::Escapes => WorkspaceError::Escapes(path),
            Self::NotRegular(kind) => WorkspaceError::NotRegular {
                path,
                kind: kind_name(kind),
            },
            Self::System(error) => WorkspaceError::Unreadable { path, error },
        }
    }
}

impl From<Errno> for OpenError {
    fn from(error: Errno) -> Self {
        Self::System(error.into())
    }
}

fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "folder",
        FileType::Fifo => "FIFO",
        FileType::Socket => "socket",
        FileType::CharacterDevice | FileType::BlockDevice => "device",
        FileType::Symlink => "link",
        _ => "special file",
    }
}

/// Opens the folder `name` in `folder`; fails for a link.
pub(super) fn open_folder(folder: impl AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(folder, name, flags, Mode::empty())
}

/// Opens the regular file `name` in `folder`, which had type `kind` before.
pub(super) fn open_regular(
    folder: impl AsFd,
    name: &OsStr,
    kind: FileType,
) -> Result<File, OpenError> {
    // Do not even open devices: opening alone can have effects.
    if kind != FileType::RegularFile {
        return Err(OpenError::NotRegular(kind));
    }
    // The file may have been replaced since. NONBLOCK keeps a FIFO from blocking.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = openat(folder, name, flags | OFlags::CLOEXEC, Mode::empty())?;
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(File::from(file)),
        kind => Err(OpenError::NotRegular(kind)),
    }
}

/// The type of `name` in `folder`, without following links.
pub(super) fn kind_of(folder: impl AsFd, name: &OsStr) -> rustix::io::Result<FileType> {
    let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Resolves `path` relative to `root`.
pub(super) fn locate(root: &Path, path: &Path) -> Result<LocatedPath, OpenError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut finder = PathFinder {
        root,
        root_folder: open(root, flags, Mode::empty())?,
        folders: Vec::new(),
        ahead: Vec::new(),
        links: 0,
    };
    finder.add(path)?;
    finder.find()
}

/// A path during resolution.
struct PathFinder<'r> {
    root: &'r Path,
    root_folder: OwnedFd,
    /// The folders entered below the root, with their names.
    folders: Vec<(OwnedFd, OsString)>,
    /// The remaining names, in reverse order.
    ahead: Vec<PathStep>,
    links: u32,
}

enum PathStep {
    Up,
    Name(OsString),
}

impl PathFinder<'_> {
    /// Adds the names of `path` before the remaining ones.
    fn add(&mut self, path: &Path) -> Result<(), OpenError> {
        // An absolute target is allowed only below the root, and resolution restarts there.
        let relative = if path.is_absolute() {
            self.folders.clear();
            path.strip_prefix(self.root)
                .map_err(|_| OpenError::Escapes)?
        } else {
            path
        };
        for part in relative.components().rev() {
            match part {
                Component::CurDir => {}
                Component::ParentDir => self.ahead.push(PathStep::Up),
                Component::Normal(name) => self.ahead.push(PathStep::Name(name.to_owned())),
                Component::RootDir | Component::Prefix(_) => return Err(OpenError::Escapes),
            }
        }
        Ok(())
    }

    fn find(mut self) -> Result<LocatedPath, OpenError> {
        while let Some(step) = self.ahead.pop() {
            let name = match step {
                // `..` at the root would leave the workspace.
                PathStep::Up => {
                    self.folders.pop().ok_or(OpenError::Escapes)?;
                    continue;
                }
                PathStep::Name(name) => name,
            };
            match kind_of(self.here(), &name) {
                Ok(FileType::Directory) => {
                    // If the folder was replaced by a link since the check, opening fails instead
                    // of following it.
                    let folder = open_folder(self.here(), &name)?;
                    self.folders.push((folder, name));
                }
                Ok(FileType::Symlink) => self.follow(&name)?,
                Ok(kind) if self.ahead.is_empty() => return Ok(self.file(name, kind)),
                // More names follow, but this one is no folder.
                Ok(_) => return Err(Errno::NOTDIR.into()),
                Err(Errno::NOENT) => return self.missing(name),
                Err(error) => return Err(error.into()),
            }
        }
        let path = self.path();
        let folder = self.into_here();
        Ok(LocatedPath::Folder { folder, path })
    }

    fn follow(&mut self, name: &OsStr) -> Result<(), OpenError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        // The target is read from the link itself. If the link is swapped afterwards, the old
        // target is resolved, by the same rules.
        let target = readlinkat(self.here(), name, Vec::new())?;
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        self.add(&target)
    }

    fn file(self, name: OsString, kind: FileType) -> LocatedPath {
        LocatedPath::File {
            path: self.path().join(&name),
            folder: self.into_here(),
            name,
            kind,
        }
    }

    /// The rest of the path can be created if it contains only names.
    fn missing(mut self, first: OsString) -> Result<LocatedPath, OpenError> {
        let mut names = vec![first];
        while let Some(step) = self.ahead.pop() {
            match step {
                PathStep::Name(name) => names.push(name),
                PathStep::Up => return Err(Errno::NOENT.into()),
            }
        }
        Ok(LocatedPath::Missing {
            path: join_names(&self.path(), &names),
            folder: self.into_here(),
            names,
        })
    }

    fn here(&self) -> &OwnedFd {
        let last = self.folders.last();
        last.map_or(&self.root_folder, |(folder, _)| folder)
    }

    fn into_here(mut self) -> OwnedFd {
        let last = self.folders.pop();
        last.map_or(self.root_folder, |(folder, _)| folder)
    }

    /// The resolved path so far, relative to the root.
    fn path(&self) -> PathBuf {
        self.folders.iter().map(|(_, name)| name).collect()
    }
}
