//! Copilot CLI: a session as JSONL, or its printed output.

use serde_json::value::RawValue;
use trimtab_model::{Call, Message, MessageKind, Output, Part, Reasoning, Role};

use super::TranscriptForm;
use super::private_marks;
use super::reader::TranscriptLog;
use super::thread::{ReadConversation, Thread, Threads};
use crate::json::{self, JsonFields};

/// A session being read.
#[derive(Default)]
pub(super) struct CopilotSession {
    id: Option<String>,
    threads: Threads,
}

impl TranscriptLog for CopilotSession {
    fn line(&mut self, number: usize, line: &str) -> Result<(), serde_json::Error> {
        self.threads.unit = number;
        let line: JsonFields = serde_json::from_str(line)?;
        let session = line.string("sessionId");
        // The first id counts; later lines repeat it.
        self.id = self.id.take().or(session);
        let (Some(type_name), Some(data)) = (line.text("type"), line.fields("data")) else {
            return Ok(());
        };
        // Ephemeral content is repeated in full later.
        if !line.is_true("ephemeral") {
            self.event(&type_name, &line, &data);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<ReadConversation> {
        self.threads.finish(self.id.as_deref())
    }
}

impl CopilotSession {
    fn event(&mut self, type_name: &str, line: &JsonFields<'_>, data: &JsonFields<'_>) {
        match type_name {
            "session.start" => {
                let id = data.string("sessionId");
                self.id = self.id.take().or(id);
                let model = data.string("selectedModel");
                self.thread(data).conversation.model = model;
            }
            "system.message" => self.plain(Role::System, line, data),
            "user.message" => self.plain(Role::User, line, data),
            "assistant.message" => self.answer(data),
            "tool.execution_complete" => self.thread(data).push(output(data)),
            "session.compaction_complete" => self.compacted(data),
            _ => {}
        }
    }

    fn plain(&mut self, role: Role, line: &JsonFields<'_>, data: &JsonFields<'_>) {
        // The text that was sent comes first; the other one is what the user typed.
        let sent = ["transformedContent", "content"]
            .into_iter()
            .find_map(|name| data.string(name));
        if let Some(text) = sent {
            let mut message = Message::new(role, vec![Part::text(text)]);
            private_marks::apply(line, [&mut message]);
            self.thread(data).push(message);
        }
    }

    fn answer(&mut self, data: &JsonFields<'_>) {
        let mut parts = Vec::new();
        let text = data.string("reasoningText");
        let seal = data.string("reasoningOpaque");
        if text.is_some() || seal.is_some() {
            parts.push(Part::Reasoning(Reasoning {
                text: text.unwrap_or_default(),
                seal,
                extra: Vec::new(),
            }));
        }
        let text = data.string("content");
        parts.extend(text.filter(|text| !text.is_empty()).map(Part::text));
        let calls = data.list("toolRequests").unwrap_or_default();
        parts.extend(calls.into_iter().filter_map(call));
        let model = data.string("model");
        let thread = self.thread(data);
        thread.conversation.model = model.or(thread.conversation.model.take());
        thread.push(Message::new(Role::Assistant, parts));
    }

    fn compacted(&mut self, data: &JsonFields<'_>) {
        let summary = data.string("summaryContent");
        let thread = self.thread(data);
        if let Some(summary) = summary {
            thread.compacted();
            thread.push(Message::user(summary).with_kind(MessageKind::Summary));
        }
    }

    /// The thread of an event: a sub-agent is named after the call that started it.
    fn thread(&mut self, data: &JsonFields<'_>) -> &mut Thread {
        let agent = data.string("parentToolCallId");
        self.threads.of(TranscriptForm::CopilotCli, agent)
    }
}

fn call(raw: &RawValue) -> Option<Part> {
    let fields = json::fields(raw)?;
    let arguments = fields.get("arguments");
    Some(Part::Call(Call::new(
        fields.string("toolCallId")?,
        fields.string("name").unwrap_or_default(),
        arguments.map(json::plain).unwrap_or_default(),
    )))
}

fn output(data: &JsonFields<'_>) -> Message {
    let id = data.string("toolCallId").unwrap_or_default();
    let shown = data.fields("result").and_then(|r| r.string("content"));
    let failed = || data.fields("error").and_then(|e| e.string("message"));
    let text = shown.or_else(failed).unwrap_or_default();
    let mut output = Output::new(id, text);
    output.is_error = data.get("success").is_some_and(|raw| raw.get() == "false");
    Message::new(Role::Tool, vec![Part::Output(output)])
}
