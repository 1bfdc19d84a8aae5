//! Codex: a rollout as JSONL.
//!
//! The conversation is in `response_item` lines, as Responses input. After a compaction the client
//! continues with the content of the `compacted` line.

use serde_json::value::RawValue;
use trimtab_model::{Message, MessageKind, Role, Usage, work};

use super::private_marks;
use super::reader::TranscriptLog;
use super::thread::{MessageOrigin, ReadConversation, note_origins};
use super::{Conversation, TranscriptForm};
use crate::json::{self, JsonFields};
use crate::responses::{self, MessageGatherer};

/// The first words of messages that the client wrote in the user's name.
const NOTES: [&str; 6] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
];
/// The same, for a message about an interrupt.
const ABORTED: &str = "<turn_aborted>";
/// The client's own field on every entry, which is never sent.
const BOOKKEEPING: &str = "internal_chat_message_metadata_passthrough";

/// A rollout being read.
#[derive(Default)]
pub(super) struct CodexRollout {
    id: Option<String>,
    model: Option<String>,
    window: Option<u64>,
    gatherer: MessageGatherer,
    compactions: Vec<usize>,
    origins: Vec<MessageOrigin>,
    /// The units of turns that the user took back, and of the lines that say so.
    taken_back: Vec<usize>,
    unit: usize,
    /// The position of the newest answer, to which token counts belong.
    answer: Option<usize>,
}

