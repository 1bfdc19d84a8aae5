//! Hides parts of a stream and keeps the numbering of the rest dense.

mod chat;
mod messages;
mod responses;

pub use responses::without_repeated_tools;

use std::collections::HashMap;

use trimtab_model::{Dialect, work};

use super::frames::{EventCutter, MAX_EVENT, ParsedEvent, RawEvent};
use crate::json::{quoted, text_of};
use crate::scan::Span;
use crate::splice::containers::Containers;
use crate::splice::edits::ByteEdits;

/// Hides calls of our own tools from the client.
///
/// If an answer calls only hidden tools, its end is held back: the caller answers the calls and
/// continues with the next answer ([`CallFilter::continue_answer`]), so that the client sees one
/// answer; or it releases the end ([`CallFilter::release`]).
///
/// Events are forwarded as soon as they are complete. Unchanged events are forwarded byte for byte.
#[derive(Clone, Debug)]
pub struct CallFilter {
    cutter: EventCutter,
    rewriter: StreamRewriter,
}

/// The decision about an event.
enum EventVerdict {
    /// Forward it unchanged.
    Pass,
    /// Forward it with other data.
    Rewrite(String),
    /// Omit it.
    Hide,
    /// It belongs to the end of the answer.
    End,
}

/// The state of the stream.
#[derive(Clone, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one thing that was seen in the stream"
)]
struct StreamRewriter {
    dialect: Dialect,
    hidden_names: Vec<String>,
    /// The client's index of each part of this answer.
    indices: HashMap<u64, Option<u64>>,
    next_index: u64,
    /// The next sequence number; none before the first event with one.
    next_sequence: Option<u64>,
    /// True once the client has received the role.
    role_named: bool,
    /// The prompt figures of this answer, if their event was omitted.
    prompt_figures: Vec<(&'static str, String)>,
    /// A field to add to the usage of the answer, with its value.
    usage_note: Option<(&'static str, String)>,
    /// True if this answer continues another one.
    goes_on: bool,
    /// True once a hidden call was seen in this answer.
    hides: bool,
    /// True once a visible call was seen in this answer.
    shows: bool,
    /// True if the last event was left out.
    hid_last: bool,
    /// The end of the answer, while it is held back.
    held_end: Option<Vec<u8>>,
    /// The parts that the client saw, for the event that repeats all parts.
    shown_parts: Vec<String>,
    /// The size of those parts.
    seen_bytes: usize,
    /// The id under which the client knows the answer.
    id: Option<String>,
}

impl CallFilter {
    /// A filter that hides calls of the tools `hidden`.
    pub fn new(dialect: Dialect, hidden: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            cutter: EventCutter::new(MAX_EVENT),
            rewriter: StreamRewriter {
                dialect,
                hidden_names: hidden.into_iter().map(Into::into).collect(),
                ..StreamRewriter::default()
            },
        }
    }

    /// Reads bytes of the provider and appends the bytes for the client to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.push_reading(bytes, out, |_| ());
    }

    /// The same, and shows the data of each event as the provider sent it, so that nobody else
    /// has to frame the stream.
    pub fn push_reading(&mut self, bytes: &[u8], out: &mut Vec<u8>, mut each: impl FnMut(&str)) {
        work::step_bytes(bytes.len());
        let rewriter = &mut self.rewriter;
        self.cutter
            .push(bytes, |piece| rewriter.piece(&piece, out, &mut each));
    }

    /// Ends the provider's stream.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.finish_reading(out, |_| ());
    }

    /// The same, and shows the data of an event that had no blank line behind it.
    pub fn finish_reading(&mut self, out: &mut Vec<u8>, mut each: impl FnMut(&str)) {
        let rewriter = &mut self.rewriter;
        self.cutter
            .finish(|piece| rewriter.piece(&piece, out, &mut each));
    }

    /// True once a call was hidden in this answer.
    pub fn has_hidden(&self) -> bool {
        self.rewriter.hides
    }

    /// True if the end of the answer is held back, because it calls hidden tools only.
    pub fn is_waiting(&self) -> bool {
        self.rewriter.held_end.is_some()
    }

    /// The next bytes belong to an answer that continues this one.
    pub fn continue_answer(&mut self) {
        let rewriter = &mut self.rewriter;
        // The next answer numbers its parts from 0 again. The client's numbering continues.
        rewriter.indices = HashMap::new();
        rewriter.held_end = None;
        rewriter.goes_on = true;
        rewriter.hides = false;
        rewriter.shows = false;
    }

    /// Adds a field to the usage of the answer.
    pub fn note_in_usage(&mut self, name: &'static str, json: String) {
        self.rewriter.usage_note = Some((name, json));
    }

    /// Releases the end that was held back.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        out.extend(self.rewriter.held_end.take().unwrap_or_default());
        self.rewriter.hides = false;
    }
}

impl StreamRewriter {
    fn piece(&mut self, piece: &RawEvent<'_>, out: &mut Vec<u8>, each: &mut impl FnMut(&str)) {
        match piece {
            RawEvent::Passing(bytes) => {
                self.hid_last = false;
                out.extend_from_slice(bytes);
            }
            RawEvent::Event(event) => {
                self.hid_last = false;
                let parsed = ParsedEvent::new(event);
                let json = parsed.as_ref().map(|parsed| str::from_utf8(&parsed.data));
                if let (Some(parsed), Some(Ok(json))) = (&parsed, json) {
                    each(json);
                    self.event(event, parsed, json, out);
                } else {
                    self.put(event, out);
                }
            }
            // The last line feed of a hidden event is hidden with it.
            RawEvent::Rest(_) if self.hid_last => {}
            RawEvent::Rest(bytes) => self.put(bytes, out),
        }
    }

