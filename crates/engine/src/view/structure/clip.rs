//! Finds places to cut a text: never inside a number, a word or a visible character.

use super::fitting::{TriedAmount, largest_fitting};

/// How far back from the limit a safe place is searched.
const LOOK_BACK: usize = 4_096;
/// The bytes of a text that usually measure one unit.
const BYTES_PER_UNIT: usize = 4;

/// The longest prefix of `text` that has at most `most` bytes, measures at most `limit` and ends at
/// a safe place; none if there is none.
///
/// `size` gets the length of a prefix in bytes.
pub(super) fn clip(
    text: &str,
    most: usize,
    limit: u64,
    size: impl Fn(usize) -> u64,
) -> Option<usize> {
    let start = TriedAmount { amount: 0, size: 0 };
    let other = TriedAmount {
        amount: BYTES_PER_UNIT,
        size: 1,
    };
    let most = most.min(text.len()) + 1;
    let longest = largest_fitting(start, other, most, limit, |bytes| {
        Some(size(text.floor_char_boundary(bytes)))
    });
    let kept = safe_before(text, text.floor_char_boundary(longest))?;
    // White space before the note about the missing rest is a waste.
    Some(text.get(..kept)?.trim_end().len())
}

/// The last safe place at or before byte `at`, if it is not too far back.
pub(super) fn safe_before(text: &str, at: usize) -> Option<usize> {
    let head = text.get(..at)?;
    let mut next = text.get(at..)?.chars().next();
    for (start, prev) in head.char_indices().rev().take(LOOK_BACK) {
        if next.is_none_or(|next| is_safe(prev, next)) {
            return Some(start + prev.len_utf8());
        }
        next = Some(prev);
    }
    None
}

/// True if a cut between `prev` and `next` splits nothing.
fn is_safe(prev: char, next: char) -> bool {
    if is_combining(next) || is_combining(prev) {
        return false;
    }
    let spaced = |c: char| c.is_whitespace() || is_unspaced(c);
    if spaced(prev) || spaced(next) {
        return true;
    }
    // `1,234` and `2;31` are numbers and codes; `a,b` and `},{` are not.
    let closes = matches!(prev, ',' | ';' | '|' | ')' | ']' | '}' | '>' | '"' | '&');
    closes && !next.is_numeric()
}

/// True for characters that combine with their neighbours: accents, joiners, variation selectors,
/// flags, skin tones.
fn is_combining(c: char) -> bool {
    matches!(
        u32::from(c),
        0x0300..=0x036F
            | 0x1AB0..=0x1AFF
            | 0x1DC0..=0x1DFF
            | 0x200B..=0x200F
            | 0x2060..=0x206F
            | 0x20D0..=0x20FF
            | 0x3099..=0x309A
            | 0xFE00..=0xFE0F
            | 0xFE20..=0xFE2F
            | 0xFEFF
            | 0x1F1E6..=0x1F1FF
            | 0x1F3FB..=0x1F3FF
            | 0xE0000..=0xE01EF
    )
}

/// True for scripts without spaces between words, and for emoji.
fn is_unspaced(c: char) -> bool {
    matches!(
        u32::from(c),
        0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF | 0xFF00..=0xFF0F
            | 0x1F300..=0x1FAFF | 0x20000..=0x3FFFF
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str, at: usize) -> &str {
        text.get(..safe_before(text, text.floor_char_boundary(at)).unwrap_or(0))
            .unwrap()
    }

    #[test]
    fn words_numbers_and_codes_stay_whole() {
        assert_eq!(head("alpha beta", 7), "alpha ");
        assert_eq!(head("of 1,234,567 bytes", 6), "of ");
        assert_eq!(head("pi is 3.14159", 9), "pi is ");
        assert_eq!(head(r#"{"a":1},{"b":2}"#, 9), r#"{"a":1},"#);
        assert_eq!(head("\u{1b}[1;31mred", 4), "");
        assert_eq!(head("unbroken", 5), "");
    }

    #[test]
    fn cut_never_splits_a_grapheme() {
        let family = "x 👩\u{200d}👩\u{200d}👧";
        for at in 3..family.len() {
            assert_eq!(head(family, at), "x ", "at {at}");
        }
        assert_eq!(head("x e\u{301}", 3), "x ");
        assert_eq!(head("漢字かな", 7), "漢字");
    }

    #[test]
    fn the_longest_start_that_fits_is_found() {
        let text = "one two three four";
        assert_eq!(clip(text, text.len(), 9, |bytes| bytes as u64), Some(7));
        assert_eq!(clip(text, text.len(), 2, |bytes| bytes as u64), None);
        assert_eq!(clip(text, 13, 0, |_| 0), Some(13));
    }
}
