//! Replacements of byte runs, carried out all at once.

use std::cmp::Reverse;

use crate::scan::Span;

/// Replacements, in any order. One that lies within another is void: what is taken out
/// takes along what was to be changed inside it.
#[derive(Debug, Default)]
pub(crate) struct Edits(Vec<(Span, String)>);

impl Edits {
    pub(crate) fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.0.push((span, text.into()));
    }

    pub(crate) fn insert(&mut self, at: u32, text: impl Into<String>) {
        self.replace(Span { start: at, end: at }, text);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with all replacements made.
    pub(crate) fn apply(mut self, text: &str) -> Vec<u8> {
        // What is put in goes before what is replaced at the same place; of two that are
        // replaced there, the longer one holds the other.
        self.0
            .sort_by_key(|(span, _)| (span.start, !span.is_empty(), Reverse(span.end)));
        let grown: usize = self.0.iter().map(|(_, text)| text.len()).sum();
        let mut out = Vec::with_capacity(text.len() + grown);
        let mut at = 0;
        for (span, replacement) in &self.0 {
            if span.start < at {
                continue;
            }
            let kept = Span {
                start: at,
                end: span.start,
            };
            out.extend_from_slice(kept.of(text).as_bytes());
            out.extend_from_slice(replacement.as_bytes());
            at = span.end;
        }
        let rest = text.as_bytes().get(at as usize..).unwrap_or_default();
        out.extend_from_slice(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_takes_along_what_is_inside() {
        let mut edits = Edits::default();
        edits.replace(Span::new(2, 3), "x");
        edits.replace(Span::new(1, 4), "");
        edits.insert(1, "<");
        edits.insert(4, ">");
        edits.insert(3, "lost");
        assert_eq!(edits.apply("abcdef"), b"a<>ef");
    }
}
