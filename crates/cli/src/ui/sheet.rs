//! Printing what tools printed.
//!
//! Their bytes go out as they are, except on a terminal: there, characters that act on it or are
//! not seen become visible.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use super::style::TextStyle;
use super::visible::VisibleWriter;

/// Written at a time.
const BUFFER: usize = 64 * 1024;

/// Standard output for bytes of others between text of ours.
pub struct Sheet<W: Write = BufWriter<StdoutLock<'static>>> {
    out: VisibleWriter<W>,
    is_terminal: bool,
}

impl Sheet {
    /// On standard output, with colour if `colour`.
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
    /// Text of ours.
    pub fn ours(&mut self, text: impl Display) -> io::Result<()> {
        write!(self.out, "{text}")
    }

    /// Text of ours in a style, where there is colour.
    pub fn styled(&mut self, style: TextStyle, text: impl Display) -> io::Result<()> {
        self.ours(format_args!("{style}{text}{style:#}"))
    }

    /// Begins a style, where there is colour.
    pub fn start(&mut self, style: TextStyle) -> io::Result<()> {
        self.ours(style)
    }

    /// Ends a style, where there is colour.
    pub fn stop(&mut self, style: TextStyle) -> io::Result<()> {
        self.ours(format_args!("{style:#}"))
    }

    /// Bytes of a line of others.
    pub fn theirs(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_terminal {
            self.out.write_all(bytes)
        } else {
            self.out.raw().write_all(bytes)
        }
    }

    /// The end of a line.
    pub fn end(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")
    }

    /// Writes what is still held back.
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
            sheet.theirs(bytes).unwrap();
        }
        sheet.end().unwrap();
        sheet.out.raw().clone()
    }

    #[test]
    fn bytes_are_visible_on_a_terminal_only() {
        let output: &[&[u8]] = &[b"\x1b[2J", b"\xc2", b"\x9b\xff\r"];
        assert_eq!(shown(output, true), b"\\u{1b}[2J\\u{9b}\\xff\n");
        assert_eq!(shown(output, false), b"\x1b[2J\xc2\x9b\xff\r\n");
    }
}
