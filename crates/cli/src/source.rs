//! Opens input: a file, or `-` for standard input.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::path::Path;

use crate::exit::Failure;
use crate::ui::Terminal;
use crate::ui::progress::Progress;

/// The size of the read buffer.
const BUFFER: usize = 256 * 1024;

/// Readable input with its progress bar.
pub struct InputSource {
    /// The bytes.
    pub input: Box<dyn BufRead>,
    /// The progress bar; invisible for small input.
    pub progress: Progress,
}

/// The name of `path` in messages.
pub fn name(path: &Path) -> String {
    if is_stdin(path) {
        "standard input".to_owned()
    } else {
        path.display().to_string()
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

#[cfg(unix)]
fn is_device(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &std::fs::Metadata) -> bool {
    false
}

/// Opens `path`.
pub fn open(path: &Path, terminal: &Terminal) -> Result<InputSource, Failure> {
    if is_stdin(path) {
        // The length of standard input is unknown.
        let progress = Progress::hidden();
        let input = BufReader::with_capacity(BUFFER, progress.wrap(io::stdin()));
        return Ok(InputSource {
            input: Box::new(input),
            progress,
        });
    }
    let unreadable = |error: io::Error| {
        Failure::input(
            format!("{}: cannot read: {error}", path.display()),
            "give the path of a transcript, or - for standard input",
        )
    };
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(unreadable(io::ErrorKind::IsADirectory.into()));
    }
    // Some devices never end. Pipes end with their writer, and terminals with their user.
    if is_device(&metadata) && !file.is_terminal() {
        return Err(unreadable(io::Error::other("it is a device")));
    }
    let length = metadata.len();
    let progress = Progress::new(&path.display().to_string(), length, terminal);
    let input = BufReader::with_capacity(BUFFER, progress.wrap(file));
    Ok(InputSource {
        input: Box::new(input),
        progress,
    })
}
