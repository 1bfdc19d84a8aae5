//! Gemini CLI: a session as JSONL, or as one document.
//!
//! A line with the id of an earlier one replaces it: an answer is written down when it comes
//! and again when its calls have run.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use trimtab_model::{Call, Message, Opaque, Output, Part, Role};

use super::reader::Log;
use super::thread::{thought, usage_inside};
use super::{Conversation, Form};
use crate::json::{self, Fields, Type, owned, string, type_of};

/// A session, being read.
#[derive(Default)]
pub(super) struct Session {
    id: Option<String>,
    model: Option<String>,
    entries: Vec<Entry>,
    places: HashMap<String, usize>,
}

/// One line: its messages, and the outputs that it holds besides.
#[derive(Default)]
struct Entry {
    messages: Vec<Message>,
    outputs: Vec<Output>,
}

impl Log for Session {
    fn line(&mut self, line: &str) -> Result<(), serde_json::Error> {
        let fields: Fields = serde_json::from_str(line)?;
        self.id = self
            .id
            .take()
            .or_else(|| fields.get("sessionId").and_then(string));
        let set = fields.fields("$set");
        if let Some(all) = set.and_then(|set| set.list("messages")) {
            self.entries.clear();
            self.places.clear();
            for fields in all.into_iter().filter_map(json::fields) {
                self.entry(&fields);
            }
        }
        // A session as one document, read with a line break behind it.
        let all = fields.list("messages").unwrap_or_default();
        for fields in all.into_iter().filter_map(json::fields) {
            self.entry(&fields);
        }
        if fields.type_of("type") == Some(Type::Text) {
            self.entry(&fields);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Vec<Conversation> {
        let mut read = Conversation::new(Form::GeminiCli);
        read.id = self.id;
        read.model = self.model;
        read.messages = in_order(self.entries);
        let some = !read.messages.is_empty();
        some.then_some(read).into_iter().collect()
    }
}

/// Reads a session that is one document.
pub(super) fn document(fields: &Fields<'_>, messages: &[Fields<'_>]) -> Option<Conversation> {
    let mut session = Session {
        id: fields.get("sessionId").and_then(string),
        ..Session::default()
    };
    for entry in messages {
        session.entry(entry);
    }
    Box::new(session).finish().into_iter().next()
}

impl Session {
    fn entry(&mut self, fields: &Fields<'_>) {
        let entry = match fields.text("type").unwrap_or_default().as_ref() {
            "user" => user(fields),
            "gemini" => {
                let model = fields.get("model").and_then(string);
                self.model = model.or(self.model.take());
                answer(fields)
            }
            _ => return,
        };
        let id = fields.get("id").and_then(string);
        let known = id.as_ref().and_then(|id| self.places.get(id)).copied();
        if let Some(earlier) = known.and_then(|at| self.entries.get_mut(at)) {
            *earlier = entry;
            return;
        }
        let at = self.entries.len();
        self.places.extend(id.map(|id| (id, at)));
        self.entries.push(entry);
    }
}

fn user(fields: &Fields<'_>) -> Entry {
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
    Entry {
        messages: some
            .map(|(role, parts)| Message::new(role, parts))
            .collect(),
        outputs: Vec::new(),
    }
}

fn parts_of(fields: &Fields<'_>) -> Vec<Part> {
    let Some(content) = fields.get("content") else {
        return Vec::new();
    };
    match type_of(content) {
        Type::Text => string(content).map(Part::text).into_iter().collect(),
        _ => json::list(content)
            .unwrap_or_default()
            .into_iter()
            .map(part)
            .collect(),
    }
}

fn part(raw: &RawValue) -> Part {
    let fields = json::fields(raw).unwrap_or_default();
    if let Some(text) = fields.get("text").and_then(string) {
        return Part::text(text);
    }
    match fields.fields("functionResponse") {
        Some(response) => Part::Output(output(&response)),
        None => Part::Opaque(Opaque {
            type_name: fields.names().next().unwrap_or_default().to_owned(),
            raw: owned(raw),
        }),
    }
}

fn output(response: &Fields<'_>) -> Output {
    let text = |name: &str| response.get(name).and_then(string).unwrap_or_default();
    let given = response.fields("response").unwrap_or_default();
    let said = ["output", "error"]
        .into_iter()
        .find_map(|name| given.get(name).and_then(string));
    let whole = || response.get("response").map(|raw| raw.get().to_owned());
    let mut output = Output::new(text("id"), said.or_else(whole).unwrap_or_default());
    output.tool = Some(text("name"));
    output.is_error = given.has("error");
    output
}

fn answer(fields: &Fields<'_>) -> Entry {
    let thoughts: Vec<String> = fields
        .list("thoughts")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|raw| {
            let fields = json::fields(raw)?;
            let text = |name| fields.get(name).and_then(string).unwrap_or_default();
            Some(format!("{}\n{}", text("subject"), text("description")))
        })
        .collect();
    let mut parts: Vec<Part> = thought(Some(thoughts.join("\n\n"))).into_iter().collect();
    let said = parts_of(fields).into_iter();
    parts.extend(said.filter(|part| !part.is_blank()));
    let mut outputs = Vec::new();
    for raw in fields.list("toolCalls").unwrap_or_default() {
        let Some(call) = json::fields(raw) else {
            continue;
        };
        let text = |name| call.get(name).and_then(string).unwrap_or_default();
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
            count("output") + count("thoughts"),
        )
    });
    Entry {
        messages: vec![message],
        outputs,
    }
}

/// The messages in order. Outputs stand in the answer and again in a line of their own; the
/// line wins, because it says when they were sent.
fn in_order(entries: Vec<Entry>) -> Vec<Message> {
    let on_lines: HashSet<String> = entries
        .iter()
        .flat_map(|entry| &entry.messages)
        .flat_map(Message::outputs)
        .map(|output| output.call_id.clone())
        .collect();
    let mut messages = Vec::new();
    for entry in entries {
        messages.extend(entry.messages);
        let only_here = entry.outputs.into_iter();
        let only_here = only_here.filter(|output| !on_lines.contains(&output.call_id));
        let parts: Vec<Part> = only_here.map(Part::Output).collect();
        if !parts.is_empty() {
            messages.push(Message::new(Role::Tool, parts));
        }
    }
    messages
}
