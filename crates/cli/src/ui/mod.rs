//! What the user sees: colour, bars, figures, messages.

pub mod bar;
pub mod columns;
pub mod number;
pub mod progress;
pub mod sheet;
pub mod style;
pub mod units;

use std::io::{self, IsTerminal, Stderr, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use trimtab::redact::redact_urls;

use crate::args::{Color, Common};

/// Standard output for data, standard error for everything that is said about it.
pub struct Terminal {
    out: AutoStream<StdoutLock<'static>>,
    err: AutoStream<Stderr>,
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
            out: AutoStream::new(out.lock(), out_choice),
            err: AutoStream::new(err, err_choice),
            quiet: common.quiet,
        }
    }

    /// Where data goes.
    pub fn out(&mut self) -> &mut impl Write {
        &mut self.out
    }

    /// True if data goes out in colour.
    pub fn has_colour(&self) -> bool {
        self.out.current_choice() != ColorChoice::Never
    }

    /// True if a progress bar may be shown.
    pub fn shows_progress(&self) -> bool {
        !self.quiet && io::stderr().is_terminal()
    }

    /// Says that something went wrong, and the way out.
    pub fn error(&mut self, message: &str, hint: Option<&str>) {
        let (bad, dim) = (style::BAD, style::DIM);
        // An address in it may have come with a password.
        let message = redact_urls(message);
        // There is nowhere left to say that even this failed.
        let _ = writeln!(self.err, "{bad}error:{bad:#} {message}");
        if let Some(hint) = hint {
            let _ = writeln!(self.err, "{dim}hint:{dim:#} {hint}");
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
            let _ = writeln!(self.err, "{warn}warning:{warn:#} {message}");
        }
    }
}
