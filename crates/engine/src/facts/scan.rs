//! The pass over the bytes of a text.

use trimtab_model::work;

use super::class::{
    ByteClass, COLON, DASH, DIGIT, DOT, HIGH, LETTER, LOWER, SIGN, SLASH, UNDER, UPPER, class,
    classes_in,
};
use super::{Fact, FactKind, failure, name, number, path_or_url};

/// Longer words are data, not names.
const LONGEST: usize = 256;

pub(super) struct FactScanner<'t, 's, S> {
    text: &'t str,
    bytes: &'t [u8],
    sink: &'s mut S,
    /// The end of the last error line.
    error_end: usize,
    /// True if only error lines are wanted.
    only_errors: bool,
}

impl<'t, 's, S: FnMut(Fact<'t>)> FactScanner<'t, 's, S> {
    pub(super) fn new(text: &'t str, only_errors: bool, sink: &'s mut S) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            sink,
            error_end: 0,
            only_errors,
        }
    }

    pub(super) fn run(mut self) {
        work::step_text(self.text);
        let mut at = 0;
        while let Some(byte) = self.bytes.get(at) {
            let mut classes = class(*byte);
            if classes == 0 {
                at += if *byte == b'\\' { self.escape(at) } else { 1 };
                continue;
            }
            let start = at;
            at += 1;
            while let Some(byte) = self.bytes.get(at) {
                let class = class(*byte);
                if class == 0 {
                    break;
                }
                classes |= class;
                at += 1;
            }
            // A URL or a path with a drive can reach beyond the word.
            at = self.examine_word(start, at, classes);
        }
    }

    /// The length of an escape. The escapes of JSON for line ends and characters belong to no word.
    fn escape(&self, at: usize) -> usize {
        let rest = self.bytes.get(at..).unwrap_or_default();
        // JSON inside JSON escapes its backslashes again.
        let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
        match rest.get(slashes..) {
            Some([b'n' | b'r' | b't', ..]) => slashes + 1,
            Some([b'u', a, b, c, d, ..])
                if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) =>
            {
                slashes + 5
            }
            _ => slashes,
        }
    }

    /// Examines one word, and returns where to continue.
    #[inline]
    fn examine_word(&mut self, start: usize, end: usize, classes: ByteClass) -> usize {
        // Most words are only small letters. This path must stay short, so the other one is not
        // inlined.
        if classes & !(LOWER | HIGH) == 0 {
            self.examine_plain_word(start, end);
            return end;
        }
        self.examine_marked_word(start, end, classes)
    }

    /// A word of letters: an error word, the name of a called function, or nothing.
    #[inline]
    fn examine_plain_word(&mut self, start: usize, end: usize) {
        if failure::may_be(self.bytes, start, end) {
            self.failure(start, end);
        }
        if self.is_called(end) {
            self.emit(FactKind::Id, start, end + 2);
        }
    }

    /// True if the parentheses of a call follow at `end`.
    fn is_called(&self, end: usize) -> bool {
        let behind = self.bytes.get(end..).unwrap_or_default();
        behind.starts_with(b"()")
    }

    fn failure(&mut self, start: usize, end: usize) {
        // A line with several error words is one error.
        if start < self.error_end {
            return;
        }
        if let Some((from, to)) = failure::line(self.text, start, end) {
            self.error_end = to;
            self.emit(FactKind::Error, from, to);
        }
    }

    /// A word with more than small letters.
    #[inline(never)]
    fn examine_marked_word(&mut self, start: usize, end: usize, classes: ByteClass) -> usize {
        work::step(1);
        // Prose first: a capital or a full stop is no sign of a name.
        if classes & !(LOWER | UPPER | DOT | COLON | DASH) == 0
            && let Some(end_of_word) = self.capital_or_ended(start, end)
        {
            self.examine_plain_word(start, end_of_word);
            return end;
        }
        // URLs and drives come before the limit of length, because they may end behind the word.
        if classes & (SLASH | COLON) == SLASH | COLON
            && let Some((from, to)) = path_or_url::url(self.text, start, end)
        {
            self.emit(FactKind::Url, from, to);
            return to;
        }
        if classes & COLON != 0
            && let Some(to) = path_or_url::drive(self.bytes, start, end)
        {
            self.emit(FactKind::Path, start, to);
            return to;
        }
        if end - start > LONGEST {
            return end;
        }
        if classes & HIGH == 0 {
            self.piece(start, end);
        } else {
            self.pieces(start, end);
        }
        end
    }

    /// The end of a word that is capitalised or in capitals, without the punctuation after it. Most
    /// such words of prose are of that kind.
    #[inline]
    fn capital_or_ended(&self, start: usize, end: usize) -> Option<usize> {
        let word = self.bytes.get(start..end)?;
        let behind = word
            .iter()
            .rev()
            .take_while(|byte| matches!(byte, b'.' | b':' | b'-'))
            .count();
        let (first, rest) = word.get(..word.len() - behind)?.split_first()?;
        let small = rest.iter().all(u8::is_ascii_lowercase);
        let plain = first.is_ascii_alphabetic() && (small || capitals(*first, rest));
        // A single letter with a colon may be a drive, as in `C:\`.
        let drive = rest.is_empty() && behind > 0;
        (plain && !drive).then_some(end - behind)
    }

    /// Splits a word at non-ASCII punctuation, and at scripts that have no spaces between words.
    fn pieces(&mut self, start: usize, end: usize) {
        let Some(text) = self.text.get(start..end) else {
            return;
        };
        let mut from = start;
        for (at, found) in text.char_indices() {
            if !found.is_ascii() && !is_in_spaced_script(found) {
                self.piece(from, start + at);
                from = start + at + found.len_utf8();
            }
        }
        self.piece(from, end);
    }

    fn piece(&mut self, start: usize, end: usize) {
        let Some(text) = self.text.get(start..end) else {
            return;
        };
        let (start, text) = trimmed(start, text);
        let end = start + text.len();
        if text.is_empty() || number::is_date(text) {
            return;
        }
        if !self.only_errors || self.may_fail(start, text) {
            match self.classify(start, text) {
                Some((kind, end)) => self.emit(kind, start, end),
                // `error:file.rs` and `key:value` are two words.
                None if text.contains(':') => self.split_at_colons(start, text),
                None => self.examine_plain_word(start, end),
            }
        }
        if failure::names_an_error(text) {
            self.failure(start, end);
        }
    }

    /// False if no part of the word can be an error word.
    fn may_fail(&self, start: usize, text: &str) -> bool {
        text.contains(':') || failure::may_be(self.bytes, start, start + text.len())
    }

    fn split_at_colons(&mut self, start: usize, text: &'t str) {
        let mut from = start;
        for part in text.split(':') {
            let (start, trimmed) = trimmed(from, part);
            let end = start + trimmed.len();
            match self.classify(start, trimmed) {
                Some((kind, end)) => self.emit(kind, start, end),
                None if !trimmed.is_empty() => self.examine_plain_word(start, end),
                None => {}
            }
            from += part.len() + 1;
        }
    }

    /// The kind of the word `text` at `start`, and its end.
    fn classify(&self, start: usize, text: &str) -> Option<(FactKind, usize)> {
        let classes = classes_in(text);
        let end = start + text.len();
        // Cheap tests first: most words have no digits, dots or slashes.
        if classes & (UPPER | DIGIT | UNDER | SLASH | DOT | COLON | SIGN) == 0 {
            return name::option(text).then_some((FactKind::Id, end));
        }
        if classes & (SLASH | DOT) != 0
            && let Some(kind) = path_or_url::place(self.bytes, start, text, classes)
        {
            return Some((kind, end));
        }
        if classes & DIGIT != 0
            && let Some(found) = number::number(self.text, start, text, classes)
        {
            return Some(found);
        }
        if classes & (LETTER | DIGIT) == 0 || !name::is_name(text, classes) {
            return None;
        }
        let end = if self.is_called(end) { end + 2 } else { end };
        Some((FactKind::Id, end))
    }

    fn emit(&mut self, kind: FactKind, start: usize, end: usize) {
        if self.only_errors && kind != FactKind::Error {
            return;
        }
        if let Some(text) = self.text.get(start..end) {
            (self.sink)(Fact {
                kind,
                text,
                at: start,
            });
        }
    }
}

fn capitals(first: u8, rest: &[u8]) -> bool {
    first.is_ascii_uppercase() && rest.iter().all(u8::is_ascii_uppercase)
}

/// True for non-ASCII characters of scripts with spaces between words.
fn is_in_spaced_script(found: char) -> bool {
    let accent = ('\u{300}'..='\u{36f}').contains(&found);
    accent || (found < '\u{e00}' && found.is_alphanumeric())
}

/// `text` without the punctuation around it, and its new start.
fn trimmed(start: usize, text: &str) -> (usize, &str) {
    if let [first, .., last] = text.as_bytes()
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
    {
        return (start, text);
    }
    let text = text.trim_end_matches(['.', ':', '-', '#', '@', '$', '~']);
    let inner = text.trim_start_matches([':', '.', '-', '/', '%']);
    // Some beginnings carry meaning: a root, a folder, an option, a hidden file.
    let led = text.len() - inner.len();
    let before = text.get(..led).unwrap_or_default();
    let kept = ["../", "./", "--", "/", "."]
        .iter()
        .find(|meant| before.ends_with(**meant))
        .map_or(0, |meant| meant.len());
    let cut = led - kept;
    (start + cut, text.get(cut..).unwrap_or_default())
}
