//! What an upstream remembers of a request.

use bytes::Bytes;
use trimtab_model::{Dialect, Message, Usage};
use trimtab_wire::scan::BodyScan;

use crate::script::ScriptedFault;

/// A request, as it was judged.
#[derive(Clone, Debug, Default)]
pub struct ReceivedRequest {
    /// Its number, from 0, in the order the requests came.
    pub serial: usize,
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The dialect, if the path belongs to one.
    pub dialect: Option<Dialect>,
    /// The body, decoded; empty where bodies are not kept.
    pub body: Bytes,
    /// Bytes of the body, decoded.
    pub body_bytes: usize,
    /// Bytes of the body as it came.
    pub sent_bytes: usize,
    /// The model that is asked.
    pub model: String,
    /// True if the answer is wanted as a stream.
    pub stream: bool,
    /// The limit of the answer's length.
    pub answer_limit: Option<u64>,
    /// How many messages, in the sense of the model.
    pub messages: usize,
    /// The text of the first user message; empty if there is none.
    pub first_user: String,
    /// The text of the last message; empty if there is none.
    pub last: String,
    /// The names of the tools that are offered.
    pub tools: Vec<String>,
    /// The tokens of the prompt.
    pub tokens: u64,
    /// The tokens at its front that an earlier request of the same model had too.
    pub stable: u64,
    /// The usage that was reported.
    pub usage: Option<Usage>,
    /// The rules that it breaks; the first was answered.
    pub violations: Vec<Violation>,
    /// What went wrong on purpose.
    pub fault: Option<ScriptedFault>,
    /// What came of it.
    pub outcome: RequestOutcome,
}

/// A rule of the provider that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule, in our words.
    pub rule: String,
    /// What the provider says.
    pub message: String,
}

/// What came of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestOutcome {
    /// It was answered, unless `fault` says otherwise.
    #[default]
    Answered,
    /// Its tokens were counted.
    Counted,
    /// The models were listed.
    Listed,
    /// It was too long for the window.
    Overflow,
    /// It was refused with this status.
    Refused(u16),
}

impl ReceivedRequest {
    /// The value of header `name`, which is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(have, _)| have == name)
            .map(|(_, value)| value.as_str())
    }

    /// True if it asks for a beta feature of Messages.
    pub(super) fn has_beta(&self, beta: &str) -> bool {
        let lists = self.headers.iter();
        let mut lists = lists.filter(|(name, _)| name == "anthropic-beta");
        lists.any(|(_, list)| list.split(',').any(|one| one.trim() == beta))
    }

    /// The body as JSON; null where it is none or was not kept.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The messages of the body; none where it cannot be read or was not kept.
    pub fn read_messages(&self) -> Vec<Message> {
        let scan = |dialect| BodyScan::new(&self.body, dialect).ok();
        let Some(scan) = self.dialect.and_then(scan) else {
            return Vec::new();
        };
        (0..scan.len()).filter_map(|at| scan.message(at)).collect()
    }
}
