//! Accessors of a scan.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::Value;
use serde_json::value::RawValue;
use trimtab_model::{Dialect, Message, Role, Treatment, treatment};

use super::request::RequestFields;
use super::table::{EntrySpan, PartSpan};
use super::{BodyScan, PartKind};
use crate::json::span::Span;
use crate::json::{pick, unquoted};
use crate::{chat, messages, responses};

impl<'a> BodyScan<'a> {
    /// The dialect of the scan.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The original body.
    pub fn body(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// The fields of the body besides its messages.
    pub fn request(&self) -> &RequestFields {
        &self.request
    }

    /// The JSON at `span`; empty if there is none.
    pub fn json(&self, span: Span) -> &'a str {
        span.of(self.text)
    }

    /// The text at `span`, if that is a string.
    pub fn string(&self, span: Span) -> Option<Cow<'a, str>> {
        unquoted(span.of(self.text))
    }

    /// The tool definitions that the model reads with every request. It reads a deferred one only
    /// where the conversation loads it.
    pub fn tools_in_prompt(&self) -> Cow<'a, str> {
        let all = self.json(self.request.tools);
        if memmem::find(all.as_bytes(), b"\"defer_loading\"").is_none() {
            return Cow::Borrowed(all);
        }
        let Ok(mut tools) = serde_json::from_str::<Vec<Value>>(all) else {
            return Cow::Borrowed(all);
        };
        remove_deferred(&mut tools);
        Cow::Owned(Value::Array(tools).to_string())
    }

    /// The name of the model.
    pub fn model(&self) -> Option<Cow<'a, str>> {
        self.string(self.request.model)
    }

    /// True if the request asks for a stream.
    pub fn is_stream(&self) -> bool {
        self.json(self.request.stream) == "true"
    }

    /// The smallest output limit, if the body has a numeric one.
    pub fn answer_limit(&self) -> Option<u64> {
        let figures = self.request.limits.iter();
        figures
            .filter_map(|limit| self.json(limit.span).parse().ok())
            .min()
    }

    /// True if the provider keeps the rest of the conversation.
    pub fn is_partial(&self) -> bool {
        self.request.partial
    }

    /// The number of messages, as the model counts them.
    pub fn len(&self) -> usize {
        self.first_in_list() + self.tables.messages.len()
    }

    /// True if there is no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The role at position `at`.
    pub fn role(&self, at: usize) -> Option<Role> {
        match at.checked_sub(self.first_in_list()) {
            Some(listed) => self.tables.messages.get(listed).map(|row| row.role),
            None => Some(Role::System),
        }
    }

    /// The parts of the message at `at`; empty beyond the end.
    pub fn parts(&self, at: usize) -> &[PartSpan] {
        let Some(listed) = at.checked_sub(self.first_in_list()) else {
            return self.head.as_deref().unwrap_or_default();
        };
        let parts = &self.tables.parts;
        let start = |listed: usize| {
            let row = self.tables.messages.get(listed);
            row.map_or(parts.len(), |row| row.part as usize)
        };
        let range = start(listed)..start(listed.saturating_add(1));
        parts.get(range).unwrap_or_default()
    }

    /// The newest message from `first` on with a summary of the provider, which ignores everything
    /// in front of it.
    pub fn newest_boundary(&self, first: usize) -> Option<usize> {
        (first..self.len()).rev().find(|message| {
            let mut parts = self.parts(*message).iter();
            parts.any(|part| self.is_boundary(part))
        })
    }

    /// True for a summary of the provider.
    pub(crate) fn is_boundary(&self, part: &PartSpan) -> bool {
        if part.kind != PartKind::Opaque {
            return false;
        }
        let picked = pick(self.json(part.span), ["type"]);
        let type_name = picked.and_then(|[type_name]| unquoted(type_name?));
        type_name.is_some_and(|name| treatment(&name) == Treatment::Boundary)
    }

    /// The name of the called tool.
    pub fn call_name(&self, part: &PartSpan) -> Option<Cow<'a, str>> {
        if part.kind != PartKind::Call {
            return None;
        }
        let json = self.json(part.span);
        let [type_name, name, function] = pick(json, ["type", "name", "function"])?;
        let type_name = type_name.and_then(unquoted).unwrap_or_default();
        match self.dialect {
            Dialect::Messages => name.and_then(unquoted),
            // Built-in tools are named by the type of their calls.
            Dialect::Responses => name.and_then(unquoted).filter(|name| !name.is_empty()).or({
                let own = type_name.strip_suffix("_call").unwrap_or(&type_name);
                Some(Cow::Owned(own.to_owned()))
            }),
            Dialect::Chat => {
                // A custom tool call has its name in a field that is named like its type.
                let own = || pick(json, [&type_name]).and_then(|[own]| own);
                let inner = [function, own()].into_iter().flatten();
                let mut names = inner.filter_map(|json| pick(json, ["name"]));
                let inner = names.next().map_or(name, |[name]| name);
                inner.and_then(unquoted)
            }
        }
    }

    /// Reads the message at `at` from the body; none beyond the end.
    pub fn message(&self, at: usize) -> Option<Message> {
        if self.is_head(at) {
            return self.head_message();
        }
        let entries = self.entry_range(at);
        let first = self.tables.entries.get(entries.start)?;
        match self.dialect {
            Dialect::Chat => chat::read_message(self.json(first.span)).ok(),
            Dialect::Messages => {
                // An entry of Messages can hold several messages: outputs and texts are split.
                let number = at.checked_sub(self.message_of(first))?;
                let read = messages::read_message(self.json(first.span)).ok()?;
                read.into_iter().nth(number)
            }
            Dialect::Responses => self.gathered(entries),
        }
    }

    /// Reads the messages from `from` on; none for one that cannot be read.
    pub fn messages(&self, from: usize) -> impl Iterator<Item = Option<Message>> {
        // An entry of Messages may contain several messages, so read it once.
        let mut of_entry = (usize::MAX, Vec::new().into_iter());
        (from..self.len()).map(move |at| {
            if self.dialect != Dialect::Messages || self.is_head(at) {
                return self.message(at);
            }
            let entry = self.entry_range(at).start;
            if of_entry.0 != entry {
                let first = self.tables.entries.get(entry)?;
                // The first call may start in the middle of an entry.
                let before = at.checked_sub(self.message_of(first))?;
                let mut read = messages::read_message(self.json(first.span)).ok()?;
                of_entry = (entry, read.split_off(before.min(read.len())).into_iter());
            }
            of_entry.1.next()
        })
    }

    fn head_message(&self) -> Option<Message> {
        let json = self.json(self.request.system);
        match self.dialect {
            Dialect::Responses => {
                let text = self.string(self.request.system)?;
                Some(responses::instructions(text.into_owned()))
            }
            _ => messages::read_system(json).ok(),
        }
    }

    fn gathered(&self, entries: Range<usize>) -> Option<Message> {
        if super::element::is_string(self.text, self.request.list) {
            // An `input` that is a string has no entries. It means one user message.
            let text = self.string(self.request.list)?;
            return Some(Message::user(text));
        }
        let mut gatherer = responses::MessageGatherer::default();
        for entry in self.tables.entries.get(entries)? {
            let raw: &RawValue = serde_json::from_str(self.json(entry.span)).ok()?;
            gatherer.push(raw);
        }
        gatherer.messages.into_iter().next()
    }

    /// The JSON of each element of the list of messages.
    pub fn rows(&self) -> impl Iterator<Item = &'a str> {
        let spans = self.tables.entries.iter().map(|entry| entry.span);
        spans.map(|span| self.json(span))
    }

    /// The position of the first message in the list: 1 if there is a system field, else 0.
    pub fn first_in_list(&self) -> usize {
        usize::from(self.head.is_some())
    }

    /// True if the first message is in the system field.
    pub(crate) fn has_head(&self) -> bool {
        self.head.is_some()
    }

    /// The body as text.
    pub fn text(&self) -> &'a str {
        self.text
    }

    pub(crate) fn entries(&self) -> &[EntrySpan] {
        &self.tables.entries
    }

    /// True for the position of the message in the system field.
    fn is_head(&self, at: usize) -> bool {
        self.has_head() && at == 0
    }

    /// The position of the first message of an entry.
    fn message_of(&self, entry: &EntrySpan) -> usize {
        self.first_in_list() + entry.message as usize
    }

    /// The entries of message `at`; empty for the system field.
    pub(crate) fn entry_range(&self, at: usize) -> Range<usize> {
        let end = self.tables.entries.len();
        let Some(listed) = at.checked_sub(self.first_in_list()) else {
            return 0..0;
        };
        let Some(row) = self.tables.messages.get(listed) else {
            return end..end;
        };
        let first = row.entry as usize;
        // Only Responses spreads one message (reasoning, text and calls of an answer) over several
        // entries.
        if self.dialect != Dialect::Responses {
            return first..first.saturating_add(1);
        }
        let next = self.tables.messages.get(listed + 1);
        first..next.map_or(end, |row| row.entry as usize)
    }

    /// The messages that entry `entry` contains or extends.
    pub(crate) fn messages_of(&self, entry: usize) -> Range<usize> {
        let Some(row) = self.tables.entries.get(entry) else {
            return self.len()..self.len();
        };
        let first = self.message_of(row);
        // Only Messages packs several messages (outputs and what the user says) into one entry.
        if self.dialect != Dialect::Messages {
            return first..first.saturating_add(1);
        }
        let next = self.tables.entries.get(entry + 1);
        first..next.map_or(self.len(), |row| self.message_of(row))
    }

    /// The entry that contains `span`.
    pub(crate) fn entry_of(&self, span: Span) -> Option<usize> {
        let after = self
            .tables
            .entries
            // Entries are in the order of the text, so a binary search finds the last one that
            // starts before the span.
            .partition_point(|entry| entry.span.start <= span.start);
        let at = after.checked_sub(1)?;
        let entry = self.tables.entries.get(at)?;
        entry.span.contains(span).then_some(at)
    }

    /// The size of the spans in bytes.
    #[cfg(test)]
    pub(crate) fn size(&self) -> usize {
        self.tables.size()
    }
}

fn remove_deferred(tools: &mut Vec<Value>) {
    tools.retain(|tool| tool.get("defer_loading") != Some(&Value::Bool(true)));
    // A namespace of Responses has definitions of its own.
    let inner = tools.iter_mut().filter_map(|tool| tool.get_mut("tools"));
    inner
        .filter_map(Value::as_array_mut)
        .for_each(remove_deferred);
}
