//! Writes request bodies in the three dialects.
//!
//! The messages come from the session's window and are written by `trimtab-wire`; this module adds
//! the other fields, cache markers, and leaves out what the model has rejected before
//! (`refused_fields`).

use trimtab::request;
use trimtab_model::{Dialect, Message, Part, RawJson, Role};
use trimtab_wire::catalogue::Catalogue;
use trimtab_wire::{chat, messages, responses};

use super::answer::came_in;
use super::refused_fields::RefusedFields;
use super::sent_cache::SentCache;
use super::{Endpoint, ModelRequest, cache_markers};
use crate::tools::ToolDefinition;

/// The default output limit where the dialect requires one. Every recent model supports it.
const ANSWER: u64 = 8192;

/// The longest conversation name that the provider accepts as a cache key.
const LONGEST_KEY: usize = 64;

/// The context of a body, apart from its request.
pub(super) struct BodyWriter<'a> {
    pub(super) dialect: Dialect,
    pub(super) endpoint: &'a Endpoint,
    pub(super) sent: &'a SentCache,
    pub(super) quirks: &'a RefusedFields,
    pub(super) stream: bool,
    /// Additional fields of the caller.
    pub(super) fields: &'a [(String, RawJson)],
}

impl BodyWriter<'_> {
    /// The body of `request`.
    pub(super) fn body(&self, request: &ModelRequest) -> String {
        let mut body = JsonBody::new();
        body.put("model", &request.model);
        match self.dialect {
            Dialect::Chat => self.chat(request, &mut body),
            Dialect::Responses => self.responses(request, &mut body),
            Dialect::Messages => messages(request, &mut body),
        }
        self.tools(request, &mut body);
        if self.stream {
            body.put("stream", &true);
        }
        // The caller's fields come last, so that a field of the same name wins: parsers take the
        // last one.
        for (name, value) in self.fields {
            if self.takes(request, name) {
                body.raw(name, value.as_str());
            }
        }
        body.end()
    }

    fn takes(&self, request: &ModelRequest, field: &str) -> bool {
        self.quirks.takes(&request.model, field)
    }

    fn chat(&self, request: &ModelRequest, body: &mut JsonBody) {
        let write = |message: &Message| chat::write_message(&bare(message, Dialect::Chat));
        let conversation = request.conversation.as_deref();
        let messages = request::with_joined_summary(&request.messages);
        let entries = self.sent.entries(conversation, &messages, write);
        body.list("messages", &entries);
        // Newer OpenAI models reject `max_tokens`, and most other servers know only that.
        let usual = if self.endpoint.is_openai() {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        if let Some(limit) = self.quirks.limit(&request.model, usual) {
            body.maybe(limit, request.max_output.as_ref());
        }
        if self.stream && self.takes(request, "stream_options") {
            body.raw("stream_options", r#"{"include_usage":true}"#);
        }
    }

    fn responses(&self, request: &ModelRequest, body: &mut JsonBody) {
        let leading = leading_system(&request.messages);
        let (system, rest) = request.messages.split_at(leading);
        let texts = system.iter().map(|message| message.text());
        // A summary begins with what separates it from the text before it.
        let texts: Vec<_> = texts
            .map(|text| text.trim_start_matches('\n').to_owned())
            .collect();
        if !texts.is_empty() {
            body.put("instructions", &texts.join("\n\n"));
        }
        let write = |message: &Message| {
            responses::write_input(std::slice::from_ref(&bare(message, Dialect::Responses)))
        };
        let conversation = request.conversation.as_deref();
        body.list("input", &self.sent.entries(conversation, rest, write));
        if self.takes(request, "max_output_tokens") {
            body.maybe("max_output_tokens", request.max_output.as_ref());
        }
        // The session keeps the conversation itself. Nothing needs to be stored at the provider.
        if self.takes(request, "store") {
            body.raw("store", "false");
        }
        if may_think(&request.model) && self.takes(request, "include") {
            body.raw("include", r#"["reasoning.encrypted_content"]"#);
        }
        // Other servers may reject a field that they do not know.
        let key = conversation.filter(|key| key.len() <= LONGEST_KEY && self.endpoint.is_openai());
        body.maybe(
            "prompt_cache_key",
            key.filter(|_| self.takes(request, "prompt_cache_key")),
        );
    }

    fn tools(&self, request: &ModelRequest, body: &mut JsonBody) {
        if request.tools.is_empty() {
            return;
        }
        // The last tool carries a cache marker, which covers all tools before it.
        let last = request.tools.len() - 1;
        let entry = |(at, tool): (usize, &ToolDefinition)| {
            let mut tool = tool.in_dialect(self.dialect);
            if self.dialect == Dialect::Messages
                && at == last
                && let Some(fields) = tool.as_object_mut()
            {
                fields.insert(
                    cache_markers::FIELD.to_owned(),
                    cache_markers::value().to_value(),
                );
            }
            RawJson::of(&tool)
        };
        let tools: Vec<RawJson> = request.tools.iter().enumerate().map(entry).collect();
        body.list("tools", &tools);
        if request.only_text {
            let none = match self.dialect {
                Dialect::Messages => r#"{"type":"none"}"#,
                Dialect::Chat | Dialect::Responses => "\"none\"",
            };
            body.raw("tool_choice", none);
        }
    }
}

fn messages(request: &ModelRequest, body: &mut JsonBody) {
    let plain = request.messages.iter();
    let mut marked: Vec<Message> = plain
        .map(|message| bare(message, Dialect::Messages))
        .collect();
    cache_markers::mark(&mut marked);
    let written = messages::write_request(&marked);
    if let Some(system) = &written.system {
        body.raw("system", system.as_str());
    }
    body.list("messages", &written.messages);
    body.put("max_tokens", &request.max_output.unwrap_or(ANSWER));
}

/// The number of leading system messages.
fn leading_system<M: std::ops::Deref<Target = Message>>(messages: &[M]) -> usize {
    let system = messages.iter();
    system
        .take_while(|message| message.role == Role::System)
        .count()
}

/// True if a model may reason. Then its encrypted reasoning is requested, because the next request
/// must send it back. An unknown model is assumed to reason, and rejects the field if it does not.
fn may_think(model: &str) -> bool {
    let found = Catalogue::embedded().find(model);
    found.map_or(true, |found| found.model.reasons)
}

/// The message as it can be sent: without our metadata and without parts that only another dialect
/// understands.
fn bare(message: &Message, dialect: Dialect) -> Message {
    let mut bare = request::without_metadata(message, dialect);
    if came_in(message).is_some_and(|other| other != dialect) {
        forget_dialect(&mut bare, dialect);
    }
    if dialect == Dialect::Responses {
        // The provider rejects reasoning that it neither stores nor has encrypted.
        let unsealed =
            |part: &Part| matches!(part, Part::Reasoning(thought) if !thought.is_sealed());
        bare.parts.retain(|part| !unsealed(part));
    }
    bare
}

/// Removes everything that only the answer's original dialect has: unknown fields, and reasoning
/// signed by its provider.
fn forget_dialect(message: &mut Message, dialect: Dialect) {
    message.meta.extra.clear();
    // Chat Completions carries reasoning as plain text, so the text of another provider's can stay.
    if dialect != Dialect::Chat {
        message
            .parts
            .retain(|part| !matches!(part, Part::Reasoning(_)));
    }
    for part in &mut message.parts {
        match part {
            Part::Text(text) => text.extra.clear(),
            Part::Call(call) => call.extra.clear(),
            Part::Reasoning(thought) => thought.extra.clear(),
            Part::Media(_) | Part::Output(_) | Part::Opaque(_) => {}
        }
    }
}

/// A JSON object under construction.
struct JsonBody(String);

impl JsonBody {
    fn new() -> Self {
        Self("{".to_owned())
    }

    fn name(&mut self, name: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push_str(RawJson::of(name).as_str());
        self.0.push(':');
    }

    fn raw(&mut self, name: &str, json: &str) {
        self.name(name);
        self.0.push_str(json);
    }

    fn put<T: serde::Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        self.raw(name, RawJson::of(value).as_str());
    }

    fn maybe<T: serde::Serialize + ?Sized>(&mut self, name: &str, value: Option<&T>) {
        if let Some(value) = value {
            self.put(name, value);
        }
    }

    fn list(&mut self, name: &str, entries: &[RawJson]) {
        self.name(name);
        self.0.push('[');
        for (at, entry) in entries.iter().enumerate() {
            if at > 0 {
                self.0.push(',');
            }
            self.0.push_str(entry.as_str());
        }
        self.0.push(']');
    }

    fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

#[cfg(test)]
mod tests;
