//! The sentences in which a user says what must or must not be.

use trimtab_model::work;

use super::{Fact, FactKind};

/// The words that make a sentence a constraint, in small letters.
const WORDS: [&str; 22] = [
    "must",
    "mustn't",
    "never",
    "always",
    "only",
    "don't",
    "dont",
    "doesn't",
    "keep",
    "ensure",
    "avoid",
    "without",
    "exactly",
    "require",
    "required",
    "shouldn't",
    "cannot",
    "can't",
    "unchanged",
    "forbidden",
    "mandatory",
    "untouched",
];
/// Words that do so in front of another one.
const PAIRS: [(&str, &str); 4] = [
    ("do", "not"),
    ("should", "not"),
    ("make", "sure"),
    ("at", "most"),
];
/// The longest of them.
const LONGEST_WORD: usize = 9;
/// Bytes of a sentence that are taken.
const LONGEST: usize = 300;

/// Finds the sentences of `text` that say what must, must not, always or never be.
///
/// ```
/// # use trimtab_engine::facts;
/// let mut found = Vec::new();
/// let said = "Fix the parser. Never touch the public API! Thanks";
/// facts::constraints(said, &mut |fact| found.push(fact.text));
/// assert_eq!(found, ["Never touch the public API!"]);
/// ```
pub fn constraints<'t>(text: &'t str, sink: &mut impl FnMut(Fact<'t>)) {
    work::step_text(text);
    let mut from = 0;
    while from < text.len() {
        let end = sentence_end(text, from);
        let sentence = text.get(from..end).unwrap_or_default();
        let said = sentence.trim();
        if is_constraint(said) {
            let led = sentence.len() - sentence.trim_start().len();
            sink(Fact {
                kind: FactKind::Constraint,
                text: head(said),
                at: from + led,
            });
        }
        from = end;
    }
}

/// The byte behind the sentence that begins at `from`: behind a full stop that a space
/// follows, or behind the line.
fn sentence_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let rest = bytes.get(from..).unwrap_or_default();
    let mut next = rest.iter().skip(1).chain([&b'\n']);
    let ends = rest.iter().position(|byte| {
        let before_space = next.next().is_some_and(u8::is_ascii_whitespace);
        *byte == b'\n' || (matches!(byte, b'.' | b'!' | b'?' | b';') && before_space)
    });
    ends.map_or(text.len(), |at| from + at + 1)
}

fn is_constraint(sentence: &str) -> bool {
    let mut last = "";
    for word in sentence.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}') {
        if word.is_empty() {
            continue;
        }
        if is_one(word) || PAIRS.iter().any(|pair| is_pair(*pair, last, word)) {
            return true;
        }
        last = word;
    }
    false
}

fn is_one(word: &str) -> bool {
    if word.contains('\u{2019}') {
        return is_one(&word.replace('\u{2019}', "'"));
    }
    word.len() <= LONGEST_WORD && WORDS.iter().any(|known| word.eq_ignore_ascii_case(known))
}

fn is_pair(pair: (&str, &str), first: &str, second: &str) -> bool {
    first.eq_ignore_ascii_case(pair.0) && second.eq_ignore_ascii_case(pair.1)
}

fn head(sentence: &str) -> &str {
    let end = LONGEST.min(sentence.len());
    let end = (0..=end).rev().find(|end| sentence.is_char_boundary(*end));
    sentence.get(..end.unwrap_or(0)).unwrap_or_default()
}
