//! What the user sees: colour, bars, figures, messages. Nothing is printed anywhere else.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "everything is made visible here"
)]

pub mod bar;
pub mod clipped;
pub mod columns;
pub mod number;
pub mod progress;
pub mod sheet;
pub mod style;
pub mod units;
pub mod visible;

use std::io::{self, IsTerminal, Stderr, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use terminal_size::{Width, terminal_size_of};
use trimtab::redact::redact_urls;

use self::visible::{VisibleWriter, visible_json};
use crate::common::{Color, Common};

/// Standard output for data, standard error for everything that is said about it.
///
/// Whatever is printed, nothing in it acts on the terminal but styles of ours: see
/// [`visible`].
pub struct Terminal {
    out: VisibleWriter<StdoutLock<'static>>,
    err: VisibleWriter<Stderr>,
    quiet: bool,
}

impl Terminal {
    /// Both streams, with colour where it is wanted.
    pub fn new(common: &Common) -> Self {
        let choice = match common.color {
            Color::Auto => None,
            Color::Always => Some(ColorChoice::Always),
            Color::Never => Some(ColorChoice::Never),
        };
        let (out, err) = (io::stdout(), io::stderr());
        let out_choice = choice.unwrap_or_else(|| AutoStream::choice(&out));
        let err_choice = choice.unwrap_or_else(|| AutoStream::choice(&err));
        Self {
            out: VisibleWriter::new(out.lock(), out_choice != ColorChoice::Never),
            err: VisibleWriter::new(err, err_choice != ColorChoice::Never),
            quiet: common.quiet,
        }
    }

    /// Where text goes.
    pub fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// Where bytes go that somebody else will read: as they are, except on a terminal.
    pub fn data(&mut self) -> &mut dyn Write {
        if is_terminal() {
            &mut self.out
        } else {
            self.out.raw()
        }
    }

    /// Prints a line of JSON.
    pub fn json(&mut self, value: &impl serde::Serialize) -> io::Result<()> {
        writeln!(self.out, "{}", visible_json(value))
    }

    /// True if data goes out in colour.
    pub fn has_colour(&self) -> bool {
        self.out.has_colour()
    }

    /// True if a progress bar may be shown.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// True if a person may be watching what is said.
    pub fn is_watched(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Says that something went wrong, and the way out.
    pub fn error(&mut self, message: &str, hint: Option<&str>) {
        let (bad, dim) = (style::BAD, style::DIM);
        // An address in it may have come with a password.
        let message = redact_urls(message);
        // There is nowhere left to say that even this failed.
        let _ = writeln!(self.err, "{bad}error:{bad:#} {}", indented(&message));
        if let Some(hint) = hint {
            let _ = writeln!(self.err, "{dim}hint:{dim:#} {}", indented(hint));
        }
    }

    /// Says what has to be known, on standard error.
    pub fn say(&mut self, message: &str) {
        let _ = writeln!(self.err, "{message}");
    }

    /// Says what was done, unless nobody wants to know.
    pub fn note(&mut self, message: &str) {
        if !self.quiet {
            let _ = writeln!(self.err, "{message}");
        }
    }

    /// Says what was passed over, unless nobody wants to know.
    pub fn warn(&mut self, message: &str) {
        if !self.quiet {
            let (warn, message) = (style::WARN, redact_urls(message));
            let _ = writeln!(self.err, "{warn}warning:{warn:#} {}", indented(&message));
        }
    }
}

/// How many columns the lines on standard output may have, where that is known: those of the
/// terminal, else what `COLUMNS` says.
pub fn line_width() -> Option<usize> {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let seen = terminal_size_of(io::stdout());
    let seen = seen.map(|(Width(width), _)| usize::from(width));
    seen.or_else(columns).filter(|width| *width > 0)
}

/// True if standard output is a terminal.
pub fn is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Standard output for bytes that the user wants exactly as they are, even on a terminal.
pub fn raw_output() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// Takes the rows above the cursor away from the terminal.
pub fn erase_rows(rows: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if rows > 0 {
        // Up, and everything from there.
        write!(out, "\u{1b}[{rows}A\r\u{1b}[J")?;
    }
    out.flush()
}

/// Lines behind the first one are indented: text from elsewhere cannot pass for a line of ours.
fn indented(message: &str) -> String {
    // Some messages bring their hint along.
    let (message, hint) = message
        .split_once("\nhint: ")
        .map_or((message, None), |(message, hint)| (message, Some(hint)));
    let mut text = message.replace('\n', "\n  ");
    if let Some(hint) = hint {
        text.push_str("\nhint: ");
        text.push_str(&hint.replace('\n', "\n  "));
    }
    text
}
