//! Tells what a stream says while it passes.

use trimtab_model::{Call, Dialect, Reasoning, Usage};

use super::event::{Event, StreamError};
use super::frames::{Frame, Frames, MAX_EVENT};
use super::{chat, messages, responses};
use crate::json::pick;
use crate::scan::{Span, string};

/// The most bytes of arguments, and of thoughts, that are kept for one answer.
const MAX_KEPT: usize = 32 << 20;

/// Watches a stream.
#[derive(Clone, Debug)]
pub struct Watcher {
    frames: Frames,
    state: State,
}

/// What is known of the answer so far.
#[derive(Clone, Debug)]
pub(super) struct State {
    dialect: Dialect,
    /// The calls that are being written, by the index that the stream gives them.
    pub(super) open: Vec<(u64, Call)>,
    /// The thoughts that are being written, by the same index.
    pub(super) thoughts: Vec<(u64, Reasoning)>,
    pub(super) usage: Usage,
    pub(super) started: bool,
    ended: bool,
}

impl Watcher {
    /// Watches an answer of `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self::with_limit(dialect, MAX_EVENT)
    }

    /// The same, keeping at most `limit` bytes of an event.
    pub fn with_limit(dialect: Dialect, limit: usize) -> Self {
        Self {
            frames: Frames::new(limit),
            state: State {
                dialect,
                open: Vec::new(),
                thoughts: Vec::new(),
                usage: Usage::default(),
                started: false,
                ended: false,
            },
        }
    }

    /// Takes the bytes that pass next, and gives what they say to `each`.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(Event<'_>)) {
        let state = &mut self.state;
        self.frames
            .push(bytes, |frame| state.frame(&frame, &mut each));
    }

    /// Ends the stream: gives what was left open.
    pub fn finish(&mut self, mut each: impl FnMut(Event<'_>)) {
        let state = &mut self.state;
        self.frames.finish(|frame| state.frame(&frame, &mut each));
        state.end_calls(&mut each);
    }

    /// What the provider reported so far.
    pub fn usage(&self) -> Usage {
        self.state.usage
    }

    /// True once the answer is complete.
    pub fn is_ended(&self) -> bool {
        self.state.ended
    }
}

impl State {
    fn frame(&mut self, frame: &Frame<'_>, each: &mut impl FnMut(Event<'_>)) {
        let data = match frame {
            Frame::Overlong => return each(Event::Overlong),
            Frame::Data(data) => data,
        };
        if data.trim_ascii() == b"[DONE]" {
            return self.end(each);
        }
        let Ok(data) = std::str::from_utf8(data) else {
            return each(Event::Malformed);
        };
        let read = match self.dialect {
            Dialect::Chat => chat::event(self, data, each),
            Dialect::Messages => messages::event(self, data, each),
            Dialect::Responses => responses::event(self, data, each),
        };
        if read.is_none() {
            each(Event::Malformed);
        }
    }

    /// Says once that the answer begins.
    pub(super) fn start(&mut self, each: &mut impl FnMut(Event<'_>)) {
        if !std::mem::replace(&mut self.started, true) {
            each(Event::Start);
        }
    }

    /// Says once that the answer is complete.
    pub(super) fn end(&mut self, each: &mut impl FnMut(Event<'_>)) {
        self.end_calls(each);
        if !std::mem::replace(&mut self.ended, true) {
            each(Event::End);
        }
    }

    /// The newest call at `index`, which may be new.
    pub(super) fn call(&mut self, index: u64) -> Option<&mut Call> {
        let at = self.open.iter().rposition(|(open, _)| *open == index);
        let at = at.unwrap_or_else(|| {
            self.open.push((index, Call::new("", "", "")));
            self.open.len() - 1
        });
        self.open.get_mut(at).map(|(_, call)| call)
    }

    /// Adds to the arguments of the call at `index`.
    pub(super) fn add_arguments(&mut self, index: u64, more: &str) {
        let kept: usize = self.open.iter().map(|(_, call)| call.arguments.len()).sum();
        if kept + more.len() > MAX_KEPT {
            return;
        }
        if let Some(call) = self.call(index) {
            call.arguments.push_str(more);
        }
    }

    /// Adds to the thought at `index`, if there is one: to its text, or to its seal.
    pub(super) fn add_thought(&mut self, index: u64, text: &str, seal: &str) {
        let size =
            |thought: &Reasoning| thought.text.len() + thought.seal.as_ref().map_or(0, String::len);
        let kept: usize = self.thoughts.iter().map(|(_, open)| size(open)).sum();
        if kept + text.len() + seal.len() > MAX_KEPT {
            return;
        }
        let open = self.thoughts.iter_mut().find(|(open, _)| *open == index);
        if let Some((_, thought)) = open {
            thought.text.push_str(text);
            if !seal.is_empty() {
                thought.seal.get_or_insert_default().push_str(seal);
            }
        }
    }

    /// Gives the call or the thought at `index`, which is complete.
    pub(super) fn end_part(&mut self, index: u64, each: &mut impl FnMut(Event<'_>)) {
        if let Some(at) = self.thoughts.iter().position(|(open, _)| *open == index) {
            each(Event::Thought(self.thoughts.remove(at).1));
        }
        if let Some(at) = self.open.iter().position(|(open, _)| *open == index) {
            each(Event::Call(self.open.remove(at).1));
        }
    }

    pub(super) fn end_calls(&mut self, each: &mut impl FnMut(Event<'_>)) {
        for (_, call) in std::mem::take(&mut self.open) {
            each(Event::Call(call));
        }
    }
}

/// The text of `json`, if it is a string.
pub(super) fn text(json: Option<&str>) -> Option<String> {
    let json = json?;
    string(json, Span::new(0, json.len())).map(Into::into)
}

/// The figure in `json`, if it is one.
pub(super) fn number(json: Option<&str>) -> Option<u64> {
    json?.parse().ok()
}

/// `json`, unless it is `null`.
pub(super) fn some(json: Option<&str>) -> Option<&str> {
    json.filter(|json| *json != "null")
}

/// Reads an error object, or an error that is a text.
pub(super) fn error(json: &str, data: &str) -> StreamError {
    let [code, kind, message] = pick(json, ["code", "type", "message"]).unwrap_or_default();
    let number = number(code).map(|code| code.to_string());
    StreamError {
        code: text(code).or(number).or(text(kind)).unwrap_or_default(),
        message: text(message).or(text(Some(json))).unwrap_or_default(),
        data: data.to_owned(),
    }
}
