//! Hides parts of a stream and keeps the numbering of what is left dense.

mod chat;
mod messages;
mod own;
mod raw;
mod responses;

use std::collections::HashMap;

use trimtab_model::{Dialect, work};

use self::raw::{Cutter, Parsed, Piece};
use super::frames::MAX_EVENT;
use crate::json::quoted;
use crate::scan::{Span, string};
use crate::splice::containers::Containers;
use crate::splice::edits::Edits;

/// Hides calls of our own tools from the client.
///
/// Where an answer asks for nothing but hidden tools, its end is held back: the caller
/// answers the calls, and lets the next answer follow with [`Filter::go_on`], so that the
/// client sees one answer; or it gives the end after all with [`Filter::release`].
///
/// Events are passed on whole, as soon as they are complete. What needs no change passes
/// byte for byte.
#[derive(Clone, Debug)]
pub struct Filter {
    cutter: Cutter,
    rewriter: Rewriter,
}

/// What to do with an event.
enum Verdict {
    /// Pass it as it came.
    Pass,
    /// Pass it with other data.
    Rewrite(String),
    /// Leave it out.
    Hide,
    /// It belongs to the end of the answer.
    End,
}

/// What the filter knows of the stream.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is one thing that was seen in the stream"
)]
struct Rewriter {
    dialect: Dialect,
    hidden_names: Vec<String>,
    /// For each part of this answer, the index under which the client sees it.
    indices: HashMap<u64, Option<u64>>,
    next_index: u64,
    /// The number of the next event; none before the first one that has a number.
    next_sequence: Option<u64>,
    /// True once the client was told the role of the answer.
    role_named: bool,
    /// The prompt's figures of this answer, where the event that had them was left out.
    prompt_figures: Vec<(&'static str, String)>,
    /// A field to add to the usage of the answer, with its value.
    usage_note: Option<(&'static str, String)>,
    /// True if this answer goes on where another one ended.
    goes_on: bool,
    /// True once a hidden call was seen in this answer.
    hides: bool,
    /// True once a call for the client was seen in this answer.
    shows: bool,
    /// The end of the answer, while it is held back.
    held: Option<Vec<u8>>,
    /// The parts that the client saw, for the event that repeats them all.
    seen: Vec<String>,
    /// Bytes of those parts.
    seen_bytes: usize,
    /// The id under which the client knows the answer.
    id: Option<String>,
}

impl Filter {
    /// A filter that hides the calls of the tools `hidden`.
    pub fn new(dialect: Dialect, hidden: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            cutter: Cutter::new(MAX_EVENT),
            rewriter: Rewriter {
                dialect,
                hidden_names: hidden.into_iter().map(Into::into).collect(),
                indices: HashMap::new(),
                next_index: 0,
                next_sequence: None,
                role_named: false,
                prompt_figures: Vec::new(),
                usage_note: None,
                goes_on: false,
                hides: false,
                shows: false,
                held: None,
                seen: Vec::new(),
                seen_bytes: 0,
                id: None,
            },
        }
    }

    /// Takes bytes of the provider and appends those for the client to `out`.
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

    /// True if the end of the answer is held back, because it asks for hidden tools only.
    pub fn is_waiting(&self) -> bool {
        self.rewriter.held.is_some()
    }

    /// The next bytes are those of an answer that goes on where this one ended.
    pub fn go_on(&mut self) {
        let rewriter = &mut self.rewriter;
        rewriter.indices = HashMap::new();
        rewriter.held = None;
        rewriter.goes_on = true;
        rewriter.hides = false;
        rewriter.shows = false;
    }

    /// From now on, the usage of the answer is given with one more field.
    pub fn note_in_usage(&mut self, name: &'static str, json: String) {
        self.rewriter.usage_note = Some((name, json));
    }

    /// Gives the end that was held back.
    pub fn release(&mut self, out: &mut Vec<u8>) {
        out.extend(self.rewriter.held.take().unwrap_or_default());
        self.rewriter.hides = false;
    }

    /// Puts in a text of ours as a part of its own. To be called between parts.
    pub fn say(&mut self, text: &str, out: &mut Vec<u8>) {
        self.rewriter.say(text, out);
    }
}

impl Rewriter {
    fn piece(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>, each: &mut impl FnMut(&str)) {
        match piece {
            Piece::Passing(bytes) => out.extend_from_slice(bytes),
            Piece::Event(event) => match Parsed::new(event) {
                Some(parsed) => {
                    each(&parsed.json);
                    self.event(event, &parsed, out);
                }
                None => self.put(event, out),
            },
        }
    }

