//! `trimtab output read`: prints an output, or some lines of it.

use std::io::{self, Write};

use serde_json::json;
use trimtab::store::{Error, LineRange, OpenOutput, OutputForm, OutputLine, SessionId};

use super::store_location::{SessionArgs, StoreLocation};
use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::ui::raw_output;
use crate::ui::sheet::Sheet;
use crate::ui::visible::{visible, visible_json};
use crate::ui::{Terminal, style, units};

/// Longer lines are printed in pieces of this size.
const PIECE: usize = 64 * 1024;
/// The number of raw bytes that are read at a time.
const RAW_PIECE: u64 = 1024 * 1024;
/// The longest line that `--json` prints; the rest is clipped.
const JSON_LINE: usize = 1024 * 1024;

/// The arguments of `trimtab output read`.
#[derive(Debug, clap::Args)]
pub struct OutputReadArgs {
    /// The session that it belongs to.
    #[command(flatten)]
    pub session: SessionArgs,
    /// The ref of the output, or a unique prefix of it
    #[arg(value_name = "REF")]
    pub id: String,
    /// The first line to print, counted from 0
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: u64,
    /// The number of lines to print
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Print the bytes exactly as they were stored, without line numbers
    #[arg(long, conflicts_with = "json")]
    pub raw: bool,
}

/// The first part of `trimtab output read --help`.
pub const ABOUT: &str = "\
Print an output, or some lines of it.

Lines are numbered from 1, as the model sees them; --offset counts from 0, so --offset 60 starts \
at the line numbered 61. With --raw the bytes are printed exactly as they were stored. Output of \
any size is streamed, and reading a few lines at the end of a large output reads only those lines.

On a terminal, control characters are escaped, unless --raw is given.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab output read --session S REF | less
  trimtab output read --session S REF --offset 3000 --limit 20
  trimtab output read --session S REF --raw > build.log
  trimtab output read --session S REF --json | jq -r .text";

/// Runs the verb.
pub fn run(
    args: &OutputReadArgs,
    store: &StoreArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let place = store.open()?;
    let session = place.session(&args.session.session)?;
    let id = &*place.output(&session, &args.id)?;
    let is_whole = args.raw && args.offset == 0 && args.limit.is_none();
    // Without --raw, read the text projection, which has lines.
    let form = if is_whole {
        OutputForm::Whole
    } else {
        OutputForm::Text
    };
    let failed = |error: &Error| place.failed_on(&session, id, error);
    let stored = place.store.open(&session, id, form);
    let stored = stored.map_err(|error| failed(&error))?;
    if !args.raw && stored.is_binary().map_err(|error| failed(&error))? {
        return Err(binary(&session, &stored));
    }
    let printed = if is_whole {
        raw(&stored)
    } else if args.raw {
        raw_lines(args, &stored)
    } else {
        let mut printer = OutputPrinter {
            stored: &stored,
            sheet: Sheet::new(terminal.has_colour()),
            json: common.json,
        };
        printer.print(args)
    };
    printed.map_err(|stop| stop.into_failure(&place, &session, id))
}

fn binary(session: &SessionId, stored: &OpenOutput) -> Failure {
    let metadata = stored.metadata();
    let id = metadata.reference.id();
    Failure::input(
        format!(
            "output '{id}' is binary ({}, {}) and has no lines to print",
            visible(&metadata.labels.media_type),
            units::size(metadata.byte_size)
        ),
        format!("trimtab output read --session {session} {id} --raw > FILE"),
    )
}

/// The error that ended the printing: of the store, or of standard output.
enum PrintStop {
    Store(Error),
    Out(io::Error),
}

impl PrintStop {
    fn into_failure(self, place: &StoreLocation, session: &SessionId, id: &str) -> Failure {
        match self {
            Self::Store(error) => place.failed_on(session, id, &error),
            // Damage found while streaming arrives as an I/O error.
            Self::Out(error) => match error.downcast::<Error>() {
                Ok(error) => place.failed_on(session, id, &error),
                Err(error) => Failure::Failed(error),
            },
        }
    }
}

