//! Where a JSON string ends.
//!
//! Most bytes of a request stand inside strings, so this is where scanning spends its time:
//! eight bytes at a time while runs are short, thirty-two once they turn out to be long.

use super::unscannable::{Unscannable, Why};

/// How many words without anything special make a run long.
const LONG: u32 = 4;

/// Where a string ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct End {
    /// The offset of the closing quote.
    pub(crate) quote: usize,
    /// True if there are escapes in the string.
    pub(crate) escaped: bool,
}

/// Where the string ends whose first byte inside is at `at`.
pub(crate) fn closing_quote(bytes: &[u8], mut at: usize) -> Result<End, Unscannable> {
    let mut escaped = false;
    let mut plain_words = 0;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let special = special_bytes(*word);
        if special == 0 {
            at += 8;
            plain_words += 1;
            if plain_words == LONG {
                plain_words = 0;
                at += long_run(bytes.get(at..).unwrap_or_default());
            }
            continue;
        }
        plain_words = 0;
        at += special.trailing_zeros() as usize / 8;
        match bytes.get(at) {
            Some(b'"') => return Ok(End { quote: at, escaped }),
            Some(b'\\') => at += escape(bytes, at)?,
            _ => return fail(at, Why::ControlCharacter),
        }
        escaped = true;
    }
    near_the_end(bytes, at, escaped)
}

/// The last few bytes of the input, one by one.
fn near_the_end(bytes: &[u8], mut at: usize, mut escaped: bool) -> Result<End, Unscannable> {
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(End { quote: at, escaped }),
            Some(b'\\') => {
                at += escape(bytes, at)?;
                escaped = true;
            }
            Some(byte) if *byte < 0x20 => return fail(at, Why::ControlCharacter),
            Some(_) => at += 1,
            None => return fail(bytes.len(), Why::Truncated),
        }
    }
}

fn fail<T>(offset: usize, why: Why) -> Result<T, Unscannable> {
    Err(Unscannable { offset, why })
}

/// The length of the escape that starts at `at`.
fn escape(bytes: &[u8], at: usize) -> Result<usize, Unscannable> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => match bytes.get(at + 2..at + 6) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(6),
            Some(_) => fail(at, Why::BadEscape),
            None => fail(bytes.len(), Why::Truncated),
        },
        Some(_) => fail(at, Why::BadEscape),
        None => fail(bytes.len(), Why::Truncated),
    }
}

/// How many bytes come before the thirty-two among which something special is.
fn long_run(bytes: &[u8]) -> usize {
    let (chunks, _) = bytes.as_chunks::<32>();
    32 * chunks.iter().take_while(|chunk| is_plain(chunk)).count()
}

/// True if none of the bytes is special. Written so that the compiler makes vectors of it.
fn is_plain(chunk: &[u8; 32]) -> bool {
    !chunk
        .iter()
        .fold(false, |found, byte| found | is_special(*byte))
}

#[expect(
    clippy::needless_bitwise_bool,
    reason = "without branches the compiler makes vectors of it"
)]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte < 0x20)
}

/// The high bit of each special byte. Bytes above the first special one may be wrong, which
/// does no harm to who only looks for the first.
fn special_bytes(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    let word = u64::from_le_bytes(word);
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(quote: usize, escaped: bool) -> Result<End, Unscannable> {
        Ok(End { quote, escaped })
    }

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in 0..150 {
            for (special, outcome) in [(b'"', true), (0x1f, false), (0, false), (b'\n', false)] {
                for filler in [b'a', 0x20, b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![filler; length];
                    bytes.push(special);
                    bytes.extend(vec![b'z'; length % 41]);
                    let found = closing_quote(&bytes, 0);
                    if outcome {
                        assert_eq!(found, end(length, false));
                    } else {
                        assert_eq!(found, fail(length, Why::ControlCharacter));
                    }
                }
            }
        }
    }

    #[test]
    fn escapes_are_stepped_over() {
        assert_eq!(closing_quote(br#"a\"b\\" c"#, 0), end(6, true));
        assert_eq!(closing_quote(br#"\ud83d" c"#, 0), end(6, true));
        assert_eq!(closing_quote(br#"\x" c"#, 0), fail(0, Why::BadEscape));
        assert_eq!(closing_quote(br#"\u12g4""#, 0), fail(0, Why::BadEscape));
        assert_eq!(closing_quote(br"\u12", 0), fail(4, Why::Truncated));
        assert_eq!(closing_quote(br"abc", 0), fail(3, Why::Truncated));
    }
}
