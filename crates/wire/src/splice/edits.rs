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

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text with all replacements.
    pub(crate) fn apply(self, text: &str) -> Vec<u8> {
        self.settled().apply(text, 0)
    }

    /// The replacements in order, without void ones.
    pub(crate) fn settled(mut self) -> OrderedEdits {
        // Insertions come before replacements at the same position; of two replacements there, the
        // longer one contains the other.
        self.0
            .sort_by_key(|(span, _)| (span.start, !span.is_empty(), Reverse(span.end)));
        let mut at = 0;
        self.0.retain(|(span, _)| {
            let stands = span.start >= at;
            at = at.max(if stands { span.end } else { 0 });
            stands
        });
        OrderedEdits(self.0)
    }
}

/// Ordered, disjoint replacements.
#[derive(Debug)]
pub(crate) struct OrderedEdits(Vec<(Span, String)>);

impl OrderedEdits {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The new position of the byte at `place`; none if it is replaced.
    pub(crate) fn moved(&self, place: usize) -> Option<usize> {
        let before = self.0.iter();
        let before = before.take_while(|(span, _)| (span.start as usize) < place);
        let (mut taken_out, mut put_in) = (0, 0);
        for (span, text) in before {
            if span.end as usize > place {
                return None;
            }
            taken_out += span.len();
            put_in += text.len();
        }
        (place + put_in).checked_sub(taken_out)
    }

    /// The text from `start` on, with all replacements after it.
    pub(crate) fn apply(&self, text: &str, start: usize) -> Vec<u8> {
        let first = self
            .0
            .partition_point(|(span, _)| (span.start as usize) < start);
        let edits = self.0.get(first..).unwrap_or_default();
        let put_in: usize = edits.iter().map(|(_, text)| text.len()).sum();
        let taken_out: usize = edits.iter().map(|(span, _)| span.len()).sum();
        let length = (text.len() + put_in).saturating_sub(taken_out + start);
        let mut out = Vec::with_capacity(length);
        let mut at = start;
        for (span, replacement) in edits {
            let kept = Span::new(at, span.start as usize);
            out.extend_from_slice(kept.of(text).as_bytes());
            out.extend_from_slice(replacement.as_bytes());
            at = span.end as usize;
        }
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        out.extend_from_slice(rest);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_out_takes_along_what_is_inside() {
        let mut edits = ByteEdits::default();
        edits.replace(Span::new(2, 3), "x");
        edits.replace(Span::new(1, 4), "");
        edits.insert(1, "<");
        edits.insert(4, ">");
        edits.insert(3, "lost");
        assert_eq!(edits.apply("abcdef"), b"a<>ef");
    }

    #[test]
    fn a_tail_goes_where_its_first_byte_goes() {
        let mut edits = ByteEdits::default();
        edits.replace(Span::new(4, 5), "yyy");
        edits.replace(Span::new(1, 3), "");
        edits.insert(3, "<");
        let edits = edits.settled();
        let whole = edits.apply("abcdef", 0);
        assert_eq!(whole, b"a<dyyyf");
        assert_eq!(edits.moved(2), None);
        for start in [0, 1, 3, 4, 5, 6] {
            let moved = edits.moved(start).unwrap();
            assert_eq!(edits.apply("abcdef", start), whole[moved..], "{start}");
        }
    }
}
