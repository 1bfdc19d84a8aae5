//! Recognises identifiers.

use super::class::{ByteClass, COLON, DASH, DIGIT, DOT, LETTER, SIGN, UNDER, UPPER};

/// The minimum length of a name of letters and digits; `i32` and `h1` are too short.
const SHORTEST: usize = 4;
/// Longer words are keys and blobs, not names.
const LONGEST: usize = 128;

/// True for the long form of a command-line option.
pub(super) fn option(text: &str) -> bool {
    let Some(name) = text.strip_prefix("--") else {
        return false;
    };
    name.len() > 1 && name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// True if a word is an identifier: it mixes letters with digits or underscores, has inner
/// capitals, or is qualified.
pub(super) fn is_name(text: &str, classes: ByteClass) -> bool {
    if classes & LETTER == 0 {
        return classes & SIGN != 0 && is_ticket(text);
    }
    if option(text) {
        return true;
    }
    // An underscore makes even a short word a name: `n_1`.
    let shortest = if classes & UNDER == 0 { SHORTEST } else { 2 };
    if text.len() < shortest || text.len() > LONGEST {
        return false;
    }
    if classes & COLON != 0 {
        return is_qualified(text);
    }
    if classes & DOT != 0 && is_prose(text) {
        return false;
    }
    classes & (DIGIT | UNDER) != 0
        || (classes & UPPER != 0 && has_hump(text))
        || (classes & (SIGN | DASH) != 0 && is_marked(text))
}

/// True for `#123`.
fn is_ticket(text: &str) -> bool {
    text.strip_prefix('#')
        .is_some_and(|digits| digits.len() < 12 && super::class::only(digits, DIGIT))
}

/// True for `std::fmt`.
fn is_qualified(text: &str) -> bool {
    let mut parts = text.split("::");
    text.contains("::") && parts.all(|part| !part.is_empty() && !part.contains(':'))
}

/// True for the end of a sentence and the start of the next without a space: `done.Then`.
fn is_prose(text: &str) -> bool {
    let mut parts = text.split('.');
    parts.all(|part| part.bytes().skip(1).all(|byte| byte.is_ascii_lowercase()))
        && text.bytes().filter(|byte| *byte == b'.').count() == 1
}

/// True if a capital follows a small letter.
fn has_hump(text: &str) -> bool {
    let pairs = text.as_bytes().windows(2);
    pairs
        .into_iter()
        .any(|pair| matches!(pair, [b'a'..=b'z', b'A'..=b'Z']))
}

/// True for `@scope`, `$HOME`, `user@host`.
fn is_marked(text: &str) -> bool {
    text.bytes().any(|byte| matches!(byte, b'@' | b'$'))
}