impl TranscriptLog for CodexRollout {
    fn line(&mut self, number: usize, line: &str) -> Result<(), serde_json::Error> {
        self.unit = number;
        let line: JsonFields = serde_json::from_str(line)?;
        let (Some(payload), Some(type_name)) = (line.get("payload"), line.text("type")) else {
            return Ok(());
        };
        match type_name.as_ref() {
            "response_item" => self.item(&line, payload),
            "session_meta" => self.session(payload),
            "turn_context" => {
                let fields = json::fields(payload).unwrap_or_default();
                self.model = fields.string("model").or(self.model.take());
            }
            "event_msg" => self.event(&json::fields(payload).unwrap_or_default()),
            "compacted" => self.compacted(&json::fields(payload).unwrap_or_default()),
            _ => {}
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<ReadConversation> {
        let mut read = Conversation::new(TranscriptForm::Codex);
        read.id = self.id;
        read.model = self.model;
        read.window = self.window;
        read.messages = self.gatherer.messages;
        read.compactions = self.compactions;
        Vec::from_iter(ReadConversation::unless_empty(
            read,
            self.origins,
            self.taken_back,
        ))
    }
}

impl CodexRollout {
    fn session(&mut self, payload: &RawValue) {
        // A fork repeats the session it came from.
        if self.id.is_some() {
            return;
        }
        let fields = json::fields(payload).unwrap_or_default();
        self.id = fields.string("id");
        let given = fields.fields("base_instructions");
        let text = given.and_then(|given| given.string("text"));
        let text = text.or_else(|| fields.string("instructions"));
        if let Some(text) = text {
            let message = self.gatherer.messages.len();
            self.gatherer.messages.push(responses::instructions(text));
            let unit = self.unit;
            self.origins.push(MessageOrigin { message, unit });
        }
    }

    fn item(&mut self, line: &JsonFields<'_>, entry: &RawValue) {
        let before = self.gatherer.messages.len();
        self.push(entry);
        private_marks::apply(line, self.gatherer.messages.iter_mut().skip(before));
    }

    fn push(&mut self, entry: &RawValue) {
        let before = self.gatherer.messages.len();
        self.gatherer.push(entry);
        for message in self.gatherer.messages.iter_mut().skip(before) {
            if message.role == Role::User && message.meta.kind.is_none() {
                message.meta.kind = kind_of(message);
            }
        }
        // Only the last message can have got a new part.
        if let Some(last) = self.gatherer.messages.last_mut() {
            drop_bookkeeping(last);
        }
        let added = self.gatherer.messages.iter().enumerate().skip(before);
        let mut answers = added.filter(|(_, message)| message.role == Role::Assistant);
        self.answer = answers.next_back().map(|(at, _)| at).or(self.answer);
        self.origins
            .extend(note_origins(&self.gatherer.messages, before, self.unit));
    }

    fn event(&mut self, event: &JsonFields<'_>) {
        let type_name = event.text("type").unwrap_or_default();
        let limit = |fields: &JsonFields<'_>| fields.number("model_context_window");
        match type_name.as_ref() {
            "task_started" => self.window = limit(event).or(self.window),
            // Without this, answers of two turns without a user message between them would become
            // one.
            "task_complete" | "turn_aborted" => self.gatherer.end_answer(),
            "thread_rolled_back" => self.roll_back(event.number("num_turns").unwrap_or(0)),
            "token_count" => {
                let info = event.fields("info").unwrap_or_default();
                self.window = limit(&info).or(self.window);
                self.usage(&info.fields("last_token_usage").unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Takes back the last turns.
    fn roll_back(&mut self, turns: u64) {
        // In a compacted log, the client would apply it to the summary.
        self.taken_back.push(self.unit);
        let messages = &mut self.gatherer.messages;
        let start = self.compactions.last().copied().unwrap_or(0);
        let turns = usize::try_from(turns).unwrap_or(usize::MAX);
        let newest = messages.iter().enumerate().skip(start).rev();
        let prompts = newest.filter(|(_, message)| message.is_real_user());
        let Some((cut, _)) = prompts.take(turns).last() else {
            return;
        };
        messages.truncate(cut);
        self.gatherer.end_answer();
        self.answer = self.answer.filter(|at| *at < cut);
        // A message has its origins in the order of the messages.
        let kept = self.origins.partition_point(|origin| origin.message < cut);
        let gone = self.origins.drain(kept..);
        self.taken_back.extend(gone.map(|origin| origin.unit));
    }

    fn usage(&mut self, usage: &JsonFields<'_>) {
        let (Some(input), Some(output)) =
            (usage.number("input_tokens"), usage.number("output_tokens"))
        else {
            return;
        };
        let cached = usage.number("cached_input_tokens").unwrap_or(0);
        work::step(1);
        let answer = self
            .answer
            .and_then(|at| self.gatherer.messages.get_mut(at));
        if let Some(answer) = answer {
            answer.meta.usage = Some(usage_inside(input, cached, output));
        }
    }

    /// The messages after a compaction: kept messages and the summary.
    fn compacted(&mut self, payload: &JsonFields<'_>) {
        self.gatherer.end_answer();
        let start = self.gatherer.messages.len();
        self.compactions.push(start);
        for entry in payload.list("replacement_history").unwrap_or_default() {
            self.push(entry);
        }
        self.gatherer.end_answer();
        let summary = payload.string("message").unwrap_or_default();
        let mut found = summary.is_empty();
        for message in self.gatherer.messages.iter_mut().skip(start) {
            // The client puts words of its own around the summary.
            let is_summary = !found && message.text().contains(&summary);
            found |= is_summary;
            if is_summary {
                message.meta.kind = Some(MessageKind::Summary);
            } else if message.role == Role::User {
                message.meta.kind = message.meta.kind.or(Some(MessageKind::Retain));
            }
        }
        if !found {
            let message = Message::user(summary).with_kind(MessageKind::Summary);
            let before = self.gatherer.messages.len();
            self.gatherer.messages.push(message);
            self.origins
                .extend(note_origins(&self.gatherer.messages, before, self.unit));
        }
    }
}

/// Usage whose prompt figure includes cached tokens.
fn usage_inside(prompt: u64, cache_read: u64, output: u64) -> Usage {
    Usage {
        input: prompt.saturating_sub(cache_read),
        cache_creation: 0,
        cache_read: cache_read.min(prompt),
        output,
        ..Usage::default()
    }
}

fn kind_of(message: &Message) -> Option<MessageKind> {
    let text = message.text();
    if text.starts_with(ABORTED) {
        return Some(MessageKind::TurnAborted);
    }
    NOTES
        .iter()
        .any(|note| text.starts_with(note))
        .then_some(MessageKind::Note)
}

fn drop_bookkeeping(message: &mut Message) {
    use trimtab_model::Part;
    let keep = |(name, _): &(String, _)| name != BOOKKEEPING;
    message.meta.extra.retain(keep);
    if let Some(part) = message.parts.last_mut() {
        match part {
            Part::Call(call) => call.extra.retain(keep),
            Part::Output(output) => output.extra.retain(keep),
            Part::Reasoning(reasoning) => reasoning.extra.retain(keep),
            Part::Text(_) | Part::Media(_) | Part::Opaque(_) => {}
        }
    }
}
