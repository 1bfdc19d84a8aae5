//! Reports the meaning of a stream while it passes.

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Usage, work};

use super::event::{StreamError, StreamEvent};
use super::frames::{EventFrame, EventFrames, MAX_EVENT};
use super::{chat, messages, responses};
use crate::json::{number, pick, text_of};

/// Watches a stream.
#[derive(Clone, Debug)]
pub struct StreamWatcher {
    frames: EventFrames,
    state: StreamState,
}

/// The state of the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct StreamState {
    dialect: Dialect,
    pub(super) usage: Usage,
    /// The measure of the text so far, without its message.
    said: Measure,
    pub(super) started: bool,
    ended: bool,
}

impl StreamWatcher {
    /// Watches an answer of `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self::with_limit(dialect, MAX_EVENT)
    }

    /// Like [`new`](Self::new), with a maximum event size of `limit` bytes.
    pub(crate) fn with_limit(dialect: Dialect, limit: usize) -> Self {
        Self {
            frames: EventFrames::new(limit),
            state: StreamState {
                dialect,
                ..StreamState::default()
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

    /// Takes one event, which the caller has already framed.
    pub(crate) fn take(&mut self, frame: &EventFrame<'_>, each: &mut impl FnMut(StreamEvent<'_>)) {
        self.state.frame(frame, each);
    }

    /// Ends the stream: an event without its closing blank line counts too.
    pub fn finish(&mut self, mut each: impl FnMut(StreamEvent<'_>)) {
        let state = &mut self.state;
        self.frames.finish(|frame| state.frame(&frame, &mut each));
    }

    /// The usage reported so far.
    pub fn usage(&self) -> Usage {
        self.state.usage
    }

    /// The measure of the answer so far. Only its text counts: clients rarely send back the rest.
    pub fn said(&self) -> Measure {
        self.state.said + Measure::of(&Message::assistant(""))
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
        let mut said = Measure::default();
        let mut seen = |event: StreamEvent<'_>| {
            if let StreamEvent::Text(delta) = &event {
                said += Measure::of_text(&delta.text());
            }
            each(event);
        };
        let read = match self.dialect {
            Dialect::Chat => chat::event(self, data, &mut seen),
            Dialect::Messages => messages::event(self, data, &mut seen),
            Dialect::Responses => responses::event(self, data, &mut seen),
        };
        self.said += said;
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
        if !std::mem::replace(&mut self.ended, true) {
            each(StreamEvent::End);
        }
    }
}

/// Parses an error object, or an error that is a string.
pub(super) fn error(json: &str, data: &str) -> StreamError {
    let [code, kind, message] = pick(json, ["code", "type", "message"]).unwrap_or_default();
    let number = number(code).map(|code| code.to_string());
    StreamError {
        code: text_of(code)
            .or(number)
            .or(text_of(kind))
            .unwrap_or_default(),
        message: text_of(message).or(text_of(Some(json))).unwrap_or_default(),
        data: data.to_owned(),
    }
}
