//! Finds the end of a JSON string.
//!
//! Most bytes of a request are inside strings, so scanning spends its time here. It looks at eight
//! bytes at a time.

use super::unscannable::{Unscannable, UnscannableReason};

/// The end of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StringEnd {
    /// The offset of the closing quote.
    pub(crate) quote: usize,
    /// True if the string contains escapes.
    pub(crate) escaped: bool,
}

/// Finds the end of the string whose content starts at `at`.
pub(crate) fn closing_quote(bytes: &[u8], mut at: usize) -> Result<StringEnd, Unscannable> {
    let mut escaped = false;
    while let Some(word) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let special = special_bytes(*word);
        if special == 0 {
            at += 8;
            continue;
        }
        // The word is read as little endian, so the lowest bits are the first byte.
        at += special.trailing_zeros() as usize / 8;
        match bytes.get(at) {
            Some(b'"') => return Ok(StringEnd { quote: at, escaped }),
            Some(b'\\') => at += escape(bytes, at)?,
            _ => return fail(at, UnscannableReason::ControlCharacter),
        }
        // Only an escape gets here: the other arms return.
        escaped = true;
    }
    near_the_end(bytes, at, escaped)
}

/// Scans the last few bytes of the input one by one.
fn near_the_end(bytes: &[u8], mut at: usize, mut escaped: bool) -> Result<StringEnd, Unscannable> {
    loop {
        match bytes.get(at) {
            Some(b'"') => return Ok(StringEnd { quote: at, escaped }),
            Some(b'\\') => {
                at += escape(bytes, at)?;
                escaped = true;
            }
            Some(byte) if *byte < 0x20 => return fail(at, UnscannableReason::ControlCharacter),
            Some(_) => at += 1,
            None => return fail(bytes.len(), UnscannableReason::Truncated),
        }
    }
}

fn fail<T>(offset: usize, why: UnscannableReason) -> Result<T, Unscannable> {
    Err(Unscannable { offset, why })
}

/// The length of the escape at `at`.
fn escape(bytes: &[u8], at: usize) -> Result<usize, Unscannable> {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
        Some(b'u') => match bytes.get(at + 2..at + 6) {
            Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => Ok(6),
            Some(_) => fail(at, UnscannableReason::BadEscape),
            None => fail(bytes.len(), UnscannableReason::Truncated),
        },
        Some(_) => fail(at, UnscannableReason::BadEscape),
        None => fail(bytes.len(), UnscannableReason::Truncated),
    }
}

/// The high bit of each special byte. Bytes above the first special one may be wrong, which does
/// not matter for finding the first.
fn special_bytes(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    let word = u64::from_le_bytes(word);
    // A byte is zero if subtracting one sets its high bit and the bit was not set before. The
    // exclusive or makes the wanted byte zero.
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * u64::from(b'"')));
    let backslash = zero(word ^ (ONES * u64::from(b'\\')));
    // The same for bytes below 0x20. `!word` excludes bytes from 0x80 on, which are part of UTF-8.
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(quote: usize, escaped: bool) -> StringEnd {
        StringEnd { quote, escaped }
    }

    #[test]
    fn every_special_byte_is_found_at_every_place() {
        for length in 0..300 {
            for (special, outcome) in [(b'"', true), (0x1f, false), (0, false), (b'\n', false)] {
                for filler in [b'a', 0x20, b'!', b'#', b'[', b']', 0x7f, 0x80, 0xff] {
                    let mut bytes = vec![filler; length];
                    bytes.push(special);
                    bytes.extend(vec![b'z'; length % 141]);
                    let found = closing_quote(&bytes, 0);
                    if outcome {
                        assert_eq!(found, Ok(end(length, false)));
                    } else {
                        assert_eq!(found, fail(length, UnscannableReason::ControlCharacter));
                    }
                }
            }
        }
    }

    #[test]
    fn runs_of_backslashes_are_read_the_same_everywhere() {
        for before in 0..200 {
            for run in 0..70 {
                let mut bytes = vec![b'a'; before];
                bytes.extend(vec![b'\\'; run]);
                bytes.push(b'"');
                bytes.extend(vec![b'b'; 30]);
                bytes.extend([b'"', b'c']);
                let first = before + run;
                let quote = if run % 2 == 0 { first } else { first + 31 };
                let found = closing_quote(&bytes, 0);
                assert_eq!(found, Ok(end(quote, run > 0)), "{before} {run}");
                assert_eq!(found, near_the_end(&bytes, 0, false), "{before} {run}");
            }
        }
    }

    #[test]
    fn bad_escapes_are_found_everywhere() {
        for before in 0..200 {
            let at = |bytes: &[u8]| closing_quote(&[&vec![b'a'; before], bytes].concat(), 0);
            let tail = [b'b'; 90];
            let bad = at(&[br"\x".as_slice(), &tail].concat());
            assert_eq!(bad, fail(before, UnscannableReason::BadEscape));
            let bad = at(&[br"\\\u12x4".as_slice(), &tail].concat());
            assert_eq!(bad, fail(before + 2, UnscannableReason::BadEscape));
            let good = at(&[br"\\\u12f4".as_slice(), &tail, b"\""].concat());
            assert_eq!(good, Ok(end(before + 98, true)));
        }
    }

    #[test]
    fn escapes_are_stepped_over() {
        assert_eq!(closing_quote(br#"a\"b\\" c"#, 0), Ok(end(6, true)));
        assert_eq!(closing_quote(br#"\ud83d" c"#, 0), Ok(end(6, true)));
        assert_eq!(
            closing_quote(br#"\x" c"#, 0),
            fail(0, UnscannableReason::BadEscape)
        );
        assert_eq!(
            closing_quote(br#"\u12g4""#, 0),
            fail(0, UnscannableReason::BadEscape)
        );
        assert_eq!(
            closing_quote(br"\u12", 0),
            fail(4, UnscannableReason::Truncated)
        );
        assert_eq!(
            closing_quote(br"abc", 0),
            fail(3, UnscannableReason::Truncated)
        );
    }
}
