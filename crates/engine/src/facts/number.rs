//! Numbers that mean something: with a unit, versions, ports, line numbers.

use super::FactKind;
use super::class::{
    COLON, Class, DASH, DIGIT, DOT, FirstLetters, LETTER, SIGN, UNDER, class, only,
};
use super::scan::Found;

/// Units, in small letters.
const UNITS: [&str; 58] = [
    "ms", "s", "us", "ns", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes",
    "h", "hr", "hrs", "hour", "hours", "day", "days", "week", "weeks", "b", "k", "kb", "mb", "gb",
    "tb", "kib", "mib", "gib", "tib", "byte", "bytes", "bits", "px", "em", "rem", "pt", "hz",
    "khz", "mhz", "ghz", "rpm", "qps", "rps", "tokens", "lines", "rows", "files", "tests", "items",
    "requests", "retries", "times", "percent", "usd", "eur", "x",
];
static UNIT_LETTERS: FirstLetters = FirstLetters::of(&UNITS);

/// Words before a number that say what it is.
const LABELS: [&str; 12] = [
    "port", "line", "lines", "code", "status", "pid", "exit", "version", "limit", "timeout",
    "issue", "level",
];
static LABEL_LETTERS: FirstLetters = FirstLetters::of(&LABELS);
/// A bare number of so many digits is an id.
const ID_DIGITS: usize = 6;
/// More digits are data.
const MOST_DIGITS: usize = 20;

/// What a word with digits in it is, if it is a number or one that a word beside it makes one.
pub(super) fn number(text: &str, start: usize, word: &str, classes: Class) -> Option<Found> {
    let end = start + word.len();
    if classes & !DIGIT == 0 {
        return whole(text, start, word);
    }
    if classes & (LETTER | UNDER) == 0 {
        return signed(text, word, end, classes);
    }
    if (classes & COLON != 0 && is_port(word)) || is_version(word) || has_unit(word) {
        return Some(Found::new(FactKind::Number, end));
    }
    None
}

/// Nothing but digits.
fn whole(text: &str, start: usize, word: &str) -> Option<Found> {
    let end = start + word.len();
    if let Some(unit) = unit_behind(text, end) {
        return Some(Found::new(FactKind::Number, unit));
    }
    if is_labelled(text, start) {
        return Some(Found::new(FactKind::Number, end));
    }
    (ID_DIGITS..=MOST_DIGITS)
        .contains(&word.len())
        .then_some(Found {
            kind: FactKind::Id,
            end,
        })
}

/// Digits and marks, without letters.
fn signed(text: &str, word: &str, end: usize, classes: Class) -> Option<Found> {
    let percent = word.strip_suffix('%');
    let money = word.strip_prefix('$');
    if let Some(figure) = percent.or(money) {
        return only(figure, DIGIT | DOT).then_some(Found {
            kind: FactKind::Number,
            end,
        });
    }
    if classes & (COLON | SIGN) != 0 {
        return None;
    }
    if classes & DASH != 0 {
        let long = word.len() > ID_DIGITS + 1 && !is_date(word);
        return long.then_some(Found {
            kind: FactKind::Id,
            end,
        });
    }
    if is_version(word) {
        return Some(Found::new(FactKind::Number, end));
    }
    Some(Found::new(FactKind::Number, unit_behind(text, end)?))
}

/// The end of the unit that stands behind a number and a space.
fn unit_behind(text: &str, end: usize) -> Option<usize> {
    let rest = text.as_bytes().get(end..)?.strip_prefix(b" ")?;
    if !rest.first()?.is_ascii_alphabetic() {
        return None;
    }
    let word = rest.split(|byte| class(*byte) & LETTER == 0).next()?;
    is_unit(word).then_some(end + 1 + word.len())
}

fn is_unit(word: &[u8]) -> bool {
    is_in(word, &UNITS, &UNIT_LETTERS)
}

fn is_in(word: &[u8], list: &[&str], letters: &FirstLetters) -> bool {
    let first = word.first().copied().unwrap_or(0);
    letters.may_be(first, word.len())
        && list
            .iter()
            .any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// True if a word that names a number stands before it.
fn is_labelled(text: &str, start: usize) -> bool {
    let Some(before) = text.as_bytes().get(..start) else {
        return false;
    };
    let Some((b' ' | b'=' | b':' | b'#', before)) = before.split_last().map(|(a, b)| (*a, b))
    else {
        return false;
    };
    let before = before.strip_suffix(b":").unwrap_or(before);
    let word = before.rsplit(|byte| !byte.is_ascii_alphabetic()).next();
    word.is_some_and(|word| is_in(word, &LABELS, &LABEL_LETTERS))
}

/// `1.5GB`, `850ms`.
fn has_unit(word: &str) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let figure = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = word.get(figure.len()..).unwrap_or_default();
    only(figure, DIGIT | DOT) && is_unit(unit.as_bytes())
}

/// `1.2.3`, `v2.0`, `1.4.0-rc.1`; not a plain decimal.
pub(super) fn is_version(word: &str) -> bool {
    let named = word.strip_prefix(['v', 'V', '~']);
    let bare = named.unwrap_or(word);
    if !bare.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let core = bare.split('-').next().unwrap_or_default();
    let parts = core.split('.');
    let numbers = core.split('.').all(|part| only(part, DIGIT));
    let enough = if named.is_some() { 2 } else { 3 };
    numbers && parts.count() >= enough
}

/// `localhost:8080`, `10.0.0.1:443`.
fn is_port(word: &str) -> bool {
    let Some((host, port)) = word.rsplit_once(':') else {
        return false;
    };
    (2..=5).contains(&port.len())
        && only(port, DIGIT)
        && !host.contains(':')
        && (host.contains('.') || host == "localhost")
}

/// `2026-11-15`, also with a time behind it.
pub(super) fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    let digits = |range| {
        bytes
            .get::<std::ops::Range<usize>>(range)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    bytes.get(4) == Some(&b'-') && bytes.get(7) == Some(&b'-') && digits(0..4) && digits(5..7)
}
