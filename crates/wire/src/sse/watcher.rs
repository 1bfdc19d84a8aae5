//! Reports the meaning of a stream while it passes.

use trimtab_model::{Call, Dialect, Reasoning, Usage, work};

use super::event::{StreamError, StreamEvent};
use super::frames::{EventFrame, EventFrames, MAX_EVENT};
use super::open_parts::OpenParts;
use super::{chat, messages, responses};
use crate::json::pick;
use crate::scan::{Span, string};

/// The maximum size of buffered arguments and reasoning per answer.
const MAX_KEPT: usize = 8 << 20;

/// Watches a stream.
#[derive(Clone, Debug)]
pub struct StreamWatcher {
    frames: EventFrames,
    state: StreamState,
}

/// The state of the answer.
#[derive(Clone, Debug)]
pub(super) struct StreamState {
    dialect: Dialect,
    /// The incomplete calls, by the index that the stream gives them.
    calls: OpenParts<Call>,
    /// The incomplete reasoning parts, by the same index.
    thoughts: OpenParts<Reasoning>,
    /// The size of buffered arguments and reasoning.
    kept_bytes: usize,
    pub(super) usage: Usage,
    pub(super) started: bool,
    ended: bool,
}

impl StreamWatcher {
    /// Watches an answer of `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self::with_limit(dialect, MAX_EVENT)
    }

    /// Like [`new`](Self::new), with a maximum event size of `limit` bytes.
    pub fn with_limit(dialect: Dialect, limit: usize) -> Self {
        Self {
            frames: EventFrames::new(limit),
            state: StreamState {
                dialect,
                calls: OpenParts::default(),
                thoughts: OpenParts::default(),
                kept_bytes: 0,
                usage: Usage::default(),
                started: false,
                ended: false,
            },
        }
    }

    /// Reads the next bytes and passes their events to `each`.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(StreamEvent<'_>)) {
        work::step_bytes(bytes.len());
        let state = &mut self.state;
        self.frames
            .push(bytes, |frame| state.frame(&frame, &mut each));
    }

    /// Takes the data of one event, which the caller has already framed.
    pub fn take(&mut self, data: &str, mut each: impl FnMut(StreamEvent<'_>)) {
        let frame = EventFrame::Data(data.as_bytes());
        self.state.frame(&frame, &mut each);
    }

    /// Ends the stream and reports the parts that were left open.
    pub fn finish(&mut self, mut each: impl FnMut(StreamEvent<'_>)) {
        let state = &mut self.state;
        self.frames.finish(|frame| state.frame(&frame, &mut each));
        state.end_calls(&mut each);
    }

    /// The usage reported so far.
    pub fn usage(&self) -> Usage {
        self.state.usage
    }

    /// True once the answer is complete.
    pub fn is_ended(&self) -> bool {
        self.state.ended
    }
}

impl StreamState {
    fn frame(&mut self, frame: &EventFrame<'_>, each: &mut impl FnMut(StreamEvent<'_>)) {
        work::step(1);
        let data = match frame {
            EventFrame::Overlong => return each(StreamEvent::Overlong),
            EventFrame::Data(data) => data,
        };
        // The end in Chat Completions. Some servers of other dialects send it too.
        if data.trim_ascii() == b"[DONE]" {
            return self.end(each);
        }
        let Ok(data) = std::str::from_utf8(data) else {
            return each(StreamEvent::Malformed);
        };
        let read = match self.dialect {
            Dialect::Chat => chat::event(self, data, each),
            Dialect::Messages => messages::event(self, data, each),
            Dialect::Responses => responses::event(self, data, each),
        };
        if read.is_none() {
            each(StreamEvent::Malformed);
        }
    }

    /// Reports the start of the answer, once.
    pub(super) fn start(&mut self, each: &mut impl FnMut(StreamEvent<'_>)) {
        if !std::mem::replace(&mut self.started, true) {
            each(StreamEvent::Start);
        }
    }

    /// Reports the end of the answer, once.
    pub(super) fn end(&mut self, each: &mut impl FnMut(StreamEvent<'_>)) {
        self.end_calls(each);
        if !std::mem::replace(&mut self.ended, true) {
            each(StreamEvent::End);
        }
    }

    /// The newest call at `index`; created if necessary.
    pub(super) fn call(&mut self, index: u64) -> Option<&mut Call> {
        // Some servers send arguments before the event that starts the call.
        if self.calls.newest(index).is_none() {
            self.begin_call(index);
        }
        self.calls.newest(index)
    }

    /// Starts another call at `index`.
    pub(super) fn begin_call(&mut self, index: u64) {
        self.calls.begin(index, Call::new("", "", ""));
    }

    /// Starts reasoning at `index`.
    pub(super) fn begin_thought(&mut self, index: u64, thought: Reasoning) {
        self.kept_bytes += thought.text.len();
        self.thoughts.begin(index, thought);
    }

    /// Adds to the arguments of the call at `index`.
    pub(super) fn add_arguments(&mut self, index: u64, more: &str) {
        if self.is_kept(more.len())
            && let Some(call) = self.call(index)
        {
            call.arguments.push_str(more);
        }
    }

    /// Adds to the text or the signature of the reasoning at `index`, if there is one.
    pub(super) fn add_thought(&mut self, index: u64, text: &str, seal: &str) {
        if self.is_kept(text.len() + seal.len())
            && let Some(thought) = self.thoughts.newest(index)
        {
            thought.text.push_str(text);
            if !seal.is_empty() {
                thought.seal.get_or_insert_default().push_str(seal);
            }
        }
    }

    /// True if there is room for `more` bytes, which then count.
    fn is_kept(&mut self, more: usize) -> bool {
        // Beyond the limit pieces are dropped, but the stream still passes: only what is read of it
        // is incomplete.
        let fits = self.kept_bytes + more <= MAX_KEPT;
        self.kept_bytes += if fits { more } else { 0 };
        fits
    }

    /// Reports the complete call or reasoning at `index`.
    pub(super) fn end_part(&mut self, index: u64, each: &mut impl FnMut(StreamEvent<'_>)) {
        if let Some(thought) = self.thoughts.end(index) {
            let seal = thought.seal.as_ref().map_or(0, String::len);
            self.kept_bytes = self.kept_bytes.saturating_sub(thought.text.len() + seal);
            each(StreamEvent::Thought(thought));
        }
        if let Some(call) = self.calls.end(index) {
            self.kept_bytes = self.kept_bytes.saturating_sub(call.arguments.len());
            each(StreamEvent::Call(call));
        }
    }

    pub(super) fn end_calls(&mut self, each: &mut impl FnMut(StreamEvent<'_>)) {
        // A stream may end without closing its parts.
        for call in std::mem::take(&mut self.calls).in_order() {
            self.kept_bytes = self.kept_bytes.saturating_sub(call.arguments.len());
            each(StreamEvent::Call(call));
        }
    }
}

/// The text of `json`, if it is a string.
pub(super) fn text(json: Option<&str>) -> Option<String> {
    let json = json?;
    string(json, Span::new(0, json.len())).map(Into::into)
}

/// The number in `json`, if it is one.
pub(super) fn number(json: Option<&str>) -> Option<u64> {
    json?.parse().ok()
}

/// `json`, unless it is `null`.
pub(super) fn non_null(json: Option<&str>) -> Option<&str> {
    json.filter(|json| *json != "null")
}

/// Parses an error object, or an error that is a string.
pub(super) fn error(json: &str, data: &str) -> StreamError {
    let [code, kind, message] = pick(json, ["code", "type", "message"]).unwrap_or_default();
    let number = number(code).map(|code| code.to_string());
    StreamError {
        code: text(code).or(number).or(text(kind)).unwrap_or_default(),
        message: text(message).or(text(Some(json))).unwrap_or_default(),
        data: data.to_owned(),
    }
}
