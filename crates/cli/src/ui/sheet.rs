//! Prints outputs of tools.
//!
//! Their bytes are printed unchanged, except on a terminal, where invisible characters and
//! characters that control it are escaped.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::style::TextStyle;
use super::visible::VisibleWriter;

/// The size of the write buffer.
const BUFFER: usize = 64 * 1024;

/// Standard output for foreign bytes mixed with our own text.
pub struct Sheet<W: Write = BufWriter<StdoutLock<'static>>> {
    out: VisibleWriter<W>,
    is_terminal: bool,
}

impl Sheet {
    /// Prints to standard output, with colour if `colour`.
    pub fn new(colour: bool) -> Self {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        let out = BufWriter::with_capacity(BUFFER, out.lock());
        Self {
            out: VisibleWriter::new(out, colour),
            is_terminal,
        }
    }
}

impl<W: Write> Sheet<W> {
    /// Prints our own text.
    pub fn text(&mut self, text: impl Display) -> io::Result<()> {
        write!(self.out, "{text}")
    }

    /// Prints our own text in a style, if there is colour.
    pub fn styled(&mut self, style: TextStyle, text: impl Display) -> io::Result<()> {
        self.text(format_args!("{style}{text}{style:#}"))
    }

    /// Starts a style, if there is colour.
    pub fn start(&mut self, style: TextStyle) -> io::Result<()> {
        self.text(style)
    }

    /// Ends a style, if there is colour.
    pub fn stop(&mut self, style: TextStyle) -> io::Result<()> {
        self.text(format_args!("{style:#}"))
    }

    /// Prints foreign bytes of one line.
    pub fn raw_line(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_terminal {
            self.out.write_all(bytes)
        } else {
            self.out.raw().write_all(bytes)
        }
    }

    /// Ends the line.
    pub fn end(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")
    }

    /// Flushes the buffer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W: Write> fmt::Debug for Sheet<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sheet").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[&[u8]], is_terminal: bool) -> Vec<u8> {
        let mut sheet = Sheet {
            out: VisibleWriter::new(Vec::new(), false),
            is_terminal,
        };
        for bytes in bytes {
            sheet.raw_line(bytes).unwrap();
        }
        sheet.end().unwrap();
        sheet.out.raw().clone()
    }

    #[test]
    fn bytes_are_escaped_on_a_terminal_only() {
        let output: &[&[u8]] = &[b"\x1b[2J", b"\xc2", b"\x9b\xff\r"];
        assert_eq!(shown(output, true), b"\\u{1b}[2J\\u{9b}\\xff\n");
        assert_eq!(shown(output, false), b"\x1b[2J\xc2\x9b\xff\r\n");
    }
}
