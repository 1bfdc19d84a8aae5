//! The model of the demo: answers as the session says, retrieves stored outputs, and writes
//! summaries.

use std::fmt::Write as _;

use serde_json::json;
use trimtab_model::{Message, Part};
use trimtab_wire::script::{ScriptedCall, ScriptedReply};

use super::prompt::DemoPrompt;
use super::session::{DemoRound, DemoSession};

/// The retrieval tool that searches stored outputs.
const GREP: &str = "tool_output_cache_grep";
/// The answer to clients other than the demo's agent.
const GREETING: &str = "This is the scripted model of `trimtab demo`: this is its only answer. \
Run `trimtab serve` for a real one.";

/// The answers of the model, one per call.
pub(super) struct DemoModel(Vec<DemoRound>);

impl DemoModel {
    pub(super) fn of(session: &DemoSession) -> Self {
        Self(session.rounds().cloned().collect())
    }

    /// The answer to `prompt`, which is call number `call` of the session.
    pub(super) fn reply(&self, call: Option<usize>, prompt: &DemoPrompt) -> ScriptedReply {
        if wants_summary(prompt) {
            return ScriptedReply::text(self.summary(call.unwrap_or(self.0.len())));
        }
        let Some(round) = call.and_then(|call| self.0.get(call)) else {
            return ScriptedReply::text(GREETING);
        };
        if let Some(text) = round.looks_up
            && prompt.tools.iter().any(|tool| tool == GREP)
            && !has_looked_up(prompt, text)
        {
            return ScriptedReply::call(GREP, json!({"pattern": text}));
        }
        let calls = round.calls.iter();
        ScriptedReply {
            calls: calls
                .map(|call| ScriptedCall {
                    id: Some(call.id.clone()),
                    ..ScriptedCall::new(call.tool, call.arguments.clone())
                })
                .collect(),
            ..ScriptedReply::text(&round.text)
        }
    }

    /// A good summary: everything the model found and did so far.
    fn summary(&self, until: usize) -> String {
        let mut text =
            String::from("<summary>\nThe agent works on orders that were charged twice.\n");
        for round in self.0.iter().take(until) {
            let calls: Vec<String> = round
                .calls
                .iter()
                .map(|call| format!("{} {}", call.tool, call.arguments))
                .collect();
            // Writing into a String cannot fail.
            let _ = writeln!(text, "- {} {}", round.text, calls.join(", "));
        }
        text.push_str("</summary>");
        text
    }
}

/// True if the request asks for a summary of the conversation.
pub(super) fn wants_summary(prompt: &DemoPrompt) -> bool {
    let last = prompt.messages.last().map(Message::text);
    last.is_some_and(|text| text.contains("<summary>"))
}

/// True if the window already contains a search for `text`.
fn has_looked_up(prompt: &DemoPrompt, text: &str) -> bool {
    let parts = prompt.messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(Part::as_call)
        .any(|call| call.name == GREP && call.arguments.contains(text))
}
