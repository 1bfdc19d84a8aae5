//! The model and the summariser behind a provider: what they answer, and what they were asked.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use trimtab_model::{Message, Usage};
use trimtab_testkit::script::{ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{
    ReceivedRequest, ReplySource, RequestOutcome, Upstream, UpstreamOptions,
};

/// What a summariser says where a test does not care.
pub(crate) const SUMMARY: &str = "<retain>KEPT-FACT</retain><summary>SHORT-SUMMARY</summary>";

/// An answer that is refused with a status which nobody tries again.
pub(crate) fn failing() -> ScriptedReply {
    ScriptedReply::text("x").with_fault(ScriptedFault::Status {
        code: 400,
        retry_after: None,
    })
}

/// An answer that refuses the prompt as too long, whatever its length.
pub(crate) fn refused_as_too_long() -> ScriptedReply {
    ScriptedReply::text("x").with_fault(ScriptedFault::Overflow { window: 8_192 })
}

/// An answer that reports so much input and output.
pub(crate) fn reporting(text: impl Into<String>, input: u64, output: u64) -> ScriptedReply {
    let usage = Usage {
        input,
        output,
        ..Usage::default()
    };
    ScriptedReply {
        usage: Some(usage),
        ..ScriptedReply::text(text)
    }
}

/// The name of a model that no catalogue has.
pub(crate) const UNKNOWN_MODEL: &str = "house-model";

/// What is answered. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Answers {
    /// The next answers of the model; `go on` when there are none.
    replies: Arc<Mutex<VecDeque<ScriptedReply>>>,
    /// What every answer of the model reports, where it says nothing itself.
    usage: Arc<Mutex<Option<Usage>>>,
    /// What the summariser says from now on.
    summary: Arc<Mutex<Option<ScriptedReply>>>,
}

impl Answers {
    /// The model answers this next, after what it has to answer already.
    pub(crate) fn say(&self, reply: ScriptedReply) {
        self.replies.lock().unwrap().push_back(reply);
    }

    /// Every answer reports this from now on.
    pub(crate) fn report(&self, usage: Usage) {
        *self.usage.lock().unwrap() = Some(usage);
    }

    /// The same with nothing but uncached input.
    pub(crate) fn report_input(&self, input: u64) {
        self.report(Usage {
            input,
            ..Usage::default()
        });
    }

    /// The summariser answers this from now on.
    pub(crate) fn summarise(&self, reply: ScriptedReply) {
        *self.summary.lock().unwrap() = Some(reply);
    }

    fn reply(&self, received: &ReceivedRequest) -> ScriptedReply {
        if is_own_call(received) {
            let said = self.summary.lock().unwrap().clone();
            return said.unwrap_or_else(|| ScriptedReply::text(SUMMARY));
        }
        let next = self.replies.lock().unwrap().pop_front();
        let mut reply = next.unwrap_or_else(|| ScriptedReply::text("go on"));
        if reply.usage.is_none() {
            reply.usage = *self.usage.lock().unwrap();
        }
        reply
    }

    /// A provider that answers so.
    pub(crate) async fn upstream(&self, window: Option<u64>) -> Upstream {
        let answers = self.clone();
        let options = UpstreamOptions {
            window,
            ..UpstreamOptions::new(ReplySource::with(move |received| answers.reply(received)))
        };
        Upstream::start(options).await.unwrap()
    }
}

/// True for what Trimtab asks on its own: summaries of conversations and of outputs.
pub(crate) fn is_own_call(received: &ReceivedRequest) -> bool {
    let marks = [
        "Do not call tools and do not go on with the work",
        "Summarise this tool output",
        "Merge them into one",
    ];
    marks.iter().any(|mark| received.last.contains(mark))
}

/// The requests that reached a provider, of one kind.
fn of_kind(upstream: &Upstream, own: bool) -> Vec<Arc<ReceivedRequest>> {
    let requests = upstream.requests();
    let model = |one: &Arc<ReceivedRequest>| {
        matches!(
            one.outcome,
            RequestOutcome::Answered | RequestOutcome::Overflow
        ) && is_own_call(one) == own
    };
    requests.into_iter().filter(model).collect()
}

/// What the model was asked, in order, overflows included.
pub(crate) fn main_calls(upstream: &Upstream) -> Vec<Arc<ReceivedRequest>> {
    of_kind(upstream, false)
}

/// What the summariser was asked.
pub(crate) fn own_calls(upstream: &Upstream) -> Vec<Arc<ReceivedRequest>> {
    of_kind(upstream, true)
}

/// The messages of a request as `role: text`, outputs included.
pub(crate) fn lines(received: &ReceivedRequest) -> Vec<String> {
    let messages = received.read_messages();
    messages.iter().map(line).collect()
}

fn line(message: &Message) -> String {
    let mut text = message.text().into_owned();
    for call in message.calls() {
        let _ = write!(text, " call {}", call.name);
    }
    let role = format!("{:?}", message.role).to_lowercase();
    format!("{role}: {text}")
}

/// Everything that a request says.
pub(crate) fn all_text(received: &ReceivedRequest) -> String {
    lines(received).join("\n")
}

/// The outputs that a request shows, oldest first.
pub(crate) fn outputs(received: &ReceivedRequest) -> Vec<String> {
    let messages = received.read_messages();
    let outputs = messages.iter().flat_map(Message::outputs);
    outputs.map(|output| output.text().into_owned()).collect()
}

/// A text without the line of ours that says how the whole is had back.
pub(crate) fn without_way_back(text: &str) -> String {
    let lines = text.split('\n');
    let others = lines.filter(|line| !line.starts_with("[trimtab: "));
    others.collect::<Vec<_>>().join("\n")
}

/// The ref that a text names, in a marker of a design or in a call that gets it back.
pub(crate) fn ref_in(text: &str) -> Option<String> {
    let marks = ["ref=", "\"ref_id\":\""];
    let rest = marks.iter().find_map(|mark| text.split_once(mark));
    let (_, rest) = rest?;
    let end = rest.find(|found: char| !found.is_alphanumeric() && !"-_".contains(found));
    Some(rest[..end.unwrap_or(rest.len())].to_owned())
}

/// The text of the system part of a request.
pub(crate) fn system_text(received: &ReceivedRequest) -> String {
    let body = received.json();
    let of = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let plain = body.get("instructions").or(body.get("system")).map(of);
    plain.unwrap_or_else(|| {
        let system = received.read_messages().into_iter();
        let system = system.filter(|message| message.role == trimtab_model::Role::System);
        let texts: Vec<String> = system.map(|message| message.text().into_owned()).collect();
        texts.join("\n")
    })
}
