//! A folder held by a handle. File names are generated, links are not followed, and tests can make
//! every operation fail.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self as sys, AtFlags, FileType, Mode, OFlags};

use crate::image::{ImageBytes, damaged};
use crate::{Error, Result, refs};

const FOLDER_MODE: Mode = Mode::RWXU;
const FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);
/// The prefix of unfinished files.
pub(super) const UNFINISHED: &str = "new-";

/// Called before every disk operation; a test may return an error.
pub(crate) type FaultHook = Arc<dyn Fn(&'static str) -> io::Result<()> + Send + Sync>;

pub(super) struct Dir {
    fd: OwnedFd,
    path: PathBuf,
    fault: Option<FaultHook>,
}

/// A directory entry.
pub(super) struct FileStat {
    pub byte_size: u64,
    /// The modification time in milliseconds since 1970.
    pub changed: u64,
}

/// Identifies a file, to detect that another file has taken its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    number: u64,
}

impl FileIdentity {
    /// The file that has this name now, if any.
    pub(super) fn at(path: &Path) -> Result<Option<Self>> {
        match sys::lstat(path) {
            Ok(stat) => Ok(Some(Self {
                device: stat.st_dev,
                number: stat.st_ino,
            })),
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(None),
            Err(error) => Err(Error::io("inspect", path, error.into())),
        }
    }
}

impl Dir {
    /// Opens the folder at `path`, which must belong to us and not be a link.
    pub(super) fn open(path: &Path, fault: Option<FaultHook>) -> Result<Self> {
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = sys::open(path, flags, Mode::empty());
        let fd = fd.map_err(|error| not_a_folder(path, error))?;
        Self::checked(fd, path.to_owned(), fault)
    }

    /// Opens the subfolder `name`, and creates it if necessary.
    pub(super) fn folder(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        match sys::mkdirat(&self.fd, name, FOLDER_MODE) {
            // A folder whose name is lost in a power cut takes its synced files with it.
            Ok(()) => self.sync()?,
            // On a read-only disk it must already exist; opening it will tell.
            Err(rustix::io::Errno::EXIST | rustix::io::Errno::ROFS) => {}
            Err(error) => return Err(Error::io("make the folder", &path, error.into())),
        }
        self.open_folder(name)
    }

    /// Opens the subfolder `name`.
    pub(super) fn open_folder(&self, name: &str) -> Result<Self> {
        let path = self.path.join(name);
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = sys::openat(&self.fd, name, flags, Mode::empty());
        let fd = fd.map_err(|error| not_a_folder(&path, error))?;
        Self::checked(fd, path, self.fault.clone())
    }

    fn checked(fd: OwnedFd, path: PathBuf, fault: Option<FaultHook>) -> Result<Self> {
        let stat = sys::fstat(&fd).map_err(|error| Error::io("inspect", &path, error.into()))?;
        // Another user could change files of a folder that belongs to them.
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            let why =
                "belongs to another user, who could change the store; use a folder of your own"
                    .to_owned();
            return Err(Error::NotAStore { path, why });
        }
        Ok(Self { fd, path, fault })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder accessible to its owner only.
    pub(super) fn make_private(&self) -> Result<()> {
        let stat = sys::fstat(&self.fd).map_err(|error| self.error("inspect", "", error))?;
        if Mode::from_raw_mode(stat.st_mode) == FOLDER_MODE {
            return Ok(());
        }
        sys::fchmod(&self.fd, FOLDER_MODE).map_err(|error| self.error("protect", "", error))
    }

    /// Creates a file that only its owner can read.
    pub(super) fn create(&self, name: &str) -> Result<File> {
        self.step("create", name)?;
        // EXCL and NOFOLLOW: a file or a link that somebody planted under this name is never
        // written to.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let fd = sys::openat(&self.fd, name, flags | OFlags::CLOEXEC, FILE_MODE);
        fd.map(File::from)
            .map_err(|error| self.error("create", name, error))
    }

