//! Gemini CLI: a session as JSONL, or as one document.
//!
//! A line with the id of an earlier one replaces it: an answer is written when it arrives and again
//! when its calls have run.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use trimtab_model::{Call, Message, Output, Part, Role, work};

use super::private_marks;
use super::reader::TranscriptLog;
use super::thread::{MessageOrigin, ReadConversation, thought, usage_inside};
use super::{Conversation, TranscriptForm};
use crate::json::{self, JsonFields, JsonType, string, type_of};
use crate::raw_part;

/// A session being read.
#[derive(Default)]
pub(super) struct GeminiSession {
    id: Option<String>,
    model: Option<String>,
    entries: Vec<GeminiEntry>,
    places: HashMap<String, usize>,
    /// The units of all entries that a later line replaced.
    replaced: Vec<usize>,
    /// The units of entries before which the user went back, and of the lines that say so.
    taken_back: Vec<usize>,
}

/// One entry: its messages, and the outputs that it contains.
#[derive(Default)]
struct GeminiEntry {
    id: Option<String>,
    messages: Vec<Message>,
    outputs: Vec<Output>,
    /// The units of the entry, which is written again when more is known.
    units: Vec<usize>,
}

impl TranscriptLog for GeminiSession {
    fn line(&mut self, number: usize, line: &str) -> Result<(), serde_json::Error> {
        let fields: JsonFields = serde_json::from_str(line)?;
        self.id = self.id.take().or_else(|| fields.string("sessionId"));
        let set = fields.fields("$set");
        if let Some(all) = set.and_then(|set| set.list("messages")) {
            self.start_over(number, all);
        }
        if let Some(first) = fields.string("$rewindTo") {
            self.go_back_before(&first, number);
        }
        // A session as one document, followed by a line break.
        let all = fields.list("messages").unwrap_or_default();
        for (number, raw) in all.into_iter().enumerate() {
            if let Some(fields) = json::fields(raw) {
                self.entry(number, &fields);
            }
        }
        if fields.type_of("type") == Some(JsonType::Text) {
            self.entry(number, &fields);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<ReadConversation> {
        let mut read = Conversation::new(TranscriptForm::GeminiCli);
        read.id = self.id;
        read.model = self.model;
        let (mut entries, replaced) = (self.entries, self.replaced);
        // If the first entry is removed, everything it replaced must be removed too.
        if let Some(first) = entries.first_mut() {
            first.units.extend(replaced);
        }
        let (messages, origins) = in_order(entries);
        read.messages = messages;
        Vec::from_iter(ReadConversation::unless_empty(
            read,
            origins,
            self.taken_back,
        ))
    }
}

/// Reads a session that is one document.
pub(super) fn document(
    fields: &JsonFields<'_>,
    messages: &[JsonFields<'_>],
) -> Option<Conversation> {
    let mut session = GeminiSession {
        id: fields.string("sessionId"),
        ..GeminiSession::default()
    };
    for (number, entry) in messages.iter().enumerate() {
        session.entry(number, entry);
    }
    let read = Box::new(session).finish().into_iter().next();
    read.map(|read| read.conversation)
}

impl GeminiSession {
    /// Reads a line that contains everything again.
    fn start_over(&mut self, number: usize, all: Vec<&RawValue>) {
        let old = std::mem::take(&mut self.entries);
        self.places.clear();
        work::step(old.len());
        self.replaced
            .extend(old.into_iter().flat_map(|entry| entry.units));
        for fields in all.into_iter().filter_map(json::fields) {
            self.entry(number, &fields);
        }
    }

    /// Takes back the entry `first` and everything after it. If it is unknown, the client takes
    /// back everything.
    fn go_back_before(&mut self, first: &str, unit: usize) {
        let at = self.places.get(first).copied().unwrap_or(0);
        for entry in self.entries.split_off(at) {
            entry.id.and_then(|id| self.places.remove(&id));
            self.taken_back.extend(entry.units);
        }
        self.taken_back.push(unit);
    }

    fn entry(&mut self, unit: usize, fields: &JsonFields<'_>) {
        let mut entry = match fields.text("type").unwrap_or_default().as_ref() {
            "user" => user(fields),
            "gemini" => {
                let model = fields.string("model");
                self.model = model.or(self.model.take());
                answer(fields)
            }
            _ => return,
        };
        private_marks::apply(fields, &mut entry.messages);
        entry.units.push(unit);
        let id = fields.string("id");
        let known = id.as_ref().and_then(|id| self.places.get(id)).copied();
        if let Some(earlier) = known.and_then(|at| self.entries.get_mut(at)) {
            // Avoids copying the longer list.
            std::mem::swap(&mut entry.units, &mut earlier.units);
            entry.units.append(&mut earlier.units);
            entry.id = earlier.id.take();
            *earlier = entry;
            return;
        }
        let at = self.entries.len();
        entry.id.clone_from(&id);
        self.places.extend(id.map(|id| (id, at)));
        self.entries.push(entry);
    }
}

fn user(fields: &JsonFields<'_>) -> GeminiEntry {
    let mut said = Vec::new();
    let mut outputs = Vec::new();
    for part in parts_of(fields) {
        match part {
            Part::Output(_) => outputs.push(part),
            other => said.push(other),
        }
    }
    let messages = [(Role::Tool, outputs), (Role::User, said)];
    let some = messages.into_iter().filter(|(_, parts)| !parts.is_empty());
    GeminiEntry {
        messages: some
            .map(|(role, parts)| Message::new(role, parts))
            .collect(),
        ..GeminiEntry::default()
    }
}

fn parts_of(fields: &JsonFields<'_>) -> Vec<Part> {
    let Some(content) = fields.get("content") else {
        return Vec::new();
    };
    match type_of(content) {
        JsonType::Text => string(content).map(Part::text).into_iter().collect(),
        _ => json::list(content)
            .unwrap_or_default()
            .into_iter()
            .map(part)
            .collect(),
    }
}

fn part(raw: &RawValue) -> Part {
    let fields = json::fields(raw).unwrap_or_default();
    if let Some(text) = fields.string("text") {
        return Part::text(text);
    }
    match fields.fields("functionResponse") {
        Some(response) => Part::Output(output(&response)),
        None => raw_part::opaque(fields.names().next().unwrap_or_default(), raw),
    }
}

fn output(response: &JsonFields<'_>) -> Output {
    let text = |name: &str| response.string(name).unwrap_or_default();
    let given = response.fields("response").unwrap_or_default();
    let said = ["output", "error"]
        .into_iter()
        .find_map(|name| given.string(name));
    let whole = || response.get("response").map(|raw| raw.get().to_owned());
    let mut output = Output::new(text("id"), said.or_else(whole).unwrap_or_default());
    output.tool = Some(text("name"));
    output.is_error = given.has("error");
    output
}

fn answer(fields: &JsonFields<'_>) -> GeminiEntry {
    let thoughts: Vec<String> = fields
        .list("thoughts")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|raw| {
            let fields = json::fields(raw)?;
            let text = |name| fields.string(name).unwrap_or_default();
            Some(format!("{}\n{}", text("subject"), text("description")))
        })
        .collect();
    let mut parts: Vec<Part> = thought(Some(thoughts.join("\n\n"))).into_iter().collect();
    // An answer with calls only has an empty text.
    let said = parts_of(fields).into_iter();
    parts.extend(said.filter(|part| !part.is_blank()));
    let mut outputs = Vec::new();
    for raw in fields.list("toolCalls").unwrap_or_default() {
        let Some(call) = json::fields(raw) else {
            continue;
        };
        let text = |name| call.string(name).unwrap_or_default();
        let arguments = call.get("args").map_or("{}", RawValue::get);
        parts.push(Part::Call(Call::new(text("id"), text("name"), arguments)));
        let given = call.list("result").unwrap_or_default();
        outputs.extend(given.into_iter().map(part).filter_map(|part| match part {
            Part::Output(output) => Some(output),
            _ => None,
        }));
    }
    let mut message = Message::new(Role::Assistant, parts);
    message.meta.usage = fields.fields("tokens").map(|tokens| {
        let count = |name| tokens.number(name).unwrap_or(0);
        usage_inside(
            count("input"),
            count("cached"),
            // Saturating, because the figures are the file's.
            count("output").saturating_add(count("thoughts")),
        )
    });
    GeminiEntry {
        messages: vec![message],
        outputs,
        ..GeminiEntry::default()
    }
}

/// The messages in order. Outputs appear in the answer and again on a separate line; the line wins,
/// because it says when they were sent.
fn in_order(entries: Vec<GeminiEntry>) -> (Vec<Message>, Vec<MessageOrigin>) {
    let on_lines: HashSet<String> = entries
        .iter()
        .flat_map(|entry| &entry.messages)
        .flat_map(Message::outputs)
        .map(|output| output.call_id.clone())
        .collect();
    let mut messages = Vec::new();
    let mut origins = Vec::new();
    // An output that also appears in an answer belongs to it: it names one unit of the answer, and
    // messages that share a unit stay or go together.
    let mut answers: HashMap<String, usize> = HashMap::new();
    for entry in entries {
        work::step(1 + entry.units.len());
        for said in entry.messages {
            let message = messages.len();
            let own = entry.units.iter().copied();
            let in_answers = said
                .outputs()
                .filter_map(|o| answers.get(&o.call_id).copied());
            origins.extend(
                own.chain(in_answers)
                    .map(|unit| MessageOrigin { message, unit }),
            );
            work::step(said.parts.len());
            messages.push(said);
        }
        if let Some(unit) = entry.units.first() {
            let embedded = entry.outputs.iter();
            answers.extend(embedded.map(|output| (output.call_id.clone(), *unit)));
        }
        let only_here = entry.outputs.into_iter();
        let only_here = only_here.filter(|output| !on_lines.contains(&output.call_id));
        let parts: Vec<Part> = only_here.map(Part::Output).collect();
        if !parts.is_empty() {
            messages.push(Message::new(Role::Tool, parts));
            let message = messages.len() - 1;
            let units = entry.units.into_iter();
            origins.extend(units.map(|unit| MessageOrigin { message, unit }));
        }
    }
    (messages, origins)
}
