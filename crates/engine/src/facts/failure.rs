//! Recognises lines that look like errors.

use memchr::{memchr, memrchr};
use trimtab_model::work;

use super::class::WordList;

/// The maximum of bytes of a line that is shown.
const LONGEST: usize = 240;
/// The bytes before the error word that are shown of a long line.
const LEAD: usize = 80;
/// The bytes on either side of an error word that are examined. A very long line must not be read
/// again for every word in it.
const LOOKED_AT: usize = 1 << 10;

/// Error words, and the second words of [`PAIRS`].
static WORDS: WordList = WordList::new(
    "abort aborted assertion cannot conflict crashed denied error errors exception fail \
     failed fails failure failures fatal forbidden invalid killed mismatched panic panicked \
     refused rejected segfault segmentation timeout traceback unable undefined unreachable \
     found file out by",
);
/// Pairs of words that indicate an error only together.
const PAIRS: [(&str, &str); 4] = [
    ("not", "found"),
    ("such", "file"),
    ("timed", "out"),
    ("caused", "by"),
];

/// True if the word from `start` to `end` has the length and the first letter of an error word.
/// Most words do not.
#[inline]
pub(super) fn may_be(bytes: &[u8], start: usize, end: usize) -> bool {
    let first = bytes.get(start).copied().unwrap_or(0);
    WORDS.may_have(first, end - start)
}

/// True for the name of an error, such as the class of an exception.
pub(super) fn names_an_error(word: &str) -> bool {
    // One byte rules out most words before they are compared.
    let end = match word.as_bytes().last() {
        Some(b'r') => "Error",
        Some(b'n') => "Exception",
        Some(b'e') => "Failure",
        Some(b'c') => "Panic",
        _ => return false,
    };
    word.ends_with(end)
}

/// The error line around the word from `start` to `end`, if that is an error word.
pub(super) fn line(text: &str, start: usize, end: usize) -> Option<(usize, usize)> {
    let word = text.get(start..end)?;
    let bytes = text.as_bytes();
    let first = text.ceil_char_boundary(start.saturating_sub(LOOKED_AT));
    let last = text.floor_char_boundary(end + LOOKED_AT);
    work::step_bytes(last - first);
    let line_start = memrchr(b'\n', bytes.get(first..start)?).map_or(first, |at| first + at + 1);
    let line_end = memchr(b'\n', bytes.get(end..last)?).map_or(last, |at| end + at);
    let before = text.get(line_start..start)?;
    let after = text.get(end..line_end)?;
    let pair = PAIRS
        .iter()
        .find(|(_, second)| word.eq_ignore_ascii_case(second));
    // The words of a pair are common on their own: `found` and `out` need the word before them.
    let gives_away = match pair {
        Some((first, _)) => last_word(before).eq_ignore_ascii_case(first),
        None => WORDS.has(word) || names_an_error(word),
    };
    if !gives_away || is_denied(before, after) || is_passed_check(before, after) {
        return None;
    }
    // The error word must be in the part that is shown, so the cut starts shortly before it.
    let from = text.ceil_char_boundary(line_start.max(start.saturating_sub(LEAD)));
    let to = text
        .floor_char_boundary(line_end.min(from + LONGEST))
        .max(end);
    let line = text.get(from..to)?;
    let from = to - line.trim_start().len();
    Some((from, from + line.trim().len()))
}

fn last_word(before: &str) -> &str {
    let words = before.trim_end_matches([' ', '\t']);
    words
        .rsplit([' ', '\t', '"', '(', ','])
        .next()
        .unwrap_or_default()
}

/// True if the line says that there was no such error: `0 errors`, `"error": null`.
fn is_denied(before: &str, after: &str) -> bool {
    if ["0", "no", "No", "without", "zero"].contains(&last_word(before)) {
        return true;
    }
    let Some(value) = after.trim_start_matches('"').strip_prefix([':', '=']) else {
        return false;
    };
    let value = value.trim_start();
    // The value must end there: `0.5` and `nullable` are not empty.
    let whole = |empty: &str| {
        let rest = value.strip_prefix(empty);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
    };
    ["null", "None", "false", "0", "\"\"", "[]", "{}"]
        .iter()
        .any(|empty| whole(empty))
}

/// True for the line of a check that passed, whatever its name says.
fn is_passed_check(before: &str, after: &str) -> bool {
    let end = after.trim_end();
    let ended = [" ok", "PASSED", " passed"]
        .iter()
        .any(|word| end.ends_with(word));
    ended || ["✓", "✔", "PASS "].iter().any(|word| before.contains(word))
}
