//! Printing what tools printed.
//!
//! Their bytes go out as they are, except on a terminal: there, control characters become
//! visible, so that no output can move the cursor, hide text or change the terminal.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, StdoutLock, Write};

use anstyle::Style;

/// Written at a time.
const BUFFER: usize = 64 * 1024;

/// Standard output for bytes of others between text of ours.
pub struct Sheet<W: Write = BufWriter<StdoutLock<'static>>> {
    out: W,
    visible: bool,
    colour: bool,
    /// The last byte was the first of two that may be a control character.
    held: bool,
}

impl Sheet {
    /// On standard output, with colour if `colour`.
    pub fn new(colour: bool) -> Self {
        let out = io::stdout();
        Self {
            visible: out.is_terminal(),
            out: BufWriter::with_capacity(BUFFER, out.lock()),
            colour,
            held: false,
        }
    }
}

impl<W: Write> Sheet<W> {
    /// Text of ours.
    pub fn ours(&mut self, text: impl Display) -> io::Result<()> {
        write!(self.out, "{text}")
    }

    /// Text of ours in a style, where there is colour.
    pub fn styled(&mut self, style: Style, text: impl Display) -> io::Result<()> {
        self.start(style)?;
        self.ours(text)?;
        self.stop(style)
    }

    /// Begins a style, where there is colour.
    pub fn start(&mut self, style: Style) -> io::Result<()> {
        if self.colour {
            write!(self.out, "{style}")?;
        }
        Ok(())
    }

    /// Ends a style, where there is colour.
    pub fn stop(&mut self, style: Style) -> io::Result<()> {
        if self.colour {
            write!(self.out, "{style:#}")?;
        }
        Ok(())
    }

    /// Bytes of a line of others.
    pub fn theirs(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.visible {
            return self.out.write_all(bytes);
        }
        for byte in bytes {
            self.visible_byte(*byte)?;
        }
        Ok(())
    }

    fn visible_byte(&mut self, byte: u8) -> io::Result<()> {
        // U+0080 to U+009F are control characters in two bytes.
        if std::mem::take(&mut self.held) {
            match byte {
                0x80..=0x9f => return write!(self.out, "<{byte:02x}>"),
                _ => self.out.write_all(&[0xc2])?,
            }
        }
        match byte {
            0xc2 => self.held = true,
            b'\t' => self.out.write_all(b"\t")?,
            0..=31 | 127 => self.out.write_all(&[b'^', byte ^ 0x40])?,
            byte => self.out.write_all(&[byte])?,
        }
        Ok(())
    }

    /// The end of a line.
    pub fn end(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.held) {
            self.out.write_all(&[0xc2])?;
        }
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

/// A name that others chose, fit for one line.
///
/// ```
/// assert_eq!(trimtab_cli::ui::sheet::name("a\nb\u{1b}[31m"), "a\\nb\\u{1b}[31m");
/// ```
pub fn name(text: &str) -> String {
    let visible = |c: char| {
        if c.is_control() {
            c.escape_default().to_string()
        } else {
            c.to_string()
        }
    };
    text.chars().map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[&[u8]], visible: bool) -> Vec<u8> {
        let mut sheet = Sheet {
            out: Vec::new(),
            visible,
            colour: false,
            held: false,
        };
        for bytes in bytes {
            sheet.theirs(bytes).unwrap();
        }
        sheet.end().unwrap();
        sheet.out
    }

    #[test]
    fn nothing_can_act_on_a_terminal() {
        let output = b"\x1b[2Jtab\there \xc2\x9b31m \xc2\xa3 \xc3\xa9 \x7f";
        let text = "^[[2Jtab\there <9b>31m \u{a3} \u{e9} ^?\n";
        assert_eq!(shown(&[output], true), text.as_bytes());
        // Not even when it comes in pieces.
        assert_eq!(shown(&[b"\xc2", b"\x9b", b"\xc2"], true), b"<9b>\xc2\n");
    }

    #[test]
    fn elsewhere_bytes_are_left_as_they_are() {
        let output = b"\x1b[2J\xc2\x9b\xff\r";
        assert_eq!(shown(&[output], false), b"\x1b[2J\xc2\x9b\xff\r\n");
    }
}