    fn event(&mut self, event: &[u8], parsed: &ParsedEvent<'_>, json: &str, out: &mut Vec<u8>) {
        work::step(1);
        let verdict = match self.dialect {
            // `[DONE]` is not JSON, but it is the end in Chat Completions.
            _ if json == "[DONE]" => EventVerdict::End,
            Dialect::Chat => self.chat(json),
            Dialect::Messages => self.messages(json),
            Dialect::Responses => self.responses(json),
        };
        match verdict {
            EventVerdict::Hide => self.hid_last = true,
            EventVerdict::Pass => self.put(event, out),
            EventVerdict::Rewrite(json) => {
                let mut bytes = Vec::with_capacity(event.len() + 8);
                parsed.write(&json, &mut bytes);
                self.put(&bytes, out);
            }
            EventVerdict::End => {
                // If the client has calls to answer too, the answer must end for it.
                if self.hides && !self.shows {
                    self.hold();
                }
                self.put(event, out);
            }
        }
    }

    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        // Once the end is held back, everything after it is held back too.
        let to = self.held_end.as_mut().unwrap_or(out);
        to.extend_from_slice(bytes);
    }

    /// Holds back everything from here on.
    fn hold(&mut self) {
        self.held_end.get_or_insert_with(Vec::new);
    }

    fn is_hidden(&self, name: &str) -> bool {
        self.hidden_names.iter().any(|hidden| hidden == name)
    }

    /// Assigns the client's index to a part, or hides it if it is our own call.
    fn begin(&mut self, index: u64, called: Option<&str>) -> Option<u64> {
        let hidden = called.is_some_and(|name| self.is_hidden(name));
        self.hides |= hidden;
        self.shows |= called.is_some() && !hidden;
        // Hidden parts get no index, so that the visible ones are dense.
        let seen = (!hidden).then(|| {
            self.next_index += 1;
            self.next_index - 1
        });
        self.indices.insert(index, seen);
        seen
    }

    /// Gives the answer the id that the client saw first.
    fn keep_id(&mut self, id: Option<&str>, edit: &mut EventEdit<'_>) {
        let Some(json) = id else { return };
        match &self.id {
            None => self.id = text_of(Some(json)),
            Some(first) if self.goes_on => edit.set(json, &quoted(first)),
            Some(_) => {}
        }
    }

    /// Adds the pending field and `more` to a usage object.
    fn note_usage(
        &self,
        usage: Option<&str>,
        more: Vec<(&'static str, String)>,
        edit: &mut EventEdit<'_>,
    ) {
        let Some(usage) = usage.filter(|usage| usage.starts_with('{')) else {
            return;
        };
        let fields = more.into_iter().chain(self.usage_note.clone());
        let with_fields = fields.fold(usage.to_owned(), |object, (name, value)| {
            // Insert before the closing brace, so that the provider's figures keep their bytes.
            let inner = object.trim_end().strip_suffix('}').unwrap_or(&object);
            let comma = if inner.trim() == "{" { "" } else { "," };
            format!("{inner}{comma}{}:{value}}}", quoted(name))
        });
        edit.set(usage, &with_fields);
    }

    /// The client's index of a part; none if it is hidden.
    fn index(&self, index: u64) -> Option<u64> {
        // A part whose start was not seen keeps its index.
        self.indices.get(&index).copied().unwrap_or(Some(index))
    }
}

/// Changes to the JSON of one event.
struct EventEdit<'a> {
    json: &'a str,
    edits: ByteEdits,
    containers: Containers<'a>,
    changed: bool,
    /// True if it contains a visible call.
    calls_left: bool,
}

impl<'a> EventEdit<'a> {
    fn new(json: &'a str) -> Self {
        Self {
            json,
            edits: ByteEdits::default(),
            containers: Containers::new(json, Span::default()),
            changed: false,
            calls_left: false,
        }
    }

    /// The position of `piece`, a slice of the JSON.
    fn span(&self, piece: &str) -> Span {
        Span::of_slice(self.json, piece)
    }

    /// Replaces `piece` by `new`, if they differ.
    fn set(&mut self, piece: &str, new: &str) {
        if piece != new {
            let span = self.span(piece);
            self.edits.replace(span, new);
            self.changed = true;
        }
    }

    /// Removes an element of a list; both are slices of the JSON.
    fn drop_element(&mut self, list: &str, element: &str) {
        let (list, element) = (self.span(list), self.span(element));
        self.containers.drop_element(list, element);
        self.changed = true;
    }

    /// Removes a field of an object, which is a slice of the JSON.
    fn drop_field(&mut self, object: &str, name: &str) {
        let object = self.span(object);
        self.containers.drop_field(object, name);
        self.changed = true;
    }

    fn end(mut self) -> EventVerdict {
        // An unchanged event is forwarded byte for byte.
        if !self.changed {
            return EventVerdict::Pass;
        }
        self.containers.write(&mut self.edits);
        let json = self.edits.apply(self.json);
        match String::from_utf8(json) {
            Ok(json) => EventVerdict::Rewrite(json),
            Err(_) => EventVerdict::Pass,
        }
    }
}

fn number(json: Option<&str>) -> u64 {
    json.and_then(|json| json.parse().ok()).unwrap_or(0)
}
