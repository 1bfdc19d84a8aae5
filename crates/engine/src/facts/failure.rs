//! Lines that look like errors.

use memchr::{memchr, memrchr};
use trimtab_model::work;

use super::class::FirstLetters;

/// Bytes of a line that is not shown whole.
const LONGEST: usize = 240;
/// Bytes before the word that gives a long line away.
const LEAD: usize = 80;
/// Bytes of a line that are looked at on either side of such a word: a line without end must not
/// be read again for every word in it.
const LOOKED_AT: usize = 1 << 10;

/// The words that give an error line away, in small letters.
const WORDS: [&str; 31] = [
    "abort",
    "aborted",
    "assertion",
    "cannot",
    "conflict",
    "crashed",
    "denied",
    "error",
    "errors",
    "exception",
    "fail",
    "failed",
    "fails",
    "failure",
    "failures",
    "fatal",
    "forbidden",
    "invalid",
    "killed",
    "mismatched",
    "panic",
    "panicked",
    "refused",
    "rejected",
    "segfault",
    "segmentation",
    "timeout",
    "traceback",
    "unable",
    "undefined",
    "unreachable",
];

/// The second words of [`PAIRS`].
const SECONDS: [&str; 4] = ["found", "file", "out", "by"];

/// Words that do so behind another one.
const PAIRS: [(&str, &str); 4] = [
    ("not", "found"),
    ("such", "file"),
    ("timed", "out"),
    ("caused", "by"),
];

/// For each length of a word, the first letters of [`WORDS`] and of [`PAIRS`].
static FIRST_LETTERS: FirstLetters = FirstLetters::of(&WORDS).and(&SECONDS);

/// True if the word from `start` to `end` has the length and the first letter of one that
/// gives an error away. Most words do not.
#[inline]
pub(super) fn may_be(bytes: &[u8], start: usize, end: usize) -> bool {
    let first = bytes.get(start).copied().unwrap_or(0);
    FIRST_LETTERS.may_be(first, end - start)
}

/// True for the name of an error, as exceptions have it.
pub(super) fn names_an_error(word: &str) -> bool {
    let end = match word.as_bytes().last() {
        Some(b'r') => "Error",
        Some(b'n') => "Exception",
        Some(b'e') => "Failure",
        Some(b'c') => "Panic",
        _ => return false,
    };
    word.ends_with(end)
}

/// The error line that the word from `start` to `end` gives away, if it does.
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
    let gives_away = WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
        || is_second(before, word)
        || names_an_error(word);
    if !gives_away || is_denied(before, after) || passed(before, after) {
        return None;
    }
    let from = start_of(text, line_start, start);
    let to = end_of(text, from, line_end).max(end);
    Some(trim(text, from, to))
}

fn is_second(before: &str, word: &str) -> bool {
    let mut pairs = PAIRS.iter();
    pairs.any(|(first, second)| word.eq_ignore_ascii_case(second) && ends_with_word(before, first))
}

fn ends_with_word(before: &str, word: &str) -> bool {
    let last = last_word(before);
    last.eq_ignore_ascii_case(word)
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
    let whole = |empty: &str| {
        let rest = value.strip_prefix(empty);
        rest.is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '.'))
    };
    ["null", "None", "false", "0", "\"\"", "[]", "{}"]
        .iter()
        .any(|empty| whole(empty))
}

/// True for the line of a check that went well, whatever its name says.
fn passed(before: &str, after: &str) -> bool {
    let end = after.trim_end();
    let ended = [" ok", "PASSED", " passed"]
        .iter()
        .any(|word| end.ends_with(word));
    ended || ["✓", "✔", "PASS "].iter().any(|word| before.contains(word))
}

fn start_of(text: &str, line_start: usize, word: usize) -> usize {
    let from = line_start.max(word.saturating_sub(LEAD));
    (from..=word)
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(word)
}

fn end_of(text: &str, from: usize, line_end: usize) -> usize {
    let to = line_end.min(from + LONGEST);
    (from..=to)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(from)
}

fn trim(text: &str, from: usize, to: usize) -> (usize, usize) {
    let line = text.get(from..to).unwrap_or_default();
    let led = line.len() - line.trim_start().len();
    let from = from + led;
    (from, from + line.trim().len())
}
