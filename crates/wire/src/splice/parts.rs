//! Changes parts of remaining messages: views, ids, removals.

use trimtab_model::{Dialect, RawJson};

use super::Splicer;
use super::change::CacheMarker;
use super::containers::fields;
use super::draft::{PartIndex, is_thought};
use super::write::output_content;
use crate::json::quoted;
use crate::scan::{PartKind, PartSpan, Span};

/// The fields in which Chat Completions servers keep reasoning.
const THOUGHTS: [&str; 3] = ["reasoning_content", "reasoning", "reasoning_details"];

impl Splicer<'_, '_, '_> {
    /// Changes parts.
    pub(super) fn parts(&mut self) {
        for (&at, &(change, output)) in &self.draft.shown {
            let Some(part) = self.part(at).filter(|_| self.draft.stays(at)) else {
                continue;
            };
            let as_list = self.scan.json(part.content).starts_with('[');
            // A marker in the old content must survive: the client placed it for the cache.
            let marker = self.marker_in(part.content);
            let dialect = self.scan.dialect();
            match output_content(output, dialect, as_list, marker) {
                // A view must never make the body longer than the original.
                Some(json) if json.len() <= part.content.len() => {
                    self.edits.replace(part.content, json);
                }
                _ => self.skipped.push(change),
            }
        }
        for (&at, id) in &self.draft.renamed {
            if let Some(part) = self.part(at) {
                self.edits.replace(part.id, quoted(id));
            }
        }
        for &at in &self.draft.removed_parts {
            if !self.draft.removed.contains(at.0) {
                self.remove_part(at);
            }
        }
    }

    fn part(&self, (message, part): PartIndex) -> Option<PartSpan> {
        self.scan.parts(message).get(part).copied()
    }

    /// The marker of a replaced content, which must be kept.
    fn marker_in(&self, content: Span) -> Option<CacheMarker> {
        let found = self.markers_in(content).last()?;
        let value = self.scan.json(found.value);
        Some(CacheMarker {
            name: found.name,
            value: RawJson::parse(value).ok()?,
        })
    }

    fn remove_part(&mut self, at: PartIndex) {
        let Some(part) = self.part(at) else { return };
        let Some(entry) = self.scan.entry_range(at.0).next() else {
            return self.remove_system_part(&part);
        };
        match self.scan.dialect() {
            Dialect::Messages => {
                if let Some(content) = self.content_of(entry) {
                    self.containers.drop_element(content, part.span);
                }
            }
            Dialect::Chat => self.remove_chat_part(at, entry, &part),
            Dialect::Responses => self.remove_responses_part(at, &part),
        }
    }

    fn remove_system_part(&mut self, part: &PartSpan) {
        let system = self.scan.request().system;
        self.containers.drop_element(system, part.span);
    }

    fn remove_chat_part(&mut self, at: PartIndex, entry: usize, part: &PartSpan) {
        let Some(object) = self.scan.entries().get(entry).map(|entry| entry.span) else {
            return;
        };
        match part.kind {
            PartKind::Reasoning { .. } => {
                // Servers repeat the same reasoning in several fields; what is removed must be gone
                // from all.
                for name in THOUGHTS {
                    self.containers.drop_field(object, name);
                }
            }
            PartKind::Call => self.remove_chat_call(at, object, part),
            _ => self.remove_chat_content(at, object, part),
        }
    }

    fn remove_chat_call(&mut self, at: PartIndex, object: Span, part: &PartSpan) {
        let list = self.value_of(object, "tool_calls");
        let Some(list) = list.filter(|list| list.contains(part.span)) else {
            // A call outside the list is one in the legacy field.
            return self.containers.drop_field(object, "function_call");
        };
        if self.is_any_left(at.0, list) {
            self.containers.drop_element(list, part.span);
        } else {
            // Providers reject an empty list of calls.
            self.containers.drop_field(object, "tool_calls");
        }
    }

    fn remove_chat_content(&mut self, at: PartIndex, object: Span, part: &PartSpan) {
        let Some(content) = self.value_of(object, "content") else {
            return;
        };
        if self.is_any_left(at.0, content) {
            self.containers.drop_element(content, part.span);
        } else {
            // Keep the field: null is the usual content next to calls.
            self.edits.replace(content, "null");
        }
    }

    /// True if a part of the message in `list` is not removed.
    fn is_any_left(&mut self, message: usize, list: Span) -> bool {
        let (scan, draft) = (self.scan, self.draft);
        *self.left_in.entry(list).or_insert_with(|| {
            let parts = scan.parts(message).iter().enumerate();
            let mut inside = parts.filter(|(_, part)| list.contains(part.span));
            inside.any(|(part, _)| draft.stays((message, part)))
        })
    }

    fn remove_responses_part(&mut self, at: PartIndex, part: &PartSpan) {
        let Some(entry) = self.scan.entry_of(part.span) else {
            return;
        };
        let Some(span) = self.scan.entries().get(entry).map(|entry| entry.span) else {
            return;
        };
        if is_thought(part) {
            self.forget_ids(at.0);
        }
        // The part is an entry of its own, which is removed with the list.
        if span == part.span {
            return;
        }
        if let Some(content) = self.value_of(span, "content") {
            self.containers.drop_element(content, part.span);
        }
    }

    /// A provider rejects an entry with a known id without the reasoning before it, so the ids of
    /// the remaining entries are removed together with the reasoning.
    fn forget_ids(&mut self, message: usize) {
        if !self.nameless.insert(message) {
            return;
        }
        for entry in self.scan.entry_range(message) {
            let Some(span) = self.scan.entries().get(entry).map(|entry| entry.span) else {
                continue;
            };
            let named = fields(self.scan.text(), span, Span::default());
            // An entry that is nothing but an id would become an empty object.
            if named.iter().any(|field| field.name == "id") && named.len() > 1 {
                self.containers.drop_field(span, "id");
            }
        }
    }
}
