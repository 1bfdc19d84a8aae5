//! The members of a list or object, with removals and insertions.
//!
//! White space and commas between remaining members stay unchanged.

use std::collections::BTreeMap;
use std::ops::Range;

use super::edits::ByteEdits;
use super::positions::PositionSet;
use crate::json::cursor::JsonCursor;
use crate::scan::Span;

/// A list's elements, or an object's fields with their names.
#[derive(Debug)]
pub(crate) struct ContainerMembers {
    container: Span,
    spans: Vec<Span>,
    dropped: PositionSet,
    added: BTreeMap<usize, Vec<String>>,
}

impl ContainerMembers {
    pub(crate) fn new(container: Span, spans: Vec<Span>) -> Self {
        Self {
            container,
            spans,
            dropped: PositionSet::default(),
            added: BTreeMap::new(),
        }
    }

    /// The elements of the list, or the fields of the object, at `container`; a value at `known` is
    /// not scanned again.
    pub(crate) fn read(text: &str, container: Span, known: Span) -> Self {
        let mut spans = Vec::new();
        let mut cursor = JsonCursor::at(text, container.start as usize);
        let is_object = cursor.peek() == Some(b'{');
        // The text was scanned before, so reading it again cannot fail.
        if let Ok(mut open) = cursor.open() {
            loop {
                if is_object {
                    let Ok(Some(key)) = cursor.field(&mut open) else {
                        break;
                    };
                    let Ok(value) = cursor.value_or(known) else {
                        break;
                    };
                    spans.push(Span::new(key.start, value.end as usize));
                } else {
                    let Ok(true) = cursor.more(&mut open) else {
                        break;
                    };
                    let Ok(value) = cursor.value() else { break };
                    spans.push(value);
                }
            }
        }
        Self::new(container, spans)
    }

    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The index of the member that contains `span`.
    pub(crate) fn position(&self, span: Span) -> Option<usize> {
        let after = self
            .spans
            .partition_point(|member| member.start <= span.start);
        let at = after.checked_sub(1)?;
        let member = self.spans.get(at)?;
        member.contains(span).then_some(at)
    }

    pub(crate) fn drop_members(&mut self, members: Range<usize>) {
        self.dropped.insert(members);
    }

    pub(crate) fn is_dropped(&self, index: usize) -> bool {
        self.dropped.contains(index)
    }

    /// The last remaining member before `index`.
    pub(crate) fn kept_before(&self, index: usize) -> Option<usize> {
        let before = index.checked_sub(1)?;
        match self.dropped.range_at(before) {
            Some(dropped) => dropped.start.checked_sub(1),
            None => Some(before),
        }
    }

    /// The first remaining member from `index` on.
    fn kept_from(&self, index: usize) -> Option<Span> {
        let dropped = self.dropped.range_at(index);
        self.span(dropped.map_or(index, |dropped| dropped.end))
    }

    fn span(&self, index: usize) -> Option<Span> {
        self.spans.get(index).copied()
    }

    /// Inserts `json` before member `before`.
    pub(crate) fn add(&mut self, before: usize, json: String) {
        let before = before.min(self.spans.len());
        self.added.entry(before).or_default().push(json);
    }

    /// Writes the replacements for the intended members.
    pub(crate) fn write(self, edits: &mut ByteEdits) {
        let last = self.kept_before(self.spans.len());
        match last.and_then(|last| self.span(last)) {
            Some(last) => self.write_around(last, edits),
            None => self.write_all_new(edits),
        }
    }

    /// No member stays.
    fn write_all_new(self, edits: &mut ByteEdits) {
        let text = self.added.into_values().flatten().collect::<Vec<_>>();
        let text = text.join(",");
        match (self.spans.first(), self.spans.last()) {
            (Some(first), Some(last)) => edits.replace(
                Span {
                    start: first.start,
                    end: last.end,
                },
                text,
            ),
            _ => edits.insert(self.container.start + 1, text),
        }
    }

    /// Some members stay; `last` is the last of them.
    fn write_around(self, last: Span, edits: &mut ByteEdits) {
        for dropped in self.dropped.ranges() {
            let before = dropped.start.checked_sub(1).and_then(|at| self.span(at));
            let span = if let Some(before) = before {
                // Remove them together with the comma before each.
                let end = dropped.end.checked_sub(1).and_then(|at| self.span(at));
                end.map(|end| (before.end, end.end))
            } else {
                // Before all remaining members: remove them together with the comma after each.
                let (first, next) = (self.span(dropped.start), self.span(dropped.end));
                first
                    .zip(next)
                    .map(|(first, next)| (first.start, next.start))
            };
            if let Some((start, end)) = span {
                edits.replace(Span { start, end }, "");
            }
        }
        for (before, jsons) in &self.added {
            let next = self.kept_from(*before);
            for json in jsons {
                match next {
                    Some(next) => edits.insert(next.start, format!("{json},")),
                    // Behind the last remaining member, and not at the end of the container:
                    // removed members after it take their commas along.
                    None => edits.insert(last.end, format!(",{json}")),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, drop: &[usize], add: &[(usize, &str)]) -> String {
        let mut members = ContainerMembers::read(text, Span::new(0, text.len()), Span::default());
        for index in drop {
            members.drop_members(*index..*index + 1);
        }
        for (before, json) in add {
            members.add(*before, (*json).to_owned());
        }
        let mut edits = ByteEdits::default();
        members.write(&mut edits);
        String::from_utf8(edits.apply(text)).unwrap()
    }

    #[test]
    fn commas_stay_right() {
        let list = "[ 1 , 2,3 ]";
        assert_eq!(edited(list, &[0], &[]), "[ 2,3 ]");
        assert_eq!(edited(list, &[1], &[]), "[ 1,3 ]");
        assert_eq!(edited(list, &[2], &[]), "[ 1 , 2 ]");
        assert_eq!(edited(list, &[0, 1], &[]), "[ 3 ]");
        assert_eq!(edited(list, &[1, 2], &[]), "[ 1 ]");
        assert_eq!(edited(list, &[0, 2], &[]), "[ 2 ]");
        assert_eq!(edited(list, &[0, 1, 2], &[]), "[  ]");
    }

    #[test]
    fn inserted_member_goes_before_the_next_that_stays() {
        let list = "[1, 2, 3]";
        assert_eq!(edited(list, &[], &[(0, "a"), (3, "z")]), "[a,1, 2, 3,z]");
        assert_eq!(edited(list, &[0, 1], &[(0, "a"), (1, "b")]), "[a,b,3]");
        assert_eq!(edited(list, &[1, 2], &[(1, "a"), (2, "b")]), "[1,a,b]");
        assert_eq!(edited(list, &[0, 1, 2], &[(3, "a"), (0, "b")]), "[b,a]");
        assert_eq!(edited("[ ]", &[], &[(0, "a"), (0, "b")]), "[a,b ]");
    }

    #[test]
    fn fields_are_members_too() {
        let object = r#"{"a": 1, "b": {"c": 2}, "d": 3}"#;
        assert_eq!(edited(object, &[1], &[]), r#"{"a": 1, "d": 3}"#);
        assert_eq!(
            edited(object, &[1, 2], &[(3, "\"e\":4")]),
            r#"{"a": 1,"e":4}"#
        );
    }
}
