//! Distinguishes text from binary data.

/// How many bytes of an output are sampled.
pub(crate) const SAMPLE: usize = 8 * 1024;
/// An output is binary if more than one byte in this many does not occur in text. A log with a
/// stray zero byte, or in an old Latin encoding, is still readable.
const ONE_IN: usize = 10;

/// True if the first bytes of an output are not text.
pub(crate) fn is_binary(sample: &[u8]) -> bool {
    strange_bytes(sample) * ONE_IN > sample.len()
}

/// Counts bytes that do not occur in text: invalid UTF-8 and unusual control characters. A
/// character split by the end of the sample does not count.
fn strange_bytes(bytes: &[u8]) -> usize {
    // Not strange are 7 to 13 (bell, backspace, tab, line ends, form feed) and 27 (escape, which
    // starts colours): logs contain them.
    let strange = |byte: &u8| matches!(byte, 0..=6 | 14..=26 | 28..=31);
    let mut chunks = bytes.utf8_chunks().peekable();
    let mut count = 0;
    while let Some(chunk) = chunks.next() {
        let invalid = chunk.invalid();
        let is_split = chunks.peek().is_none()
            && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none())
            && bytes.len() > invalid.len();
        if !is_split {
            count += invalid.len();
        }
        count += chunk.valid().bytes().filter(strange).count();
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_with_colour_or_a_stray_zero_are_text() {
        for text in [
            &b"\x1b[31merror\x1b[0m: no\tsuch file\r\n"[..],
            b"twenty bytes of text and one \0",
            "caf\u{e9} na\u{ef}ve".as_bytes(),
            b"stra\xdfe und gr\xfcner Wald am Morgen",
            b"cut in a char \xe2\x82",
            b"",
        ] {
            assert!(!is_binary(text), "{text:?}");
        }
        for binary in [
            &b"\x7fELF\x02\x01\x01\0\0\0\0\0"[..],
            b"a\0b\0c\0",
            &[0x80; 40],
        ] {
            assert!(is_binary(binary), "{binary:?}");
        }
    }
}
