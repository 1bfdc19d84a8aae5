//! The members of a list or object, with removals and insertions.
//!
//! White space and commas between remaining members stay unchanged.

use std::collections::BTreeMap;

use super::edits::ByteEdits;
use crate::json::cursor::JsonCursor;
use crate::scan::Span;

/// A list's elements, or an object's fields with their names.
#[derive(Debug)]
pub(crate) struct ContainerMembers {
    container: Span,
    spans: Vec<Span>,
    dropped: Vec<bool>,
    added: BTreeMap<usize, Vec<String>>,
}

impl ContainerMembers {
    pub(crate) fn new(container: Span, spans: Vec<Span>) -> Self {
        let dropped = vec![false; spans.len()];
        Self {
            container,
            spans,
            dropped,
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

    /// The positions of the members.
    pub(crate) fn spans(&self) -> &[Span] {
        &self.spans
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

    pub(crate) fn drop_member(&mut self, index: usize) {
        if let Some(dropped) = self.dropped.get_mut(index) {
            *dropped = true;
        }
    }

    pub(crate) fn is_dropped(&self, index: usize) -> bool {
        self.dropped.get(index).copied().unwrap_or(false)
    }

    /// For each member, and for the end, the last remaining member before it.
    pub(crate) fn kept_before(&self) -> Vec<Option<usize>> {
        let mut last = None;
        let mut kept = vec![None];
        for (index, dropped) in self.dropped.iter().enumerate() {
            if !dropped {
                last = Some(index);
            }
            kept.push(last);
        }
        kept
    }

    /// Inserts `json` before member `before`.
    pub(crate) fn add(&mut self, before: usize, json: String) {
        let before = before.min(self.spans.len());
        self.added.entry(before).or_default().push(json);
    }

    /// Writes the replacements for the intended members.
    pub(crate) fn write(self, edits: &mut ByteEdits) {
        let stays = |index: &usize| !self.is_dropped(*index);
        let last = (0..self.spans.len()).rfind(stays);
        match last {
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
    fn write_around(self, last: usize, edits: &mut ByteEdits) {
        let mut added = self.added.into_iter().peekable();
        let mut previous: Option<Span> = None;
        let members = self.spans.iter().zip(&self.dropped).enumerate();
        for (index, (span, dropped)) in members {
            if !dropped {
                let mut text = String::new();
                while let Some((_, jsons)) = added.next_if(|(before, _)| *before <= index) {
                    for json in jsons {
                        text.push_str(&json);
                        text.push(',');
                    }
                }
                if !text.is_empty() {
                    edits.insert(span.start, text);
                }
            } else if let Some(previous) = previous {
                // Remove it together with the comma before it.
                edits.replace(
                    Span {
                        start: previous.end,
                        end: span.end,
                    },
                    "",
                );
            } else if let Some(next) = self.spans.get(index + 1) {
                // Before all remaining members: remove it together with the comma after it.
                edits.replace(
                    Span {
                        start: span.start,
                        end: next.start,
                    },
                    "",
                );
            }
            // A removed member also counts as previous: the next removal starts where this one
            // ended, so that the ranges do not overlap.
            if !dropped || previous.is_some() {
                previous = Some(*span);
            }
        }
        let mut tail = String::new();
        for json in added.flat_map(|(_, jsons)| jsons) {
            tail.push(',');
            tail.push_str(&json);
        }
        let end = self.spans.get(last).map_or(0, |span| span.end);
        if !tail.is_empty() {
            // Behind the last remaining member, and not at the end of the container: removed
            // members after it take their commas along.
            edits.insert(end, tail);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(text: &str, drop: &[usize], add: &[(usize, &str)]) -> String {
        let mut members = ContainerMembers::read(text, Span::new(0, text.len()), Span::default());
        for index in drop {
            members.drop_member(*index);
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
