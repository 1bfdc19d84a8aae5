//! Converts stored bytes to text for the model.

use std::borrow::Cow;
use std::fmt::Write as _;

use trimtab_engine::view::grouped;

/// Replaces a byte that is not UTF-8. One byte for one byte, so that columns stay correct.
const UNREADABLE: char = '?';
/// The note after an answer that contains it.
pub(super) const UNREADABLE_NOTE: &str = "\n[trimtab: bytes that are not UTF-8 are shown as ?]";

/// A line with its number, counted from 0 and shown from 1: `%5d` and two spaces, as tools that read
/// files do.
fn numbered(line: u64, text: &str) -> String {
    format!("{:>5}  {text}", line + 1)
}

/// `bytes` without a character that is cut at their end.
fn whole_chars(bytes: &[u8]) -> &[u8] {
    let last = bytes.utf8_chunks().last();
    let rest = last.map_or(&[][..], |chunk| chunk.invalid());
    // An error without a length means that the bytes end inside a character. Other invalid bytes
    // are part of the output.
    let is_split = std::str::from_utf8(rest).is_err_and(|error| error.error_len().is_none());
    let whole = bytes.len().saturating_sub(rest.len());
    if is_split && whole > 0 {
        bytes.get(..whole).unwrap_or(bytes)
    } else {
        bytes
    }
}

/// `bytes` without a character that is cut at their beginning.
pub(super) fn from_first_char(bytes: &[u8]) -> &[u8] {
    let is_rest = |byte: &&u8| matches!(byte, 0x80..=0xbf);
    // A character has at most three continuation bytes.
    let rest = bytes.iter().take(3).take_while(is_rest).count();
    bytes.get(rest..).unwrap_or(bytes)
}

/// The bytes as text of the same length; true if some could not be shown.
fn readable(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Cow::Borrowed(text), false);
    }
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| UNREADABLE));
    }
    (Cow::Owned(text), true)
}

/// The first `bytes` of the last `rest` bytes of a line, with the number of the line, a note before
/// them, and how much is missing behind so many of them. True if some are not text.
pub(super) fn line_part(
    number: u64,
    before: &str,
    mut bytes: &[u8],
    rest: u64,
    behind: impl FnOnce(u64) -> String,
) -> (String, bool) {
    // The line was cut by bytes, perhaps inside a character.
    if (bytes.len() as u64) < rest {
        bytes = whole_chars(bytes);
    }
    let (text, strange) = readable(bytes);
    let mut shown = numbered(number, &format!("{before}{text}"));
    let given = bytes.len() as u64;
    if rest > given {
        let (more, behind) = (grouped(rest - given), behind(given));
        // Writing to a string cannot fail.
        let _ = write!(shown, " [… {more} bytes more in this line{behind}]");
    }
    (shown, strange)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_at_either_end_leave_whole_chars() {
        let text = "aé€𝄞".as_bytes();
        for cut in 1..=text.len() {
            let head = whole_chars(&text[..cut]);
            assert!(std::str::from_utf8(head).is_ok() && cut - head.len() < 4);
            assert!(std::str::from_utf8(from_first_char(&text[cut..])).is_ok());
        }
        // A byte that is wrong anywhere is no split char.
        assert_eq!(whole_chars(b"a\xff"), b"a\xff");
        assert_eq!(whole_chars(b"\xe2\x82"), b"\xe2\x82");
    }

    #[test]
    fn each_invalid_byte_becomes_one_character() {
        assert_eq!(readable("é".as_bytes()), (Cow::Borrowed("é"), false));
        let (text, unreadable) = readable(b"caf\xe9 \xe2\x82 \xff\xfe");
        assert_eq!((&*text, unreadable), ("caf? ?? ??", true));
    }
}
