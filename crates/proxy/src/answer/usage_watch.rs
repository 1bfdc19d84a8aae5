//! What an answer says about itself while it passes.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::Value;
use trimtab_model::{Dialect, Usage};
use trimtab_wire::sse::{Event, Watcher};

use crate::answer::assemble;
use crate::answer::events::LONGEST_ANSWER;
use crate::records::observed_body::Watch;
use crate::records::record::Record;

/// Reads usage and calls from an answer.
pub(crate) struct UsageWatch {
    dialect: Dialect,
    form: Form,
    /// True once the model called a tool.
    called: bool,
    /// What becomes of it.
    then: Option<Box<dyn FnOnce(Seen) + Send + Sync>>,
}

/// What was seen of an answer.
#[derive(Debug)]
pub(crate) struct Seen {
    /// What the provider reported.
    pub(crate) usage: Option<Usage>,
    calls: Calls,
    /// True if the answer ended by itself.
    pub(crate) whole: bool,
}

#[derive(Debug)]
enum Calls {
    Known(bool),
    /// To be read from an answer in one piece: nobody has to wait for that.
    In(Dialect, Vec<u8>),
}

impl Seen {
    /// What was seen of an answer that ended by itself.
    pub(crate) fn whole(usage: Option<Usage>, called: bool) -> Self {
        Self {
            usage,
            calls: Calls::Known(called),
            whole: true,
        }
    }

    /// True if the model called a tool.
    pub(crate) fn called(&self) -> bool {
        match &self.calls {
            Calls::Known(called) => *called,
            Calls::In(dialect, body) => assemble::calls_a_tool(*dialect, body),
        }
    }
}

enum Form {
    /// Not known yet, or not readable.
    None,
    Stream(Box<Watcher>),
    Whole(Vec<u8>),
}

impl UsageWatch {
    /// For an answer of `dialect`.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            form: Form::None,
            called: false,
            then: None,
        }
    }

    /// The same, calling `then` at the end.
    pub(crate) fn then(mut self, then: impl FnOnce(Seen) + Send + Sync + 'static) -> Self {
        self.then = Some(Box::new(then));
        self
    }

    /// Takes the form of the answer from its headers.
    pub(crate) fn of(mut self, headers: &HeaderMap) -> Self {
        let kind = headers.get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        self.form = if headers.contains_key(CONTENT_ENCODING) {
            Form::None
        } else if kind.starts_with("text/event-stream") {
            Form::Stream(Box::new(Watcher::new(self.dialect)))
        } else if kind.starts_with("application/json") {
            Form::Whole(Vec::new())
        } else {
            Form::None
        };
        self
    }

    /// True once a stream said that the answer is complete.
    fn is_ended(&self) -> bool {
        matches!(&self.form, Form::Stream(watcher) if watcher.is_ended())
    }

    fn seen(&mut self) -> (Option<Usage>, Calls) {
        match &mut self.form {
            Form::None => (None, Calls::Known(false)),
            Form::Stream(watcher) => {
                let called = &mut self.called;
                watcher.finish(|event| *called |= matches!(event, Event::Call(_)));
                (some(watcher.usage()), Calls::Known(self.called))
            }
            Form::Whole(body) => {
                let usage = usage_in(self.dialect, body);
                (usage, Calls::In(self.dialect, std::mem::take(body)))
            }
        }
    }
}

impl Watch for UsageWatch {
    fn data(&mut self, bytes: &Bytes) {
        match &mut self.form {
            Form::None => {}
            Form::Stream(watcher) => {
                let called = &mut self.called;
                watcher.push(bytes, |event| *called |= matches!(event, Event::Call(_)));
            }
            Form::Whole(body) if body.len() + bytes.len() <= LONGEST_ANSWER => {
                body.extend_from_slice(bytes);
            }
            Form::Whole(_) => self.form = Form::None,
        }
    }

    fn end(&mut self, whole: bool, record: &mut Record) {
        let (usage, calls) = self.seen();
        // A client need not wait for the connection to end once it has the end of the answer.
        let whole = whole || self.is_ended();
        record.cut = !whole;
        record.usage = usage;
        record.silent_overflow = usage.is_some_and(|usage| was_cut(&usage, record));
        if let Some(then) = self.then.take() {
            then(Seen {
                usage,
                calls,
                whole,
            });
        }
    }
}

fn some(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

/// The usage in a whole answer.
pub(crate) fn usage_in(dialect: Dialect, body: &[u8]) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Outline {
        usage: Option<Value>,
    }
    let usage = serde_json::from_slice::<Outline>(body).ok();
    let usage = usage.and_then(|outline| outline.usage);
    usage.map(|usage| usage_of(dialect, &usage)).and_then(some)
}

/// A usage object of `dialect`.
pub(crate) fn usage_of(dialect: Dialect, usage: &Value) -> Usage {
    match dialect {
        Dialect::Chat => Usage::from_chat(usage),
        Dialect::Messages => Usage::from_messages(usage),
        Dialect::Responses => Usage::from_responses(usage),
    }
}

/// True if the provider read far less than was sent, or filled the window to its brim.
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
        let mut watch = UsageWatch::new(dialect).of(&headers);
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
