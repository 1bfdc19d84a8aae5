//! Finds the sentences in which a user says what must or must not happen.

use trimtab_model::work;

use super::{Fact, FactKind};
use crate::pattern::LazyRegex;
use crate::view::figures::first_bytes;

/// The words that make a sentence a constraint.
static CONSTRAINT: LazyRegex = LazyRegex::new(
    r"(?xi) (?-u:\b)(?: must(?:n['’]t)? | never | always | only | don['’]?t | doesn['’]t | keep | ensure
    | avoid | without | exactly | required? | shouldn['’]t | cannot | can['’]t | unchanged | forbidden
    | mandatory | untouched | (?:do|should)\W+not | make\W+sure | at\W+most )(?-u:\b)",
);
/// The maximum of bytes of a sentence.
const LONGEST: usize = 300;

/// Finds the sentences of `text` that say what must, must not, always or never happen.
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
        if CONSTRAINT.is_match(said) {
            let led = sentence.len() - sentence.trim_start().len();
            sink(Fact {
                kind: FactKind::Constraint,
                text: first_bytes(said, LONGEST),
                at: from + led,
            });
        }
        from = end;
    }
}

/// The end of the sentence that begins at `from`: after a full stop before a space, or after the
/// line.
fn sentence_end(text: &str, from: usize) -> usize {
    let bytes = text.as_bytes();
    let rest = bytes.get(from..).unwrap_or_default();
    // The end of the text counts as a space.
    let mut next = rest.iter().skip(1).chain([&b'\n']);
    let ends = rest.iter().position(|byte| {
        let before_space = next.next().is_some_and(u8::is_ascii_whitespace);
        *byte == b'\n' || (matches!(byte, b'.' | b'!' | b'?' | b';') && before_space)
    });
    ends.map_or(text.len(), |at| from + at + 1)
}
