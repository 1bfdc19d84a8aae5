//! Cache markers, set and taken away.

use std::collections::BTreeSet;

use trimtab_model::{Dialect, Role};

use super::Splicer;
use super::change::Marker;
use super::draft::At;
use crate::json::Object;
use crate::scan::{MarkerSpan, PartSpan, Span};

/// How many markers a provider accepts.
const MAX_MARKERS: usize = 4;

impl<'c> Splicer<'_, '_, 'c> {
    /// Decides which markers go.
    pub(super) fn choose_markers(&mut self) {
        let mut dropped: BTreeSet<Span> = BTreeSet::new();
        for &(message, part) in &self.draft.unmarked {
            if let Some(part) = self.scan.parts(message).get(part) {
                let inside = self.markers_in(part.span).iter();
                dropped.extend(inside.map(|marker| marker.field));
            }
        }
        let marked = self.new_markers();
        for (_, part, _) in &marked {
            let own = self.markers_in(part.span).iter();
            dropped.extend(own.map(|marker| marker.field));
        }
        if !marked.is_empty() {
            self.drop_oldest(marked.len(), &mut dropped);
        }
        self.unmarked = dropped;
    }

    /// Sets and takes away markers.
    pub(super) fn markers(&mut self) {
        let markers = &self.scan.request().markers;
        for marker in markers {
            if self.unmarked.contains(&marker.field) {
                // With any that it overruled, which would count again.
                self.containers
                    .drop_field(marker.object, marker.name.as_str());
            }
        }
        for (at, part, marker) in self.new_markers() {
            self.mark(at, &part, marker);
        }
    }

    fn new_markers(&self) -> Vec<(At, PartSpan, &'c Marker)> {
        let marked = self.draft.marked.iter();
        let stays = marked.filter(|(at, _)| self.draft.stays(**at));
        let found = stays.filter_map(|(&at, &marker)| {
            let part = self.scan.parts(at.0).get(at.1)?;
            Some((at, *part, marker))
        });
        found.collect()
    }

    /// Takes away the oldest markers of messages until `new` more have room.
    fn drop_oldest(&self, new: usize, dropped: &mut BTreeSet<Span>) {
        let staying: Vec<&MarkerSpan> = self
            .scan
            .request()
            .markers
            .iter()
            .filter(|marker| !dropped.contains(&marker.field) && self.marker_stays(marker))
            .collect();
        let over = (staying.len() + new).saturating_sub(MAX_MARKERS);
        let list = self.scan.request().list;
        let in_messages = staying.iter().filter(|at| list.contains(at.field));
        dropped.extend(in_messages.take(over).map(|marker| marker.field));
    }

    /// True unless the marker goes with its message or part.
    fn marker_stays(&self, marker: &MarkerSpan) -> bool {
        let Some(entry) = self.scan.entry_of(marker.field) else {
            return true;
        };
        let mut messages = self.scan.messages_of(entry);
        messages.any(|message| {
            let parts = self.scan.parts(message).iter().enumerate();
            let mut around = parts.filter(|(_, part)| part.span.contains(marker.field));
            around.any(|(part, _)| self.draft.stays((message, part)))
        })
    }

    fn mark(&mut self, at: At, part: &PartSpan, marker: &Marker) {
        let value = marker.value.as_str();
        if !self.scan.json(part.span).starts_with('"') {
            let name = marker.name.as_str();
            self.containers.drop_field(part.span, name);
            self.containers.add_field(part.span, name, value);
            return;
        }
        // A text that is the whole content becomes a list of one part.
        let text = self.scan.json(part.span);
        let type_name = match (self.scan.dialect(), self.scan.role(at.0)) {
            (Dialect::Responses, Some(Role::Assistant)) => "output_text",
            (Dialect::Responses, _) => "input_text",
            _ => "text",
        };
        let object = Object::new().text("type", type_name).raw("text", text);
        let json = format!("[{}]", object.raw(marker.name.as_str(), value).end());
        self.edits.replace(part.span, json);
    }
}
