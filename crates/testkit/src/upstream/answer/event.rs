//! Events of a stream.

use serde_json::Value;

/// An answer before it becomes bytes.
pub(in crate::upstream) enum RenderedEvents {
    /// One JSON document.
    Whole(Value),
    /// The events of a stream.
    Events(Vec<AnswerEvent>),
}

/// One event of a stream.
#[derive(Clone, Debug)]
pub(in crate::upstream) struct AnswerEvent {
    /// Its name, where the dialect names events.
    pub(in crate::upstream) name: Option<&'static str>,
    /// Its data; none for `[DONE]`.
    pub(in crate::upstream) data: Option<Value>,
}

impl AnswerEvent {
    pub(in crate::upstream) fn new(name: Option<&'static str>, data: Value) -> Self {
        let data = Some(data);
        Self { name, data }
    }

    /// The end of a stream of Chat Completions.
    pub(in crate::upstream) fn done() -> Self {
        Self {
            name: None,
            data: None,
        }
    }

    /// The event as it is sent, with lines that end in `line_end`.
    pub(in crate::upstream) fn to_text(&self, line_end: &str) -> String {
        let data = self.data.as_ref().map(ToString::to_string);
        let data = data.unwrap_or_else(|| "[DONE]".to_owned());
        let name = self.name.map(|name| format!("event: {name}{line_end}"));
        let name = name.unwrap_or_default();
        format!("{name}data: {data}{line_end}{line_end}")
    }
}
