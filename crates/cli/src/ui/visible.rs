//! Escapes foreign text for a terminal.
//!
//! Names, paths, errors, answers and outputs may contain characters that move the cursor, change
//! the terminal, reorder text or are invisible. [`VisibleWriter`] escapes everything that is
//! printed, and [`visible`] a value that must stay on one line.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::style::{MARK, split_mark};

/// Characters that are invisible or change how others are displayed: Unicode format characters,
/// line and paragraph separators, fillers and variation selectors. The two selectors that only
/// choose between text and emoji style are allowed.
const UNSEEN: [(char, char); 27] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{600}', '\u{605}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{6dd}', '\u{6dd}'),
    ('\u{70f}', '\u{70f}'),
    ('\u{890}', '\u{891}'),
    ('\u{8e2}', '\u{8e2}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fdd0}', '\u{fdef}'),
    ('\u{fe00}', '\u{fe0d}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{fffe}', '\u{ffff}'),
    ('\u{110bd}', '\u{110bd}'),
    ('\u{110cd}', '\u{110cd}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// True for a character that is invisible or controls a terminal.
pub fn is_unseen(c: char) -> bool {
    let listed = || {
        UNSEEN
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&c))
    };
    // Most characters are below the first listed one.
    c.is_control() || (c >= '\u{ad}' && listed())
}

/// Escapes a foreign value for one line.
///
/// ```
/// use trimtab_cli::ui::visible::visible;
///
/// assert_eq!(visible("a\nb\u{1b}[31m\u{202e}"), "a\\nb\\u{1b}[31m\\u{202e}");
/// assert_eq!(visible("caf\u{e9}"), "caf\u{e9}");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    escaped(text, is_unseen)
}