    fn event(&mut self, event: &[u8], parsed: &Parsed, out: &mut Vec<u8>) {
        work::step(1);
        let verdict = match self.dialect {
            _ if parsed.json == "[DONE]" => Verdict::End,
            Dialect::Chat => self.chat(&parsed.json),
            Dialect::Messages => self.messages(&parsed.json),
            Dialect::Responses => self.responses(&parsed.json),
        };
        match verdict {
            Verdict::Hide => {}
            Verdict::Pass => self.put(event, out),
            Verdict::Rewrite(json) => {
                let mut bytes = Vec::with_capacity(event.len() + 8);
                parsed.write(&json, &mut bytes);
                self.put(&bytes, out);
            }
            Verdict::End => {
                if self.hides && !self.shows {
                    self.hold();
                }
                self.put(event, out);
            }
        }
    }

    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let to = self.held.as_mut().unwrap_or(out);
        to.extend_from_slice(bytes);
    }

    /// Holds back everything from here on.
    fn hold(&mut self) {
        self.held.get_or_insert_with(Vec::new);
    }

    fn is_hidden(&self, name: &str) -> bool {
        self.hidden_names.iter().any(|hidden| hidden == name)
    }

    /// Gives a part its index for the client, or hides it if it is a call of ours.
    fn begin(&mut self, index: u64, called: Option<&str>) -> Option<u64> {
        let hidden = called.is_some_and(|name| self.is_hidden(name));
        self.hides |= hidden;
        self.shows |= called.is_some() && !hidden;
        let seen = (!hidden).then(|| {
            self.next_index += 1;
            self.next_index - 1
        });
        self.indices.insert(index, seen);
        seen
    }

    /// Adds to a usage object what is to be noted in it, and `more`.
    fn note_usage(
        &self,
        usage: Option<&str>,
        more: Vec<(&'static str, String)>,
        edit: &mut Edit<'_>,
    ) {
        let Some(usage) = usage.filter(|usage| usage.starts_with('{')) else {
            return;
        };
        let fields = more.into_iter().chain(self.usage_note.clone());
        let with_fields = fields.fold(usage.to_owned(), |object, (name, value)| {
            let inner = object.trim_end().strip_suffix('}').unwrap_or(&object);
            let comma = if inner.trim() == "{" { "" } else { "," };
            format!("{inner}{comma}{}:{value}}}", quoted(name))
        });
        edit.set(usage, &with_fields);
    }

    /// The index under which the client sees a part: none if it is hidden.
    fn index(&self, index: u64) -> Option<u64> {
        self.indices.get(&index).copied().unwrap_or(Some(index))
    }
}

/// Changes of one event's JSON.
struct Edit<'a> {
    json: &'a str,
    edits: Edits,
    containers: Containers<'a>,
    changed: bool,
    /// True if a call for the client is in it.
    calls_left: bool,
}

impl<'a> Edit<'a> {
    fn new(json: &'a str) -> Self {
        Self {
            json,
            edits: Edits::default(),
            containers: Containers::new(json, Span::default()),
            changed: false,
            calls_left: false,
        }
    }

    /// Where `piece`, which was taken from the JSON, stands in it.
    fn span(&self, piece: &str) -> Span {
        let start = piece
            .as_ptr()
            .addr()
            .wrapping_sub(self.json.as_ptr().addr());
        Span::new(start, start + piece.len())
    }

    /// Puts `new` where `piece` is, if that is not the same.
    fn set(&mut self, piece: &str, new: &str) {
        if piece != new {
            let span = self.span(piece);
            self.edits.replace(span, new);
            self.changed = true;
        }
    }

    /// Leaves out an element of a list; both were taken from the JSON.
    fn drop_element(&mut self, list: &str, element: &str) {
        let (list, element) = (self.span(list), self.span(element));
        self.containers.drop_element(list, element);
        self.changed = true;
    }

    /// Leaves out a field of an object that was taken from the JSON.
    fn drop_field(&mut self, object: &str, name: &str) {
        let object = self.span(object);
        self.containers.drop_field(object, name);
        self.changed = true;
    }

    fn end(mut self) -> Verdict {
        if !self.changed {
            return Verdict::Pass;
        }
        self.containers.write(&mut self.edits);
        let json = self.edits.apply(self.json);
        match String::from_utf8(json) {
            Ok(json) => Verdict::Rewrite(json),
            Err(_) => Verdict::Pass,
        }
    }
}

fn text(json: Option<&str>) -> Option<String> {
    let json = json?;
    string(json, Span::new(0, json.len())).map(Into::into)
}

fn number(json: Option<&str>) -> u64 {
    json.and_then(|json| json.parse().ok()).unwrap_or(0)
}
