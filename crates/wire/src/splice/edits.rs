//! Replacements of byte ranges, applied all at once.

use std::cmp::Reverse;

use crate::scan::Span;

/// Replacements in any order. One inside another is void: removing a range also removes the changes
/// inside it.
#[derive(Debug, Default)]
pub(crate) struct ByteEdits(Vec<(Span, String)>);

impl ByteEdits {
    pub(crate) fn replace(&mut self, span: Span, text: impl Into<String>) {
        self.0.push((span, text.into()));
    }

    pub(crate) fn insert(&mut self, at: u32, text: impl Into<String>) {
        self.replace(Span { start: at, end: at }, text);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with all replacements.
    pub(crate) fn apply(mut self, text: &str) -> Vec<u8> {
        self.remove_void();
        let put_in: usize = self.0.iter().map(|(_, text)| text.len()).sum();
        let taken_out: usize = self.0.iter().map(|(span, _)| span.len()).sum();
        let mut out = Vec::with_capacity((text.len() + put_in).saturating_sub(taken_out));
        let mut at = 0;
        for (span, replacement) in &self.0 {
            let kept = Span::new(at, span.start as usize);
            out.extend_from_slice(kept.of(text).as_bytes());
            out.extend_from_slice(replacement.as_bytes());
            at = span.end as usize;
        }
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        out.extend_from_slice(rest);
        out
    }

    /// Puts the replacements in order, and removes void ones.
    fn remove_void(&mut self) {
        // Insertions come before replacements at the same position; of two replacements there, the
        // longer one contains the other.
        self.0
            .sort_by_key(|(span, _)| (span.start, !span.is_empty(), Reverse(span.end)));
        let mut at = 0;
        self.0.retain(|(span, _)| {
            // A replacement that starts inside the one before it lies completely in it, because
            // values and members of JSON nest and never overlap.
            let stands = span.start >= at;
            at = at.max(if stands { span.end } else { 0 });
            stands
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_range_removes_edits_inside_it() {
        let mut edits = ByteEdits::default();
        edits.replace(Span::new(2, 3), "x");
        edits.replace(Span::new(1, 4), "");
        edits.insert(1, "<");
        edits.insert(4, ">");
        edits.insert(3, "lost");
        assert_eq!(edits.apply("abcdef"), b"a<>ef");
    }
}