/// Escapes text of several lines; line breaks and tabs stay.
pub fn visible_lines(text: &str) -> Cow<'_, str> {
    let is_shown = |c: char| is_unseen(c) && c != '\n' && c != '\t';
    // The common case allocates nothing.
    if !text.contains(is_shown) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(escaped(&text.replace("\r\n", "\n"), is_shown).into_owned())
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_escaped(c) {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// JSON with every invisible or controlling character escaped, so that it can be printed anywhere
/// with the same meaning.
///
/// ```
/// use trimtab_cli::ui::visible::visible_json;
///
/// assert_eq!(visible_json(&"a\u{202e}\u{e0041}"), "\"a\\u202e\\udb40\\udc41\"");
/// ```
pub fn visible_json(value: &impl serde::Serialize) -> String {
    // Cannot fail: we print only strings, figures and lists.
    let json = serde_json::to_string(value).unwrap_or_default();
    if !json.contains(is_unseen) {
        return json;
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_unseen(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a String cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Escapes everything that could control the terminal, except our own styles.
#[derive(Debug)]
pub struct VisibleWriter<W> {
    out: W,
    has_colour: bool,
    /// The end of the last write, if its meaning depends on the next bytes.
    held: Vec<u8>,
}

impl<W: Write> VisibleWriter<W> {
    /// Writes to `out`; without `has_colour`, styles are omitted.
    pub fn new(out: W, has_colour: bool) -> Self {
        Self {
            out,
            has_colour,
            held: Vec::new(),
        }
    }

    /// True if styles are shown.
    pub fn has_colour(&self) -> bool {
        self.has_colour
    }

    /// The underlying stream, for bytes that must stay exact.
    pub fn raw(&mut self) -> &mut W {
        &mut self.out
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        for chunk in bytes.utf8_chunks() {
            let used = chunk.valid().len() + chunk.invalid().len();
            rest = rest.get(used..).unwrap_or_default();
            self.text(chunk.valid(), rest.is_empty() && chunk.invalid().is_empty())?;
            // The rest of the character may come with the next write.
            if rest.is_empty() && is_incomplete(chunk.invalid()) {
                self.held.extend_from_slice(chunk.invalid());
                break;
            }
            for byte in chunk.invalid() {
                write!(self.out, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }

    /// Writes text. A trailing carriage return waits for the next byte, because CR LF is a line
    /// end.
    fn text(&mut self, mut text: &str, is_end: bool) -> io::Result<()> {
        let is_special = |c: char| is_unseen(c) && c != '\n' && c != '\t';
        while let Some(at) = text.find(is_special) {
            let (before, special) = text.split_at_checked(at).unwrap_or((text, ""));
            self.out.write_all(before.as_bytes())?;
            let mut rest = special.chars();
            let c = rest.next().unwrap_or_default();
            text = rest.as_str();
            match c {
                '\r' if text.starts_with('\n') => {}
                '\r' if text.is_empty() && is_end => self.held.push(b'\r'),
                MARK => text = self.mark(text)?,
                c => write!(self.out, "{}", c.escape_default())?,
            }
        }
        self.out.write_all(text.as_bytes())
    }

    /// Handles the text after a mark. A foreign mark is escaped like any other character.
    fn mark<'t>(&mut self, text: &'t str) -> io::Result<&'t str> {
        let Some((sequence, rest)) = split_mark(text) else {
            write!(self.out, "{}", MARK.escape_default())?;
            return Ok(text);
        };
        if self.has_colour {
            self.out.write_all(sequence.as_bytes())?;
        }
        Ok(rest)
    }
}

/// True if the bytes are the start of a multi-byte character.
fn is_incomplete(bytes: &[u8]) -> bool {
    let read = std::str::from_utf8(bytes);
    read.is_err_and(|error| error.error_len().is_none())
}

impl<W: Write> Write for VisibleWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.held.is_empty() {
            self.bytes(bytes)?;
        } else {
            let mut all = std::mem::take(&mut self.held);
            all.extend_from_slice(bytes);
            self.bytes(&all)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        // Held bytes stay: the rest of their character may come with the next write.
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::style;
    use super::*;

    fn written(pieces: &[&[u8]], has_colour: bool) -> String {
        let mut writer = VisibleWriter::new(Vec::new(), has_colour);
        for piece in pieces {
            writer.write_all(piece).unwrap();
        }
        String::from_utf8(writer.out).unwrap()
    }

    #[test]
    fn control_characters_are_escaped() {
        let text = "\u{1b}[2Jtab\there \u{9b}31m \u{a3} \u{e9} \u{7f}\u{202e}\u{2066}\u{200b}\n";
        let shown =
            "\\u{1b}[2Jtab\there \\u{9b}31m \u{a3} \u{e9} \\u{7f}\\u{202e}\\u{2066}\\u{200b}\n";
        assert_eq!(written(&[text.as_bytes()], true), shown);
        assert_eq!(visible_lines(text), shown);
        // The result is the same if the text arrives byte by byte.
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(written(&pieces, true), shown);
    }

    #[test]
    fn invalid_utf8_is_shown() {
        assert_eq!(written(&[b"a\x9b\xff1m\xe2\x80"], true), "a\\x9b\\xff1m");
        assert_eq!(written(&[b"\xe2\x80", b"x"], true), "\\xe2\\x80x");
    }

    #[test]
    fn only_a_line_end_hides_a_carriage_return() {
        assert_eq!(written(&[b"a\r\nb\r", b"\nc\rd"], true), "a\nb\nc\\rd");
        assert_eq!(visible_lines("a\r\nb\rc"), "a\nb\\rc");
        assert_eq!(visible("a\r\n\tb"), "a\\r\\n\\tb");
    }

    #[test]
    fn foreign_style_marks_are_escaped() {
        let (bad, plain) = (style::BAD, style::TextStyle::Plain);
        let text = format!("{bad}x{bad:#}{plain}y{plain:#}");
        let mut writer = VisibleWriter::new(Vec::new(), true);
        write!(writer, "{bad}x{bad:#}{plain}y{plain:#}").unwrap();
        let styled = written(&[text.as_bytes()], true);
        assert_eq!(writer.out, styled.as_bytes());
        assert!(styled.contains('\u{1b}') && styled.ends_with("\u{1b}[0my"));
        assert_eq!(written(&[text.as_bytes()], false), "xy");
        let forged = format!("{MARK}0123456789abcdefrx");
        assert_eq!(
            written(&[forged.as_bytes()], true),
            "\\u{fdd0}0123456789abcdefrx"
        );
        assert_eq!(visible(&forged), "\\u{fdd0}0123456789abcdefrx");
    }

    #[test]
    fn emoji_are_not_escaped() {
        let text = "\u{26a0}\u{fe0f} caf\u{e9} \u{1f600} \u{4f60}\u{597d} \u{5d0}";
        assert_eq!(visible(text), text);
        assert_eq!(written(&[text.as_bytes()], true), text);
    }

    #[test]
    fn escaped_json_has_the_same_value() {
        let text = "\u{1b}\u{9b}\u{7f}\u{202e}\u{200b}\u{e0041}\n\"";
        let json = visible_json(&serde_json::json!({ "k": text }));
        assert!(!json.contains(is_unseen), "{json}");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(read["k"], text);
    }
}