impl From<Error> for PrintStop {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for PrintStop {
    fn from(error: io::Error) -> Self {
        Self::Out(error)
    }
}

/// Everything, as it was stored.
fn raw(stored: &OpenOutput) -> Result<(), PrintStop> {
    let mut out = raw_output();
    io::copy(&mut stored.reader(), &mut out)?;
    Ok(out.flush()?)
}

/// Some lines as they were stored, with their ends.
fn raw_lines(args: &OutputReadArgs, stored: &OpenOutput) -> Result<(), PrintStop> {
    let mut out = raw_output();
    let mut at = start_of(stored, args.offset)?;
    let last = args.offset.saturating_add(args.limit.unwrap_or(u64::MAX));
    // The end of the last line is the start of the next one.
    let end = if last < stored.line_count() {
        start_of(stored, last)?
    } else {
        stored.byte_size()
    };
    while at < end {
        let piece = usize::try_from(RAW_PIECE.min(end - at)).unwrap_or(PIECE);
        let bytes = stored.read_at(at, piece)?;
        out.write_all(&bytes)?;
        at += bytes.len() as u64;
    }
    Ok(out.flush()?)
}

/// The position of a line's first byte.
fn start_of(stored: &OpenOutput, line: u64) -> Result<u64, Error> {
    let mut range = LineRange::new(line, 1);
    // Only the position of the line is needed.
    range.max_line_bytes = 0;
    let lines = stored.lines(range)?.lines;
    Ok(lines.first().map_or(0, |line| line.start))
}

struct OutputPrinter<'a> {
    stored: &'a OpenOutput,
    sheet: Sheet,
    json: bool,
}

impl OutputPrinter<'_> {
    fn print(&mut self, args: &OutputReadArgs) -> Result<(), PrintStop> {
        // The store counts an empty line after the last newline. Users do not.
        let line_count = self.stored.shown_lines()?;
        let offset = args.offset;
        if offset > 0 && offset >= line_count {
            return Err(Error::PastEnd { offset, line_count }.into());
        }
        let end = offset.saturating_add(args.limit.unwrap_or(u64::MAX));
        let end = end.min(line_count);
        let mut next = Some(offset);
        while let Some(offset) = next.filter(|offset| *offset < end) {
            let mut range = LineRange::new(offset, end - offset);
            if self.json {
                range.max_line_bytes = JSON_LINE;
            }
            let lines = self.stored.lines(range)?;
            for line in &lines.lines {
                if self.json {
                    self.json_line(line)?;
                } else {
                    self.line(line)?;
                }
            }
            next = lines.next.filter(|_| !lines.lines.is_empty());
        }
        Ok(self.sheet.flush()?)
    }

    fn line(&mut self, line: &OutputLine) -> Result<(), PrintStop> {
        let number = format!("{:>5}", line.number + 1);
        self.sheet.styled(style::DIM, number)?;
        self.sheet.text("  ")?;
        self.sheet.raw_line(&line.bytes)?;
        let mut printed = line.bytes.len() as u64;
        // Print a long line in pieces, so that it is never held in memory.
        while printed < line.byte_size {
            let rest = usize::try_from(line.byte_size - printed).unwrap_or(PIECE);
            let piece = self.stored.read_at(line.start + printed, rest.min(PIECE))?;
            if piece.is_empty() {
                break;
            }
            self.sheet.raw_line(&piece)?;
            printed += piece.len() as u64;
        }
        Ok(self.sheet.end()?)
    }

    fn json_line(&mut self, line: &OutputLine) -> Result<(), PrintStop> {
        let json = json!({
            "offset": line.number,
            "text": String::from_utf8_lossy(&line.bytes),
            "byte_size": line.byte_size,
            "clipped": line.is_clipped(),
        });
        self.sheet.text(visible_json(&json))?;
        Ok(self.sheet.end()?)
    }
}
