//! Removes and inserts whole messages.

use std::collections::BTreeMap;
use std::ops::Range;

use trimtab_model::{Dialect, Message, Role};

use super::members::ContainerMembers;
use super::write::{elements, entries};
use super::{RemainingEntry, Splicer};
use crate::json::ObjectWriter;
use crate::scan::Span;

impl Splicer<'_, '_, '_> {
    /// Removes and inserts messages.
    pub(super) fn messages(&mut self) -> Result<(), &'static str> {
        if self.draft.removed.is_empty() && self.draft.inserted.is_empty() {
            self.remove_entries_of_parts(None);
            return Ok(());
        }
        // An input string has no list to edit.
        if self.scan.json(self.scan.request().list).starts_with('"') {
            self.rewrite_text_input();
            return Ok(());
        }
        // Removals come first, so that insertions know what stands around them.
        let spans = self.scan.entries().iter().map(|entry| entry.span).collect();
        let mut list = ContainerMembers::new(self.scan.request().list, spans);
        self.remove_messages(&mut list);
        let batches = self.place_inserted(&list)?;
        for (before, batch) in batches {
            for json in entries(&batch, self.scan.dialect()) {
                list.add(before, json);
            }
        }
        self.remove_entries_of_parts(Some(list));
        Ok(())
    }

    /// Removes the entries of parts that are separate entries, then writes the list.
    fn remove_entries_of_parts(&mut self, list: Option<ContainerMembers>) {
        let dropped = self.entries_of_dropped_parts();
        let mut list = match list {
            None if dropped.is_empty() => return,
            None => {
                let spans = self.scan.entries().iter().map(|entry| entry.span).collect();
                ContainerMembers::new(self.scan.request().list, spans)
            }
            Some(list) => list,
        };
        for entry in dropped {
            list.drop_members(entry..entry + 1);
        }
        list.write(&mut self.edits);
    }

    /// In Responses, reasoning, calls and texts of an answer are separate entries.
    fn entries_of_dropped_parts(&self) -> Vec<usize> {
        if self.scan.dialect() != Dialect::Responses {
            return Vec::new();
        }
        let mut dropped = Vec::new();
        let mut judged = None;
        for &(message, part) in &self.draft.removed_parts {
            if self.draft.removed.contains(message) {
                continue;
            }
            let Some(found) = self.scan.parts(message).get(part) else {
                continue;
            };
            // Parts of one entry are adjacent.
            let entry = self.scan.entry_of(found.span);
            let Some(entry) = entry.filter(|entry| judged != Some(*entry)) else {
                continue;
            };
            judged = Some(entry);
            if self.is_emptied(message, entry) {
                dropped.push(entry);
            }
        }
        dropped
    }

    /// True if every part of `message` in `entry` is removed.
    fn is_emptied(&self, message: usize, entry: usize) -> bool {
        let Some(span) = self.scan.entries().get(entry).map(|entry| entry.span) else {
            return false;
        };
        let parts = self.scan.parts(message);
        // Parts are sorted by position, and a long answer has many of them.
        let first = parts.partition_point(|part| part.span.start < span.start);
        let inside = parts.iter().enumerate().skip(first);
        inside
            .take_while(|(_, part)| span.contains(part.span))
            .all(|(part, _)| !self.draft.stays((message, part)))
    }

    fn remove_messages(&mut self, list: &mut ContainerMembers) {
        let draft = self.draft;
        for mut range in draft.removed.ranges() {
            if self.scan.has_head() && range.start == 0 {
                let request = self.scan.request();
                self.containers
                    .drop_element(request.body, request.system_field);
                range.start = 1;
            }
            let Some(newest) = range.clone().next_back() else {
                continue;
            };
            // An entry of Messages may contain several messages. All entries between the first and
            // the last contain only removed ones; these two are removed only if nothing of them
            // stays.
            let first = self.scan.entry_range(range.start).start;
            let end = self.scan.entry_range(newest).end;
            let mut removed = first..end;
            if self.left_of(first).first.is_some() {
                self.remove_elements(&range, first);
                removed.start += 1;
            }
            if removed.end > removed.start && self.left_of(removed.end - 1).first.is_some() {
                removed.end -= 1;
                self.remove_elements(&range, removed.end);
            }
            list.drop_members(removed);
        }
    }

    /// Removes those of `messages` that share an entry with others.
    fn remove_elements(&mut self, messages: &Range<usize>, entry: usize) {
        let Some(content) = self.content_of(entry) else {
            return;
        };
        for message in self.scan.messages_of(entry) {
            if !messages.contains(&message) {
                continue;
            }
            for part in self.scan.parts(message) {
                self.containers.drop_element(content, part.span);
            }
        }
    }

    /// The content of an entry.
    pub(super) fn content_of(&mut self, entry: usize) -> Option<Span> {
        let entry = self.scan.entries().get(entry)?;
        self.value_of(entry.span, "content")
    }

    /// The positions of inserted messages in the list. Messages that belong into existing entries
    /// are inserted there.
    fn place_inserted(
        &mut self,
        list: &ContainerMembers,
    ) -> Result<BTreeMap<usize, Vec<Message>>, &'static str> {
        let mut batches: BTreeMap<usize, Vec<Message>> = BTreeMap::new();
        for (&before, batch) in &self.draft.inserted {
            let first = usize::from(self.scan.has_head());
            // Nothing can be inserted before the system field.
            let before = before.max(first);
            let entry = self.scan.entry_range(before).start;
            let mut batch = batch.clone();
            if self.scan.dialect() == Dialect::Messages {
                if self.is_inside(before, entry) {
                    self.insert_inside(before, entry, &batch)?;
                    continue;
                }
                let before = list.kept_before(entry);
                // An insertion in between separates them.
                let before =
                    before.filter(|before| batches.range(before + 1..=entry).next().is_none());
                self.join_outputs(entry, &mut batch, (list, before));
            }
            batches.entry(entry).or_default().extend(batch);
        }
        Ok(batches)
    }

    /// True if a part of the entry before message `before` stays.
    fn is_inside(&mut self, before: usize, entry: usize) -> bool {
        let first = self.left_of(entry).first;
        first.is_some_and(|(first, _)| first < before)
    }

    /// The remaining parts of an entry.
    fn left_of(&mut self, entry: usize) -> RemainingEntry {
        // Asked for once per removed message, so the answer is kept for each entry.
        let (scan, draft) = (self.scan, self.draft);
        *self.left_of.entry(entry).or_insert_with(|| {
            let stays = |message: &usize| !draft.removed.contains(*message);
            let messages = scan.messages_of(entry).filter(stays);
            let mut left =
                messages.map(|message| (message, scan.role(message) == Some(Role::Tool)));
            let first = left.next();
            let begins_so = first.is_some_and(|(_, is_tool)| is_tool);
            RemainingEntry {
                first,
                only_outputs: begins_so && left.all(|(_, is_tool)| is_tool),
            }
        })
    }

    fn insert_inside(
        &mut self,
        before: usize,
        entry: usize,
        batch: &[Message],
    ) -> Result<(), &'static str> {
        // An entry has one role, so an answer cannot be inserted into a user message.
        if batch.iter().any(|message| message.role == Role::Assistant) {
            return Err("an answer cannot stand between the outputs and the text of one message");
        }
        let content = self.content_of(entry).ok_or("the message has no content")?;
        let next = self.scan.parts(before).first().map(|part| part.span);
        let members = self.containers.at(content);
        let place = next.and_then(|span| members.position(span));
        let place = place.unwrap_or(members.len());
        for json in batch.iter().flat_map(elements) {
            members.add(place, json);
        }
        Ok(())
    }

    /// Puts outputs of one round into one message: those at the start of `batch` after the outputs
    /// in the entry `before` it, else those at its end before the outputs after it.
    fn join_outputs(
        &mut self,
        entry: usize,
        batch: &mut Vec<Message>,
        (list, before): (&ContainerMembers, Option<usize>),
    ) {
        let is_tool = |message: &Message| message.role == Role::Tool;
        // The provider wants all outputs of a round in one message.
        if let Some(before) = before.filter(|before| self.left_of(*before).only_outputs) {
            let count = batch.iter().take_while(|message| is_tool(message)).count();
            let tools: Vec<Message> = batch.drain(..count).collect();
            self.add_elements(before, None, &tools);
        }
        let begins_so = self
            .left_of(entry)
            .first
            .is_some_and(|(_, is_tool)| is_tool);
        if !list.is_dropped(entry) && begins_so {
            let others = batch.iter().rposition(|message| !is_tool(message));
            let tools: Vec<Message> = batch.drain(others.map_or(0, |at| at + 1)..).collect();
            self.add_elements(entry, Some(0), &tools);
        }
    }

    fn add_elements(&mut self, entry: usize, before: Option<usize>, messages: &[Message]) {
        let Some(content) = self.content_of(entry) else {
            return;
        };
        let members = self.containers.at(content);
        let place = before.unwrap_or(members.len());
        for json in messages.iter().flat_map(elements) {
            members.add(place, json);
        }
    }

    /// Turns an input string into a list, if anything in it changes.
    fn rewrite_text_input(&mut self) {
        let span = self.scan.request().list;
        // The string is one user message, behind the instructions if there are any.
        let user = usize::from(self.scan.has_head());
        let mut jsons = Vec::new();
        for (before, batch) in &self.draft.inserted {
            if *before > user {
                continue;
            }
            jsons.extend(entries(batch, Dialect::Responses));
        }
        if !self.draft.removed.contains(user) {
            let content = self.scan.json(span);
            let message = ObjectWriter::new()
                .text("role", "user")
                .raw("content", content);
            jsons.push(message.end());
        }
        for (before, batch) in &self.draft.inserted {
            if *before > user {
                jsons.extend(entries(batch, Dialect::Responses));
            }
        }
        if user > 0 && self.draft.removed.contains(0) {
            let request = self.scan.request();
            self.containers
                .drop_element(request.body, request.system_field);
        }
        if self.draft.removed.contains(user) || !self.draft.inserted.is_empty() {
            self.edits.replace(span, format!("[{}]", jsons.join(",")));
        }
    }
}
