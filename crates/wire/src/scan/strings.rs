//! Where a JSON string ends.
//!
//! Most bytes of a request stand inside strings, so this is where scanning spends its time:
//! eight bytes at a time while runs are short, thirty-two once they turn out to be long.

use super::unscannable::{Unscannable, Why};

/// How many words are looked at one by one before a run counts as long.
const SHORT: usize = 4;

/// The offset of the quote that closes the string whose first byte inside is at `at`.
pub(crate) fn closing_quote(bytes: &[u8], mut at: usize) -> Result<usize, Unscannable> {
    loop {
        at += plain_run(bytes.get(at..).unwrap_or_default());
        match bytes.get(at) {
            Some(b'"') => return Ok(at),
            Some(b'\\') => at += escape(bytes, at)?,
            Some(_) => return fail(at, Why::ControlCharacter),
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

/// How many bytes come before the first quote, backslash or control character.
fn plain_run(bytes: &[u8]) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    let mut run = 0;
    for word in words.iter().take(SHORT) {
        let special = special_bytes(*word);
        if special != 0 {
            return run + special.trailing_zeros() as usize / 8;
        }
        run += 8;
    }
    let (chunks, _) = bytes.get(run..).unwrap_or_default().as_chunks::<32>();
    run += 32 * chunks.iter().take_while(|chunk| is_plain(chunk)).count();
    run + plain_end(bytes.get(run..).unwrap_or_default())
}

/// The end of a long run: at most thirty-two bytes away, unless the input ends first.
fn plain_end(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let special = special_bytes(*word);
        if special != 0 {
            return 8 * number + special.trailing_zeros() as usize / 8;
        }
    }
    let plain = tail.iter().take_while(|byte| !is_special(**byte)).count();
    8 * words.len() + plain
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

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in 0..150 {
            for (special, outcome) in [(b'"', true), (0x1f, false), (0, false), (b'\n', false)] {
                for filler in [b'a', 0x20, b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![filler; length];
                    bytes.push(special);
                    bytes.extend(vec![b'z'; 40]);
                    let found = closing_quote(&bytes, 0);
                    if outcome {
                        assert_eq!(found, Ok(length));
                    } else {
                        assert_eq!(found, fail(length, Why::ControlCharacter));
                    }
                }
            }
        }
    }

    #[test]
    fn escapes_are_stepped_over() {
        assert_eq!(closing_quote(br#"a\"b\\" c"#, 0), Ok(6));
        assert_eq!(closing_quote(br#"\ud83d" c"#, 0), Ok(6));
        assert_eq!(closing_quote(br#"\x" c"#, 0), fail(0, Why::BadEscape));
        assert_eq!(closing_quote(br#"\u12g4""#, 0), fail(0, Why::BadEscape));
        assert_eq!(closing_quote(br"\u12", 0), fail(4, Why::Truncated));
        assert_eq!(closing_quote(br"abc", 0), fail(3, Why::Truncated));
    }
}
