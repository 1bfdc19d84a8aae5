//! Claude Code: a session as JSONL.
//!
//! An answer is written part by part, each on a line with the same message id. Lines of sub-agents
//! are interleaved and form separate conversations. Lines that were never sent (snapshots,
//! progress, titles, errors of the client) are skipped.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use serde_json::value::RawValue;
use trimtab_model::{Message, MessageKind, Role, Usage};

use super::private_marks;
use super::reader::TranscriptLog;
use super::thread::{ReadConversation, Thread, ThreadPlace, Threads};
use crate::json::{self, JsonFields};
use crate::messages;

/// The text that the client writes in the user's name after an interrupt.
const INTERRUPTED: &str = "[Request interrupted by user";
/// The types of lines that later lines of the conversation name as their parent.
const SENT: [&str; 3] = ["user", "assistant", "system"];
/// The model name on answers that the client invented.
const SYNTHETIC: &str = "<synthetic>";

/// A session being read.
#[derive(Default)]
pub(super) struct ClaudeCodeSession {
    id: Option<String>,
    threads: Threads,
    /// The sub-agent of a line, by the id of the line.
    agent_of: HashMap<String, String>,
    /// The number of unnamed sub-agents.
    nameless: usize,
    /// The ids of lines seen, because a resumed session repeats them.
    seen: HashSet<String>,
    /// The places after the lines of the main conversation, to which the user may go back.
    places: HashMap<String, ThreadPlace>,
    /// The ids of these lines, in order.
    order: Vec<String>,
    /// The ids of lines that were taken back.
    gone: HashSet<String>,
}

