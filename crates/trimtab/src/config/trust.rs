//! Checks whether a file belongs to the user: nobody else can have written it.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A file that somebody else may have written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UntrustedFile {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub why: String,
    /// The way out.
    pub hint: String,
}

impl fmt::Display for UntrustedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not read: {}", self.path.display(), self.why)
    }
}

/// Why a file was not read.
#[derive(Debug)]
pub enum NotRead {
    /// It does not exist.
    Missing,
    /// Somebody else may have written it.
    Untrusted(UntrustedFile),
    /// The system reported an error.
    Failed(PathBuf, io::Error),
}

/// Whether a symbolic link is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkPolicy {
    Follow,
    Refuse,
}

/// Reads a file of the user. The file and its folder must belong to the user or to root, and nobody
/// else may be able to write to them.
///
/// A symbolic link is followed, and its target is checked.
pub fn read_own_file(path: &Path) -> Result<String, NotRead> {
    read(path, LinkPolicy::Follow)
}

pub(super) fn read(path: &Path, links: LinkPolicy) -> Result<String, NotRead> {
    let untrusted = |(why, hint)| {
        NotRead::Untrusted(UntrustedFile {
            path: path.to_owned(),
            why,
            hint,
        })
    };
    let not_read = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => NotRead::Missing,
        _ => NotRead::Failed(path.to_owned(), error),
    };
    let about = path.symlink_metadata().map_err(not_read)?;
    if links == LinkPolicy::Refuse && about.is_symlink() {
        return Err(untrusted(not_regular("a symbolic link", path)));
    }
    let mut file = open(path, links).map_err(not_read)?;
    // Check the open file, so that nobody can replace it in between.
    let about = file.metadata().map_err(not_read)?;
    if !about.is_file() {
        return Err(untrusted(not_regular("no regular file", path)));
    }
    only_own(&about, path).map_err(untrusted)?;
    if let Some(folder) = path.parent().filter(|_| links == LinkPolicy::Follow) {
        check_folder(folder).map_err(untrusted)?;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(not_read)?;
    Ok(text)
}

/// What is wrong, and the fix.
type TrustFault = (String, String);

fn not_regular(what: &str, path: &Path) -> TrustFault {
    let hint = format!(
        "put a file there, or name it with --config {}",
        path.display()
    );
    (format!("it is {what}"), hint)
}

#[cfg(unix)]
fn open(path: &Path, links: LinkPolicy) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    // Opening a pipe without a writer must not block.
    let mut flags = OFlags::NONBLOCK | OFlags::CLOEXEC;
    if links == LinkPolicy::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(not(unix))]
fn open(path: &Path, _: LinkPolicy) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

/// Fails if anybody but the user and root can write to the file.
#[cfg(unix)]
fn only_own(about: &Metadata, path: &Path) -> Result<(), TrustFault> {
    use std::os::unix::fs::MetadataExt;
    let path = path.display();
    if let Some(owner) = other_owner(about) {
        return Err((
            format!("it belongs to user {owner}"),
            format!("look at it, then take it over with chown, or name it with --config {path}"),
        ));
    }
    if about.mode() & 0o022 != 0 {
        return Err((
            "others can write to it".to_owned(),
            format!("look at it, then chmod go-w {path}"),
        ));
    }
    Ok(())
}

/// Fails if anybody but the user and root can put other files into the folder.
#[cfg(unix)]
pub(super) fn check_folder(folder: &Path) -> Result<(), TrustFault> {
    use std::os::unix::fs::MetadataExt;
    const STICKY: u32 = 0o1000;
    let shown = folder.display();
    let Ok(about) = folder.metadata() else {
        return Ok(());
    };
    if let Some(owner) = other_owner(&about) {
        return Err((
            format!("the folder {shown} belongs to user {owner}"),
            "move it into a folder of your own, or name it with --config".to_owned(),
        ));
    }
    // In a sticky folder such as `/tmp`, others cannot replace the user's files.
    if about.mode() & 0o002 != 0 && about.mode() & STICKY == 0 {
        return Err((
            format!("everybody can write to the folder {shown}"),
            format!("look at it, then chmod o-w {shown}"),
        ));
    }
    Ok(())
}

/// The owner, if it is neither the user nor root.
#[cfg(unix)]
fn other_owner(about: &Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    Some(about.uid()).filter(|owner| *owner != user && *owner != 0)
}

#[cfg(not(unix))]
fn only_own(_: &Metadata, _: &Path) -> Result<(), TrustFault> {
    Ok(())
}

#[cfg(not(unix))]
pub(super) fn check_folder(_: &Path) -> Result<(), TrustFault> {
    Ok(())
}
