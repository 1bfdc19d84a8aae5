//! Places where a text may be cut without changing its number of tokens.
//!
//! Both public vocabularies first split a text into pieces with a regular expression and then
//! encode each piece by itself. A piece never depends on what stands before it, so a place
//! where a piece must end, whatever follows, is a place to cut: the counts of the two sides
//! add up to the count of the whole. Two such places are easy to see from the characters on
//! both sides:
//!
//! - after a newline, when the next character is neither white space nor `/`: the only pieces
//!   that hold a newline are a run of white space up to its last newline, and punctuation with
//!   the newlines (and slashes) behind it, and both end there;
//! - between an ASCII letter or digit and an ASCII character that is neither, nor `'`: a piece
//!   of letters or digits ends there, and only `'` may continue one (`don't`).

/// True if a cut between these two neighbours changes no count.
fn is_cut(before: u8, after: char) -> bool {
    if before == b'\n' {
        return !after.is_whitespace() && after != '/';
    }
    before.is_ascii_alphanumeric()
        && after.is_ascii()
        && !after.is_ascii_alphanumeric()
        && after != '\''
}

fn cuts_at(text: &str, at: usize) -> bool {
    let before = at
        .checked_sub(1)
        .and_then(|last| text.as_bytes().get(last))
        .copied();
    let after = text.get(at..).and_then(|rest| rest.chars().next());
    match (before, after) {
        (Some(before), Some(after)) => is_cut(before, after),
        _ => false,
    }
}

/// The first cut at or behind byte `from`.
pub(super) fn next_cut(text: &str, from: usize) -> Option<usize> {
    (from.max(1)..text.len()).find(|&at| cuts_at(text, at))
}

/// The last cut of the text.
pub(super) fn last_cut(text: &str) -> Option<usize> {
    (1..text.len()).rev().find(|&at| cuts_at(text, at))
}

/// The text in chunks of about `size` bytes, cut only where the counts add up.
pub(super) fn chunks(text: &str, size: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let at = next_cut(rest, size).unwrap_or(rest.len());
        let (chunk, behind) = rest.split_at_checked(at).unwrap_or((rest, ""));
        rest = behind;
        Some(chunk)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_after_a_newline_before_text() {
        assert_eq!(next_cut("--\nb", 0), Some(3));
        assert_eq!(next_cut("--\n b", 0), None);
        assert_eq!(next_cut("--\n/b", 0), None);
        assert_eq!(next_cut("--\n\u{2003}b", 0), None);
    }

    #[test]
    fn cuts_between_a_word_and_what_follows() {
        assert_eq!(next_cut("ab cd", 0), Some(2));
        assert_eq!(next_cut("don't", 0), None);
        assert_eq!(next_cut("été", 0), None);
        assert_eq!(last_cut("a.b.c"), Some(3));
    }

    #[test]
    fn chunks_are_the_text() {
        let text = "one two\nthree, four\n\n  five".repeat(50);
        for size in [1, 7, 64, 10_000] {
            assert_eq!(chunks(&text, size).collect::<String>(), text);
        }
        assert_eq!(chunks("", 8).count(), 0);
    }
}