impl TranscriptLog for ClaudeCodeSession {
    fn line(&mut self, number: usize, line: &str) -> Result<(), serde_json::Error> {
        self.threads.unit = number;
        let fields: JsonFields = serde_json::from_str(line)?;
        let uuid = fields.string("uuid");
        let repeated = |uuid: &String| !self.seen.insert(uuid.clone());
        if uuid.as_ref().is_some_and(repeated) {
            return Ok(());
        }
        let type_name = fields.text("type").unwrap_or_default();
        let own = uuid.clone().filter(|_| !fields.is_true("isSidechain"));
        match type_name.as_ref() {
            "user" => self.user(&fields, uuid),
            "assistant" => self.assistant(&fields, uuid),
            "system"
                if fields
                    .text("subtype")
                    .is_some_and(|s| s == "compact_boundary") =>
            {
                self.thread(&fields, uuid).compacted();
            }
            _ => self.passed_over(&fields, uuid),
        }
        if let Some(own) = own.filter(|_| SENT.contains(&type_name.as_ref())) {
            let main = self.threads.of(None);
            if !self.gone.contains(&own) {
                self.places.insert(own.clone(), main.place());
                self.order.push(own);
            }
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<ReadConversation> {
        self.threads.finish(self.id.as_deref())
    }
}

impl ClaudeCodeSession {
    fn user(&mut self, line: &JsonFields<'_>, uuid: Option<String>) {
        let Some(content) = line.fields("message").and_then(|m| m.get("content")) else {
            return;
        };
        let kind = kind_of(line);
        let parent = parent(line);
        let said = messages::from_content(Role::User, content);
        // The user went back and wrote another message. Outputs do not go back: those of parallel
        // calls each name their own call.
        let is_prompt =
            |message: &Message| message.is_real_user() && interrupted(message).is_none();
        if kind.is_none() && !said.is_empty() && said.iter().all(is_prompt) {
            self.go_back_to(parent.as_deref());
        } else if self.is_late(parent.as_deref(), uuid.as_ref()) {
            return;
        }
        let thread = self.thread(line, uuid);
        for mut message in said {
            if message.role == Role::User {
                message.meta.kind = kind.or_else(|| interrupted(&message));
                private_marks::apply(line, [&mut message]);
            }
            thread.push(message);
        }
    }

    fn assistant(&mut self, line: &JsonFields<'_>, uuid: Option<String>) {
        let Some(fields) = line.fields("message") else {
            return;
        };
        let model = fields.string("model");
        // The client shows these as answers, but no model wrote them and they are not sent.
        if line.is_true("isApiErrorMessage") || model.as_deref() == Some(SYNTHETIC) {
            return self.passed_over(line, uuid);
        }
        if self.is_late(parent(line).as_deref(), uuid.as_ref()) {
            return;
        }
        let thread = self.thread(line, uuid);
        let Some(content) = fields.get("content") else {
            return;
        };
        let id = fields.string("id");
        for mut message in messages::from_content(Role::Assistant, content) {
            message.meta.usage = fields.get("usage").and_then(usage);
            message.meta.stop_reason = fields.string("stop_reason");
            thread.push_piece(id.clone(), message);
        }
        thread.conversation.model = model.or_else(|| thread.conversation.model.take());
    }

    /// Takes back everything after the line `parent`, if it is known.
    fn go_back_to(&mut self, parent: Option<&str>) {
        let place = parent.and_then(|parent| self.places.get(parent)).copied();
        let Some(place) = place else { return };
        let main = self.threads.of(None);
        if !main.go_back_to(place) {
            return;
        }
        let is_before = |id: &String| self.places.get(id).is_some_and(|it| it.unit <= place.unit);
        let kept = self.order.partition_point(is_before);
        for id in self.order.split_off(kept) {
            self.places.remove(&id);
            self.gone.insert(id);
        }
    }

    /// True for a line that follows one that was taken back, such as the output of a command that
    /// still ran. It is taken back too.
    fn is_late(&mut self, parent: Option<&str>, uuid: Option<&String>) -> bool {
        let is_late = parent.is_some_and(|parent| self.gone.contains(parent));
        if is_late {
            self.gone.extend(uuid.cloned());
            let main = self.threads.of(None);
            main.take_back_unit();
        }
        is_late
    }

    /// Records the thread of a line without a message, because later lines name it.
    fn passed_over(&mut self, line: &JsonFields<'_>, uuid: Option<String>) {
        if line.is_true("isSidechain") {
            self.thread(line, uuid);
        }
    }

    /// The thread of a line.
    fn thread(&mut self, line: &JsonFields<'_>, uuid: Option<String>) -> &mut Thread {
        if self.id.is_none() {
            self.id = line.string("sessionId");
        }
        let agent = line.is_true("isSidechain").then(|| self.agent(line));
        if let (Some(uuid), Some(agent)) = (uuid, &agent) {
            self.agent_of.insert(uuid, agent.clone());
        }
        self.threads.of(agent)
    }

    /// The sub-agent of a line: its own, or that of the previous line.
    fn agent(&mut self, line: &JsonFields<'_>) -> String {
        let parent = || line.string("parentUuid");
        // Older versions name no agent, but their lines form a chain.
        let known = || self.agent_of.get(&parent()?).cloned();
        let named = line.string("agentId").or_else(known);
        named.unwrap_or_else(|| {
            self.nameless += 1;
            format!("side-{}", self.nameless)
        })
    }
}

/// The line before this one; none for lines of sub-agents.
fn parent(line: &JsonFields<'_>) -> Option<String> {
    let parent = line.string("parentUuid");
    parent.filter(|_| !line.is_true("isSidechain"))
}

fn kind_of(line: &JsonFields<'_>) -> Option<MessageKind> {
    if line.is_true("isCompactSummary") {
        Some(MessageKind::Summary)
    } else if line.is_true("isMeta") {
        // Sent in the user's name, but written by the client.
        Some(MessageKind::Note)
    } else {
        None
    }
}

fn interrupted(message: &Message) -> Option<MessageKind> {
    message
        .text()
        .starts_with(INTERRUPTED)
        .then_some(MessageKind::TurnAborted)
}

fn usage(raw: &RawValue) -> Option<Usage> {
    json::parse::<Value>(raw).map(|usage| Usage::from_messages(&usage))
}