    /// Opens a file for writing or locking, and creates it if necessary.
    pub(super) fn open_or_create(&self, name: &str) -> Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = sys::openat(&self.fd, name, flags, FILE_MODE);
        fd.map(File::from)
            .map_err(|error| self.error("open", name, error))
    }

    /// Opens a regular file for reading; none if it does not exist.
    pub(super) fn open_file(&self, name: &str) -> Result<Option<File>> {
        self.step("open", name)?;
        // NONBLOCK keeps a planted FIFO from blocking.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match sys::openat(&self.fd, name, flags, Mode::empty()) {
            Ok(fd) => {
                let stat = sys::fstat(&fd).map_err(|error| self.error("inspect", name, error))?;
                let plain = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
                Ok(plain.then(|| File::from(fd)))
            }
            // A planted link counts as a file that is missing.
            Err(rustix::io::Errno::NOENT | rustix::io::Errno::LOOP) => Ok(None),
            Err(error) => Err(self.error("open", name, error)),
        }
    }

    /// The entry `name`, if it is a regular file.
    pub(super) fn entry(&self, name: &str) -> Result<Option<FileStat>> {
        match sys::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
                Ok(Some(FileStat {
                    byte_size: u64::try_from(stat.st_size).unwrap_or(0),
                    changed: seconds.saturating_mul(1000),
                }))
            }
            Ok(_) => {
                let path = self.path.join(name);
                let why = "is a link or a folder, but must be a file".to_owned();
                Err(Error::NotAStore { path, why })
            }
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(self.error("inspect", name, error)),
        }
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.step("rename", from)?;
        sys::renameat(&self.fd, from, &self.fd, to).map_err(|e| self.error("rename", from, e))
    }

    /// Gives a file a second name.
    pub(super) fn link(&self, from: &str, to: &str) -> Result<()> {
        self.step("link", from)?;
        let linked = sys::linkat(&self.fd, from, &self.fd, to, AtFlags::empty());
        linked.map_err(|error| self.error("link", from, error))
    }

    pub(super) fn remove(&self, name: &str) -> Result<()> {
        self.step("remove", name)?;
        match sys::unlinkat(&self.fd, name, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(self.error("remove", name, error)),
        }
    }

    /// Makes the names in the folder durable.
    pub(super) fn sync(&self) -> Result<()> {
        self.step("sync the folder", "")?;
        sys::fsync(&self.fd).map_err(|error| self.error("sync the folder", "", error))
    }

    /// All names in the folder.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let dir = sys::Dir::read_from(&self.fd).map_err(|e| self.error("list", "", e))?;
        let mut names = Vec::new();
        for entry in dir {
            let entry = entry.map_err(|error| self.error("list", "", error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    /// Creates a file under an unfinished name.
    pub(super) fn unfinished(self: &Arc<Self>) -> Result<TemporaryFile> {
        let name = format!("{UNFINISHED}{}", random_name()?);
        let file = self.create(&name)?;
        Ok(TemporaryFile {
            dir: Arc::clone(self),
            file,
            name,
            finished: false,
        })
    }

    /// Lets a test fail an operation before it is executed.
    fn step(&self, action: &'static str, name: &str) -> Result<()> {
        let Some(fault) = &self.fault else {
            return Ok(());
        };
        fault(action).map_err(|error| Error::io(action, &self.path.join(name), error))
    }

    fn error(&self, action: &'static str, name: &str, error: rustix::io::Errno) -> Error {
        Error::io(action, &self.path.join(name), error.into())
    }
}

/// 32 random characters. No name is ever derived from input.
pub(super) fn random_name() -> Result<String> {
    let mut bytes = [0; 16];
    refs::random(&mut bytes)?;
    Ok(data_encoding::HEXLOWER.encode(&bytes))
}

/// True for names made by [`random_name`].
pub(super) fn is_random_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

fn not_a_folder(path: &Path, error: rustix::io::Errno) -> Error {
    match error {
        rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => Error::NotAStore {
            path: path.to_owned(),
            why: "is not a folder, or is a link to one; name the folder itself".to_owned(),
        },
        error => Error::io("open the folder", path, error.into()),
    }
}

/// A file that is being written. It is removed if dropped before it is finished.
pub(super) struct TemporaryFile {
    dir: Arc<Dir>,
    file: File,
    name: String,
    finished: bool,
}

impl TemporaryFile {
    /// Takes so much space on the disk.
    pub(super) fn allocate(&mut self, bytes: u64) -> Result<()> {
        self.dir.step("write", &self.name)?;
        #[cfg(target_os = "linux")]
        match sys::fallocate(&self.file, sys::FallocateFlags::empty(), 0, bytes) {
            // Not every file system can do it without writing.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {}
            done => return done.map_err(|error| self.dir.error("write", &self.name, error)),
        }
        let written = io::copy(&mut io::repeat(0).take(bytes), &mut self.file);
        written
            .map(drop)
            .map_err(|error| Error::io("write", &self.dir.path.join(&self.name), error))
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.dir.step("write", &self.name)?;
        let written = self.file.write_all(bytes);
        written.map_err(|error| Error::io("write", &self.dir.path.join(&self.name), error))
    }

    /// Makes the file durable under `name`.
    pub(super) fn finish(mut self, name: &str) -> Result<()> {
        self.dir.step("sync", &self.name)?;
        let synced = self.file.sync_all();
        synced.map_err(|error| Error::io("sync", &self.dir.path.join(&self.name), error))?;
        self.dir.rename(&self.name, name)?;
        self.finished = true;
        let synced = self.dir.sync();
        if synced.is_err() {
            // The file is not durable, so remove it. Collection removes leftovers.
            let _ = self.dir.remove(name);
        }
        synced
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.finished {
            // Collection removes leftovers.
            let _ = self.dir.remove(&self.name);
        }
    }
}

/// An image in a file of its own.
impl ImageBytes for File {
    fn read_exact_at(&self, start: u64, into: &mut [u8]) -> Result<()> {
        let read = FileExt::read_exact_at(self, into, start);
        read.map_err(|error| match error.kind() {
            // Positions come from verified tables, so the file was truncated.
            io::ErrorKind::UnexpectedEof => damaged(),
            _ => Error::io("read", Path::new("an output"), error),
        })
    }
}
