//! Recognises numbers that mean something: with a unit, versions, ports, line numbers.

use super::FactKind;
use super::class::{ByteClass, COLON, DASH, DIGIT, DOT, LETTER, SIGN, UNDER, WordList, only};

/// Units, in lower case.
static UNITS: WordList = WordList::new(
    "ms s us ns sec secs second seconds min mins minute minutes h hr hrs hour hours day days \
     week weeks b k kb mb gb tb kib mib gib tib byte bytes bits px em rem pt hz khz mhz ghz \
     rpm qps rps tokens lines rows files tests items requests retries times percent usd eur x",
);

/// Words that label the number after them.
static LABELS: WordList =
    WordList::new("port line lines code status pid exit version limit timeout issue level");
/// A bare number of at least this many digits is an id.
const ID_DIGITS: usize = 6;
/// A number with more digits is data, not an id.
const MOST_DIGITS: usize = 20;

/// The kind and the end of a word with digits, if it is a number, on its own or because of a
/// neighbouring word.
pub(super) fn number(
    text: &str,
    start: usize,
    word: &str,
    classes: ByteClass,
) -> Option<(FactKind, usize)> {
    let end = start + word.len();
    if classes & !DIGIT == 0 {
        return whole_number(text, start, word);
    }
    if classes & (LETTER | UNDER) == 0 {
        return signed(text, word, end, classes);
    }
    let is_number = (classes & COLON != 0 && is_port(word)) || is_version(word) || has_unit(word);
    is_number.then_some((FactKind::Number, end))
}

/// The fact in a word of digits only.
fn whole_number(text: &str, start: usize, word: &str) -> Option<(FactKind, usize)> {
    let end = start + word.len();
    if let Some(unit) = unit_behind(text, end) {
        return Some((FactKind::Number, unit));
    }
    if is_labelled(text, start) {
        return Some((FactKind::Number, end));
    }
    let is_id = (ID_DIGITS..=MOST_DIGITS).contains(&word.len());
    is_id.then_some((FactKind::Id, end))
}

/// The fact in a word of digits and signs, without letters.
fn signed(text: &str, word: &str, end: usize, classes: ByteClass) -> Option<(FactKind, usize)> {
    if let Some(figure) = word.strip_suffix('%').or(word.strip_prefix('$')) {
        return only(figure, DIGIT | DOT).then_some((FactKind::Number, end));
    }
    // A time of day, or a mix of signs.
    if classes & (COLON | SIGN) != 0 {
        return None;
    }
    if classes & DASH != 0 {
        let is_id = word.len() > ID_DIGITS + 1 && !is_date(word);
        return is_id.then_some((FactKind::Id, end));
    }
    if is_version(word) {
        return Some((FactKind::Number, end));
    }
    Some((FactKind::Number, unit_behind(text, end)?))
}

/// The end of the unit after a number and a space.
fn unit_behind(text: &str, end: usize) -> Option<usize> {
    let rest = text.get(end..)?.strip_prefix(' ')?;
    let word = rest.split(|c: char| !c.is_alphabetic()).next()?;
    UNITS.has(word).then_some(end + 1 + word.len())
}

/// True if a label stands before the number.
fn is_labelled(text: &str, start: usize) -> bool {
    let before = text.get(..start).unwrap_or_default();
    // `line 12`, `port=8080`, `code:3` and `issue #7`.
    let Some(before) = before.strip_suffix([' ', '=', ':', '#']) else {
        return false;
    };
    // `code: 3`.
    let before = before.strip_suffix(':').unwrap_or(before);
    let word = before.rsplit(|c: char| !c.is_ascii_alphabetic()).next();
    word.is_some_and(|word| LABELS.has(word))
}

/// True for `1.5GB`, `850ms`.
fn has_unit(word: &str) -> bool {
    if !word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return false;
    }
    let figure = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = word.get(figure.len()..).unwrap_or_default();
    only(figure, DIGIT | DOT) && UNITS.has(unit)
}

/// True for `1.2.3`, `v2.0`, `1.4.0-rc.1`; not for a plain decimal.
pub(super) fn is_version(word: &str) -> bool {
    let named = word.strip_prefix(['v', 'V', '~']);
    let bare = named.unwrap_or(word);
    if !bare.starts_with(|c: char| c.is_ascii_digit()) {
        return false;
    }
    let core = bare.split('-').next().unwrap_or_default();
    let parts = core.split('.');
    let numbers = core.split('.').all(|part| only(part, DIGIT));
    // `v2.0` is a version, but `2.0` is a decimal.
    let enough = if named.is_some() { 2 } else { 3 };
    numbers && parts.count() >= enough
}

/// True for `localhost:8080`, `10.0.0.1:443`.
fn is_port(word: &str) -> bool {
    let Some((host, port)) = word.rsplit_once(':') else {
        return false;
    };
    (2..=5).contains(&port.len())
        && only(port, DIGIT)
        && !host.contains(':')
        && (host.contains('.') || host == "localhost")
}

/// True for `2026-11-15`, also with a time after it.
pub(super) fn is_date(word: &str) -> bool {
    let mut parts = word.splitn(3, '-');
    let mut is_next = |digits: usize| {
        let next = parts.next();
        next.is_some_and(|part| part.len() == digits && only(part, DIGIT))
    };
    is_next(4) && is_next(2) && parts.next().is_some()
}
