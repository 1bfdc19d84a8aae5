//! Everything that is printed: colours, bars, figures, messages. No other module prints.

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
use crate::common::{ColorMode, CommonArgs};

/// Standard output for data, standard error for messages.
///
/// Only our own styles can affect the terminal; everything else is escaped: see [`visible`].
pub struct Terminal {
    out: VisibleWriter<StdoutLock<'static>>,
    err: VisibleWriter<Stderr>,
    quiet: bool,
    /// True if messages are lines of JSON.
    is_log: bool,
}

/// A message as a line of a log.
#[derive(serde::Serialize)]
struct LogLine<'a> {
    time_ms: u64,
    level: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

impl Terminal {
    /// Opens both streams, with colour if it is wanted.
    pub fn new(common: &CommonArgs) -> Self {
        let choice = match common.color {
            ColorMode::Auto => None,
            ColorMode::Always => Some(ColorChoice::Always),
            ColorMode::Never => Some(ColorChoice::Never),
        };
        let (out, err) = (io::stdout(), io::stderr());
        let out_choice = choice.unwrap_or_else(|| AutoStream::choice(&out));
        let err_choice = choice.unwrap_or_else(|| AutoStream::choice(&err));
        Self {
            out: VisibleWriter::new(out.lock(), out_choice != ColorChoice::Never),
            err: VisibleWriter::new(err, err_choice != ColorChoice::Never),
            quiet: common.quiet,
            is_log: false,
        }
    }

    /// From now on, standard error is a log for machines: each line of each message is one JSON
    /// object. On a terminal, messages stay as they are.
    pub fn log_messages(&mut self) {
        self.is_log = !self.is_watched();
    }

    /// Writes an entry of the log: as an object to a log for machines, else as the text that
    /// `line` gives. `--quiet` suppresses it.
    pub fn log(&mut self, entry: &impl serde::Serialize, line: impl FnOnce() -> String) {
        if self.is_log && !self.quiet {
            // If printing fails, there is nowhere to report it.
            let _ = writeln!(self.err, "{}", visible_json(entry));
        } else {
            self.note(&line());
        }
    }

    fn log_text(&mut self, level: &str, message: &str, hint: Option<&str>) {
        for message in message.lines().map(str::trim_start) {
            // A message of several lines may contain a warning.
            let warning = message.strip_prefix("warning: ");
            let (level, message) = warning.map_or((level, message), |text| ("warning", text));
            let line = LogLine {
                time_ms: trimtab::store::now_millis(),
                level,
                message,
                hint,
            };
            let _ = writeln!(self.err, "{}", visible_json(&line));
        }
    }

    /// The stream for text.
    pub fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// The stream for bytes that another program may read: escaped only on a terminal.
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

    /// Prints a report as a line of JSON, or as text.
    pub fn report(
        &mut self,
        as_json: bool,
        value: &impl serde::Serialize,
        text: &str,
    ) -> io::Result<()> {
        if as_json {
            return self.json(value);
        }
        self.out.write_all(text.as_bytes())
    }

    /// True if standard output is coloured.
    pub fn has_colour(&self) -> bool {
        self.out.has_colour()
    }

    /// True if a progress bar may be shown.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// True if standard error is a terminal.
    pub fn is_watched(&self) -> bool {
        io::stderr().is_terminal()
    }

    /// Prints an error with its hint.
    pub fn error(&mut self, message: &str, hint: Option<&str>) {
        let (bad, dim) = (style::BAD, style::DIM);
        // A URL in the message may contain a password.
        let message = redact_urls(message);
        if self.is_log {
            let (message, own_hint) = split_hint(&message);
            return self.log_text("error", message, hint.or(own_hint));
        }
        // If printing fails, there is nowhere to report it.
        let _ = writeln!(self.err, "{bad}error:{bad:#} {}", indented(&message));
        if let Some(hint) = hint {
            let _ = writeln!(self.err, "{dim}hint:{dim:#} {}", indented(hint));
        }
    }

    /// Prints an important message on standard error.
    pub fn say(&mut self, message: &str) {
        if self.is_log {
            return self.log_text("info", message, None);
        }
        let _ = writeln!(self.err, "{message}");
    }

    /// Prints a message, unless `--quiet` is given.
    pub fn note(&mut self, message: &str) {
        if !self.quiet {
            self.say(message);
        }
    }

    /// Prints a warning, unless `--quiet` is given.
    pub fn warn(&mut self, message: &str) {
        if !self.quiet {
            let (warn, message) = (style::WARN, redact_urls(message));
            if self.is_log {
                let (message, hint) = split_hint(&message);
                return self.log_text("warning", message, hint);
            }
            let _ = writeln!(self.err, "{warn}warning:{warn:#} {}", indented(&message));
        }
    }
}

/// The width of lines on standard output, if known: from the terminal, else from `COLUMNS`.
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

/// Standard output for bytes that must stay exact, even on a terminal.
pub fn raw_output() -> StdoutLock<'static> {
    io::stdout().lock()
}

/// Erases the rows above the cursor.
pub fn erase_rows(rows: usize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if rows > 0 {
        // Moves up and erases everything below.
        write!(out, "\u{1b}[{rows}A\r\u{1b}[J")?;
    }
    out.flush()
}

/// Splits a message from the hint at its end, if it has one.
pub fn split_hint(message: &str) -> (&str, Option<&str>) {
    let parts = message.split_once("\nhint: ");
    parts.map_or((message, None), |(message, hint)| (message, Some(hint)))
}

/// Indents all lines except the first, so that foreign text cannot imitate our own lines.
fn indented(message: &str) -> String {
    let (message, hint) = split_hint(message);
    let mut text = message.replace('\n', "\n  ");
    if let Some(hint) = hint {
        text.push_str("\nhint: ");
        text.push_str(&hint.replace('\n', "\n  "));
    }
    text
}
