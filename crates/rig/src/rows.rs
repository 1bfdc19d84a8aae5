//! Messages of rig as Chat rows, and the way back.

use std::collections::HashMap;

use rig_core::completion::message::{AssistantContent, ToolResult, ToolResultContent, UserContent};
use rig_core::completion::{CompletionRequest, Message};
use serde_json::{Value, json};
use trimtab_binding::BoundWindow;

/// Where a row comes from: a message, and one of its parts if each part is a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Place {
    message: usize,
    part: Option<usize>,
}

/// The messages of a request as Chat rows.
pub(crate) struct HostRows {
    rows: Vec<Value>,
    /// None for the preamble, which is not in the list of messages.
    places: Vec<Option<Place>>,
    /// The rows that make or answer a call. Some providers use an id more than once.
    by_call: HashMap<String, Vec<usize>>,
}

impl HostRows {
    pub(crate) fn of(request: &CompletionRequest) -> Self {
        let mut made = Self {
            rows: Vec::new(),
            places: Vec::new(),
            by_call: HashMap::new(),
        };
        if let Some(preamble) = &request.preamble {
            made.add(json!({"role": "system", "content": preamble}), None);
        }
        for (at, message) in request.chat_history.iter().enumerate() {
            made.add_message(at, message);
        }
        made
    }

    fn add_message(&mut self, message: usize, content: &Message) {
        let whole = Some(Place {
            message,
            part: None,
        });
        match content {
            Message::System { content } => {
                self.add(json!({"role": "system", "content": content}), whole);
            }
            Message::Assistant { content, .. } => self.add(assistant_row(content), whole),
            Message::User { content } => {
                for (part, content) in content.iter().enumerate() {
                    let part = Some(part);
                    self.add(user_row(content), Some(Place { message, part }));
                }
            }
        }
    }

    fn add(&mut self, row: Value, place: Option<Place>) {
        for key in call_keys(&row) {
            self.by_call.entry(key).or_default().push(self.rows.len());
        }
        self.rows.push(row);
        self.places.push(place);
    }

    /// The request for the session.
    pub(crate) fn request(&self, request: &CompletionRequest) -> Vec<u8> {
        let tools = request.tools.iter().map(|tool| {
            json!({"type": "function", "function": {"name": tool.name,
                "description": tool.description, "parameters": tool.parameters}})
        });
        let mut body = json!({"messages": self.rows, "tools": tools.collect::<Vec<_>>()});
        if let (Some(limit), Some(fields)) = (request.max_tokens, body.as_object_mut()) {
            fields.insert("max_tokens".to_owned(), limit.into());
        }
        body.to_string().into_bytes()
    }

    /// The messages of a window: the host's own where they are unchanged.
    pub(crate) fn messages(&self, window: &BoundWindow, own: &[Message]) -> Option<Vec<Message>> {
        let body: Value = serde_json::from_slice(&window.body).ok()?;
        let rows = body.get("messages")?.as_array()?.iter();
        let mut made = Vec::new();
        let mut open = None;
        let mut behind = None;
        for (row, source) in rows.zip(&window.sources) {
            let Some(at) = source.or_else(|| self.changed_row(row, behind)) else {
                made.extend(new_message(row));
                open = None;
                continue;
            };
            behind = Some(at);
            // The preamble is sent beside the messages.
            let Some(place) = *self.places.get(at)? else {
                continue;
            };
            let message = own.get(place.message)?;
            let part = part_of(message, place, source.is_none().then_some(row));
            match (part, made.last_mut()) {
                (None, _) => made.push(message.clone()),
                (Some(part), Some(Message::User { content })) if open == Some(place.message) => {
                    content.push(part);
                }
                (Some(part), _) => made.push(Message::User {
                    content: vec![part],
                }),
            }
            open = Some(place.message);
        }
        Some(made)
    }

    /// The row that a changed row was; none for a row of ours. Rows keep their order.
    fn changed_row(&self, row: &Value, behind: Option<usize>) -> Option<usize> {
        let keys = call_keys(row);
        let rows = keys
            .iter()
            .filter_map(|key| self.by_call.get(key))
            .flatten();
        let mut later = rows.copied().filter(|at| Some(*at) > behind);
        later.next()
    }
}

/// The calls that a row makes or answers.
fn call_keys(row: &Value) -> Vec<String> {
    let answered = row["tool_call_id"].as_str();
    let made = row["tool_calls"].as_array().into_iter().flatten();
    let made = made.filter_map(|call| call["id"].as_str());
    let made = made.map(|id| format!("call {id}"));
    made.chain(answered.map(|id| format!("output {id}")))
        .collect()
}

/// A row of ours as a message. Instructions of ours do not exist.
fn new_message(row: &Value) -> Option<Message> {
    match row["role"].as_str()? {
        "system" => None,
        "assistant" => Some(Message::assistant(text_of(row))),
        _ => Some(Message::user(text_of(row))),
    }
}

/// The part of a user message that a place names, with the text of its row if that was changed.
fn part_of(message: &Message, place: Place, changed: Option<&Value>) -> Option<UserContent> {
    let Message::User { content } = message else {
        return None;
    };
    let part = content.get(place.part?)?;
    Some(match (part, changed) {
        (UserContent::ToolResult(result), Some(row)) => UserContent::ToolResult(ToolResult {
            content: vec![ToolResultContent::text(text_of(row))],
            ..result.clone()
        }),
        _ => part.clone(),
    })
}

fn assistant_row(content: &[AssistantContent]) -> Value {
    let texts = content.iter().filter_map(|part| match part {
        AssistantContent::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    let text: String = texts.collect();
    let calls = content.iter().filter_map(|part| match part {
        AssistantContent::ToolCall(call) => Some(json!({"id": call.id, "type": "function",
            "function": {"name": call.function.name,
                         "arguments": call.function.arguments.to_string()}})),
        _ => None,
    });
    let calls: Vec<Value> = calls.collect();
    let mut row = json!({"role": "assistant", "content": text});
    if let Some(fields) = row.as_object_mut().filter(|_| !calls.is_empty()) {
        fields.insert("tool_calls".to_owned(), calls.into());
    }
    row
}

fn user_row(content: &UserContent) -> Value {
    match content {
        UserContent::Text(text) => json!({"role": "user", "content": text.text}),
        UserContent::ToolResult(result) => {
            let texts = result.content.iter().map(|part| match part {
                ToolResultContent::Text(text) => text.text.clone(),
                ToolResultContent::Json { value } => value.to_string(),
                ToolResultContent::Image(_) => "[image]".to_owned(),
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            json!({"role": "tool", "tool_call_id": result.call, "content": text})
        }
        UserContent::Image(_) => json!({"role": "user", "content": "[image]"}),
        UserContent::Audio(_) => json!({"role": "user", "content": "[audio]"}),
        UserContent::Video(_) => json!({"role": "user", "content": "[video]"}),
        UserContent::Document(_) => json!({"role": "user", "content": "[document]"}),
    }
}

fn text_of(row: &Value) -> String {
    row["content"].as_str().unwrap_or_default().to_owned()
}
