//! Reads the usage and the calls of an answer while it passes to the client. At its end the record
//! is completed, and a callback learns from what was seen.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Usage};
use trimtab_wire::sse::{StreamEvent, StreamWatcher};

use crate::records::observed_body::AnswerWatch;
use crate::records::record::Record;
use trimtab_wire::answer;
use trimtab_wire::answer::{LONGEST_ANSWER, WholeAnswer};

/// Reads usage and calls from an answer.
pub(crate) struct UsageWatch {
    dialect: Dialect,
    form: WatchedForm,
    /// True once the model called a tool.
    called: bool,
    /// Called at the end.
    on_end: Option<Box<dyn FnOnce(ObservedAnswer) + Send + Sync>>,
}

/// The observations about an answer.
#[derive(Debug)]
pub(crate) struct ObservedAnswer {
    /// The reported usage.
    pub(crate) usage: Option<Usage>,
    pub(crate) content: ObservedContent,
    /// True if the answer ended by itself.
    pub(crate) is_complete: bool,
}

#[derive(Debug)]
pub(crate) enum ObservedContent {
    /// Nothing could be read.
    Unknown,
    Known {
        called: bool,
        said: Measure,
    },
    /// To be read from a complete answer later, when nobody waits.
    In(Dialect, Bytes),
}

impl ObservedAnswer {
    /// True if the model called a tool.
    pub(crate) fn has_calls(&self) -> bool {
        match &self.content {
            ObservedContent::Unknown => false,
            ObservedContent::Known { called, .. } => *called,
            ObservedContent::In(dialect, body) => answer::calls_a_tool(*dialect, body),
        }
    }

    /// The measure of its text, if it could be read.
    pub(crate) fn said(&self) -> Option<Measure> {
        match &self.content {
            ObservedContent::Unknown => None,
            ObservedContent::Known { said, .. } => Some(*said),
            ObservedContent::In(dialect, body) => {
                let answer = WholeAnswer::read(*dialect, body)?;
                Some(answer.said())
            }
        }
    }
}

enum WatchedForm {
    /// Not known yet, or not readable.
    None,
    Stream(Box<StreamWatcher>),
    Whole(Vec<u8>),
}

impl UsageWatch {
    /// A watch for an answer of `dialect`.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            form: WatchedForm::None,
            called: false,
            on_end: None,
        }
    }

    /// Calls `then` at the end.
    pub(crate) fn on_end(
        mut self,
        then: impl FnOnce(ObservedAnswer) + Send + Sync + 'static,
    ) -> Self {
        self.on_end = Some(Box::new(then));
        self
    }

    /// Determines the form of the answer from its headers.
    pub(crate) fn with_headers(mut self, headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        self.form = if headers.contains_key(CONTENT_ENCODING) {
            WatchedForm::None
        } else if answer::is_event_stream(kind) {
            WatchedForm::Stream(Box::new(StreamWatcher::new(self.dialect)))
        } else if kind.starts_with("application/json") {
            WatchedForm::Whole(Vec::new())
        } else {
            WatchedForm::None
        };
        self
    }

    /// True once a stream has announced its end.
    fn is_ended(&self) -> bool {
        matches!(&self.form, WatchedForm::Stream(watcher) if watcher.is_ended())
    }

    fn seen(&mut self) -> (Option<Usage>, ObservedContent) {
        match &mut self.form {
            WatchedForm::None => (None, ObservedContent::Unknown),
            WatchedForm::Stream(watcher) => {
                let called = &mut self.called;
                watcher.finish(|event| *called |= matches!(event, StreamEvent::Call));
                let content = ObservedContent::Known {
                    called: self.called,
                    said: watcher.said(),
                };
                (if_reported(watcher.usage()), content)
            }
            WatchedForm::Whole(body) => {
                let (dialect, body) = (self.dialect, Bytes::from(std::mem::take(body)));
                let usage = answer::usage_in(dialect, &body).and_then(if_reported);
                (usage, ObservedContent::In(dialect, body))
            }
        }
    }
}

impl AnswerWatch for UsageWatch {
    fn data(&mut self, bytes: &Bytes) {
        match &mut self.form {
            WatchedForm::None => {}
            WatchedForm::Stream(watcher) => {
                let called = &mut self.called;
                watcher.push(bytes, |event| {
                    *called |= matches!(event, StreamEvent::Call);
                });
            }
            WatchedForm::Whole(body) if body.len() + bytes.len() <= LONGEST_ANSWER => {
                body.extend_from_slice(bytes);
            }
            // Too long to be kept; what was read is freed at once.
            WatchedForm::Whole(_) => self.form = WatchedForm::None,
        }
    }

    fn end(&mut self, whole: bool, record: &mut Record) {
        let (usage, content) = self.seen();
        // Clients often close the connection as soon as they have the last event, so an ended
        // stream counts as complete.
        let whole = whole || self.is_ended();
        record.cut = !whole;
        record.usage = usage;
        record.silent_overflow = usage.is_some_and(|usage| was_cut(&usage, record));
        if let Some(then) = self.on_end.take() {
            then(ObservedAnswer {
                usage,
                content,
                is_complete: whole,
            });
        }
    }
}

fn if_reported(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

/// True if the provider read far less than was sent, or the prompt filled the window.
fn was_cut(usage: &Usage, record: &Record) -> bool {
    /// Estimates of short windows are too rough to say anything.
    const SHORT: u64 = 4_000;
    let (prompt, sent) = (usage.prompt(), record.tokens_after);
    let full = record.window > 0 && prompt >= record.window;
    prompt > 0 && (full || (sent > SHORT && prompt < sent / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn seen(dialect: Dialect, kind: &'static str, body: &'static str) -> Record {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        let mut watch = UsageWatch::new(dialect).with_headers(&headers);
        for piece in body.as_bytes().chunks(7) {
            watch.data(&Bytes::from_static(piece));
        }
        let mut record = Record {
            tokens_after: 10_000,
            ..Record::default()
        };
        watch.end(true, &mut record);
        record
    }

    #[test]
    fn usage_is_read_from_streams_and_whole_answers() {
        let stream =
            "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9000,\"completion_tokens\":2}}\n\n";
        let record = seen(Dialect::Chat, "text/event-stream", stream);
        assert_eq!(record.usage.unwrap().prompt(), 9000);
        assert!(!record.silent_overflow);
        let whole = r#"{"content":[],"usage":{"input_tokens":3000,"output_tokens":2}}"#;
        let record = seen(Dialect::Messages, "application/json", whole);
        assert_eq!(record.usage.unwrap().prompt(), 3000);
        // Ten thousand were sent.
        assert!(record.silent_overflow);
        assert!(seen(Dialect::Chat, "text/plain", "x").usage.is_none());
    }
}
