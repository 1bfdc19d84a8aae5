//! Copilot CLI: a session as JSONL, or its printed output.

use serde_json::value::RawValue;
use trimtab_model::{Call, Message, MessageKind, Output, Part, Reasoning, Role};

use super::TranscriptForm;
use super::private_marks;
use super::reader::TranscriptLog;
use super::thread::{ReadConversation, Thread, Threads};
use crate::json::{self, JsonFields, string};

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
        let session = line.get("sessionId").and_then(string);
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

    fn allows_text(&self) -> bool {
        true
    }
}

impl CopilotSession {
    fn event(&mut self, type_name: &str, line: &JsonFields<'_>, data: &JsonFields<'_>) {
        match type_name {
            "session.start" => {
                let id = data.get("sessionId").and_then(string);
                self.id = self.id.take().or(id);
                let model = data.get("selectedModel").and_then(string);
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
            .find_map(|name| data.get(name).and_then(string));
        if let Some(text) = sent {
            let mut message = Message::new(role, vec![Part::text(text)]);
            private_marks::apply(line, [&mut message]);
            self.thread(data).push(message);
        }
    }

    fn answer(&mut self, data: &JsonFields<'_>) {
        let mut parts = Vec::new();
        let text = data.get("reasoningText").and_then(string);
        let seal = data.get("reasoningOpaque").and_then(string);
        if text.is_some() || seal.is_some() {
            parts.push(Part::Reasoning(Reasoning {
                text: text.unwrap_or_default(),
                seal,
                extra: Vec::new(),
            }));
        }
        let text = data.get("content").and_then(string);
        parts.extend(text.filter(|text| !text.is_empty()).map(Part::text));
        let calls = data.list("toolRequests").unwrap_or_default();
        parts.extend(calls.into_iter().filter_map(call));
        let model = data.get("model").and_then(string);
        let thread = self.thread(data);
        thread.conversation.model = model.or(thread.conversation.model.take());
        thread.push(Message::new(Role::Assistant, parts));
    }

    fn compacted(&mut self, data: &JsonFields<'_>) {
        let summary = data.get("summaryContent").and_then(string);
        let thread = self.thread(data);
        if let Some(summary) = summary {
            thread.compacted();
            thread.push(Message::user(summary).with_kind(MessageKind::Summary));
        }
    }

    /// The thread of an event: a sub-agent is named after the call that started it.
    fn thread(&mut self, data: &JsonFields<'_>) -> &mut Thread {
        let agent = data.get("parentToolCallId").and_then(string);
        self.threads.of(TranscriptForm::CopilotCli, agent)
    }
}

fn call(raw: &RawValue) -> Option<Part> {
    let fields = json::fields(raw)?;
    let arguments = fields.get("arguments");
    let arguments = arguments.map(|raw| string(raw).unwrap_or_else(|| raw.get().to_owned()));
    Some(Part::Call(Call::new(
        fields.get("toolCallId").and_then(string)?,
        fields.get("name").and_then(string).unwrap_or_default(),
        arguments.unwrap_or_default(),
    )))
}

fn output(data: &JsonFields<'_>) -> Message {
    let id = data.get("toolCallId").and_then(string).unwrap_or_default();
    let shown = data
        .fields("result")
        .and_then(|r| r.get("content").and_then(string));
    let failed = || {
        data.fields("error")
            .and_then(|e| e.get("message").and_then(string))
    };
    let text = shown.or_else(failed).unwrap_or_default();
    let mut output = Output::new(id, text);
    output.is_error = data.get("success").is_some_and(|raw| raw.get() == "false");
    Message::new(Role::Tool, vec![Part::Output(output)])
}
