//! Assembles a streamed answer into a message.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use trimtab_model::{Dialect, Message, work};

use super::read_message;
use crate::json::{elements, number, pick};

/// The message of a streamed answer, as far as it has arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct AssembledParts {
    /// Chat Completions: the message.
    message: Map<String, Value>,
    /// Chat Completions: the calls. Messages: the parts, with the JSON of their input.
    list: Vec<(Value, String)>,
    /// The newest of these for each index of the stream.
    newest: HashMap<u64, usize>,
    /// Responses: the complete entries, as JSON.
    entries: Vec<String>,
}

impl AssembledParts {
    /// Adds the data of an event. Events that say nothing about the message are not parsed.
    pub(super) fn add_event(&mut self, dialect: Dialect, data: &str) -> Option<()> {
        work::step(1);
        match dialect {
            Dialect::Chat => self.chat(data),
            Dialect::Messages => self.messages(data),
            Dialect::Responses => self.responses(data),
        }
    }

    /// The message, unless it is empty.
    pub(super) fn into_message(self, dialect: Dialect) -> Option<Message> {
        let said = match dialect {
            Dialect::Chat => Value::Object(self.chat_message()).to_string(),
            Dialect::Messages => json!({"role": "assistant", "content": self.blocks()}).to_string(),
            Dialect::Responses => format!("[{}]", self.entries.join(",")),
        };
        read_message(dialect, &said)
    }

    fn chat(&mut self, data: &str) -> Option<()> {
        let [choices] = pick(data, ["choices"])?;
        let mut choices = elements(choices?).filter_map(|choice| pick(choice, ["index", "delta"]));
        // Only the first choice is part of the conversation that continues.
        let [_, delta] = choices.find(|[index, _]| number(*index).unwrap_or(0) == 0)?;
        let delta: Map<String, Value> = serde_json::from_str(delta?).ok()?;
        for (name, value) in delta {
            match value {
                Value::Array(calls) if name == "tool_calls" => {
                    for call in calls {
                        self.add_call(call);
                    }
                }
                Value::Null => {}
                value if name != "role" && name != "tool_calls" => {
                    add(self.message.entry(name).or_insert(Value::Null), value);
                }
                _ => {}
            }
        }
        Some(())
    }

    fn add_call(&mut self, delta: Value) {
        let index = delta.get("index").and_then(Value::as_u64).unwrap_or(0);
        // Some servers give all calls the same index. A name and another id begin a new call.
        let id = |call: &Value| call.get("id")?.as_str().map(str::to_owned);
        let open = self.newest.get(&index).copied();
        let open_id = open.and_then(|at| id(&self.list.get(at)?.0));
        let is_other = open_id.is_some_and(|open| id(&delta).is_some_and(|id| id != open));
        let name = delta.pointer("/function/name");
        let begins = is_other && name.is_some_and(Value::is_string);
        let at = open.filter(|_| !begins);
        let at = at.unwrap_or_else(|| self.begin(index, json!({})));
        let call = self
            .list
            .get_mut(at)
            .and_then(|(call, _)| call.as_object_mut());
        let (Some(call), Value::Object(fields)) = (call, delta) else {
            return;
        };
        for (name, value) in fields.into_iter().filter(|(name, _)| name != "index") {
            match (call.get_mut(&name), value) {
                // An empty field says nothing about the call.
                (_, Value::Null) => {}
                (_, Value::String(text)) if text.is_empty() => {}
                (Some(Value::Object(function)), Value::Object(pieces)) if name == "function" => {
                    for (name, value) in pieces {
                        let is_piece = name == "arguments";
                        let slot = function.entry(name).or_insert(Value::Null);
                        // Only arguments come in pieces. Some servers repeat the name in every
                        // piece, and adding it up would make a wrong name.
                        if is_piece || slot.is_null() {
                            add(slot, value);
                        }
                    }
                }
                // Pieces may repeat a field; the newest value counts.
                (_, value) => drop(call.insert(name, value)),
            }
        }
    }

    /// Starts a part at an index of the stream.
    fn begin(&mut self, index: u64, part: Value) -> usize {
        let at = self.list.len();
        self.newest.insert(index, at);
        self.list.push((part, String::new()));
        at
    }

    fn chat_message(self) -> Map<String, Value> {
        let mut message = self.message;
        message.insert("role".to_owned(), json!("assistant"));
        message.entry("content").or_insert(Value::Null);
        let calls: Vec<Value> = self.list.into_iter().map(|(call, _)| call).collect();
        if !calls.is_empty() {
            message.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        message
    }

    fn messages(&mut self, data: &str) -> Option<()> {
        let names = ["type", "index", "content_block", "delta"];
        let [type_name, index, part, delta] = pick(data, names)?;
        let index = number(index).unwrap_or(0);
        match type_name? {
            "\"content_block_start\"" => {
                let part = part.and_then(|json| serde_json::from_str(json).ok());
                self.begin(index, part.unwrap_or_default());
            }
            "\"content_block_delta\"" => {
                let (part, input) = self.list.get_mut(*self.newest.get(&index)?)?;
                let delta = serde_json::from_str(delta?).ok()?;
                add_to_part(part.as_object_mut()?, input, delta);
            }
            _ => {}
        }
        Some(())
    }

    fn blocks(self) -> Vec<Value> {
        let finished = |(mut part, input): (Value, String)| {
            // Without pieces the input of the start event stays.
            if let (Ok(input), Some(part)) = (serde_json::from_str(&input), part.as_object_mut()) {
                part.insert("input".to_owned(), input);
            }
            part
        };
        self.list.into_iter().map(finished).collect()
    }

    fn responses(&mut self, data: &str) -> Option<()> {
        let [type_name, item, response] = pick(data, ["type", "item", "response"])?;
        match type_name? {
            "\"response.output_item.done\"" => self.entries.push(item?.to_owned()),
            // Some servers send their entries only in this event.
            "\"response.completed\"" | "\"response.incomplete\"" if self.entries.is_empty() => {
                let [output] = pick(response?, ["output"])?;
                self.entries = elements(output?).map(str::to_owned).collect();
            }
            _ => {}
        }
        Some(())
    }
}

/// Adds a delta of Messages to its part.
fn add_to_part(part: &mut Map<String, Value>, input: &mut String, delta: Map<String, Value>) {
    for (name, value) in delta {
        match name.as_str() {
            "type" => {}
            "partial_json" => input.push_str(value.as_str().unwrap_or_default()),
            // A signature comes in one piece, and replaces the empty one of the start.
            "signature" => drop(part.insert(name, value)),
            "citation" => {
                let list = part.entry("citations").or_insert(Value::Null);
                add(list, json!([value]));
            }
            _ => add(part.entry(name).or_insert(Value::Null), value),
        }
    }
}

/// Strings and lists are extended; everything else is replaced.
fn add(slot: &mut Value, more: Value) {
    match (slot, more) {
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (Value::Array(list), Value::Array(more)) => list.extend(more),
        (slot, more) => *slot = more,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Part;

    fn assembled(dialect: Dialect, events: &[Value]) -> Message {
        let mut parts = AssembledParts::default();
        for event in events {
            parts.add_event(dialect, &event.to_string());
        }
        assert!(parts.add_event(dialect, "[DONE]").is_none());
        parts.into_message(dialect).unwrap()
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
    fn delta(delta: Value) -> Value {
        json!({"choices": [{"index": 0, "delta": delta}]})
    }

    #[test]
    fn chat_completions() {
        let message = assembled(
            Dialect::Chat,
            &[
                delta(json!({"role": "assistant", "content": "he", "reasoning_content": "h"})),
                delta(json!({"content": "llo", "reasoning_content": "m"})),
                delta(
                    json!({"tool_calls": [{"index": 1, "id": "c2", "type": "function",
                    "function": {"name": "g", "arguments": ""}}]}),
                ),
                delta(json!({"tool_calls": [{"index": 1, "function": {"arguments": "{\"a\":"}}]})),
                delta(json!({"tool_calls": [{"index": 1, "function": {"arguments": "1}"}}]})),
            ],
        );
        assert_eq!(message.text(), "hello");
        let call = message.calls().next().unwrap();
        assert_eq!((call.id.as_str(), call.name.as_str()), ("c2", "g"));
        assert_eq!(call.arguments, "{\"a\":1}");
        assert!(
            message
                .parts
                .iter()
                .any(|part| matches!(part, Part::Reasoning(_)))
        );
    }

    #[test]
    fn messages_keep_their_signatures() {
        let part = |index: u64, part: Value| json!({"type": "content_block_start", "index": index, "content_block": part});
        let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
        let message = assembled(
            Dialect::Messages,
            &[
                part(
                    0,
                    json!({"type": "thinking", "thinking": "", "signature": ""}),
                ),
                delta(0, json!({"type": "thinking_delta", "thinking": "hm"})),
                delta(0, json!({"type": "signature_delta", "signature": "sig"})),
                part(
                    1,
                    json!({"type": "tool_use", "id": "c1", "name": "f", "input": {}}),
                ),
                delta(
                    1,
                    json!({"type": "input_json_delta", "partial_json": "{\"a\":"}),
                ),
                delta(1, json!({"type": "input_json_delta", "partial_json": "1}"})),
                part(
                    2,
                    json!({"type": "tool_use", "id": "c2", "name": "g", "input": {}}),
                ),
            ],
        );
        let [
            Part::Reasoning(thought),
            Part::Call(call),
            Part::Call(empty),
        ] = message.parts.as_slice()
        else {
            panic!("{message:?}");
        };
        assert_eq!(
            (thought.text.as_str(), thought.seal.as_deref()),
            ("hm", Some("sig"))
        );
        assert_eq!(
            (call.arguments.as_str(), empty.arguments.as_str()),
            ("{\"a\":1}", "{}")
        );
    }

    #[test]
    fn responses_keep_their_entries() {
        let done = |item: Value| json!({"type": "response.output_item.done", "item": item});
        let message = assembled(
            Dialect::Responses,
            &[
                done(
                    json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}),
                ),
                done(
                    json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
                ),
            ],
        );
        assert_eq!((message.parts.len(), message.calls().count()), (2, 1));
    }

    #[test]
    fn thoughts_that_cannot_be_read_keep_their_seals() {
        let redacted = json!({"type": "content_block_start", "index": 1,
            "content_block": {"type": "redacted_thinking", "data": "Zm9v"}});
        let encrypted = json!({"type": "response.output_item.done", "item":
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}});
        let cases = [
            (Dialect::Messages, redacted, "Zm9v"),
            (Dialect::Responses, encrypted, "gAAA"),
        ];
        for (dialect, event, seal) in cases {
            let message = assembled(dialect, &[event]);
            let [Part::Reasoning(thought)] = message.parts.as_slice() else {
                panic!("{message:?}");
            };
            assert_eq!(thought.seal.as_deref(), Some(seal));
        }
    }

    fn call_pieces(pieces: &[Value]) -> Message {
        let events: Vec<Value> = pieces
            .iter()
            .map(|piece| delta(json!({"tool_calls": [piece]})))
            .collect();
        assembled(Dialect::Chat, &events)
    }

    #[test]
    fn unknown_fields_of_a_call_are_kept_and_the_newest_counts() {
        let message = call_pieces(&[
            json!({"index": 0, "id": "a", "type": "function", "extra_content": {"seal": "old"},
                "function": {"name": "look", "arguments": "{\"p\""}}),
            json!({"index": 0, "id": null, "extra_content": {"seal": "new"}, "other": null,
                "function": {"arguments": ":1}"}}),
        ]);
        let call = message.calls().next().unwrap();
        assert_eq!(
            (&*call.id, &*call.arguments, call.extra.len()),
            ("a", "{\"p\":1}", 1)
        );
        let written = crate::chat::write_message(&message);
        let written: String = written.iter().map(trimtab_model::RawJson::as_str).collect();
        assert!(
            written.contains(r#""extra_content":{"seal":"new"}"#),
            "{written}"
        );
    }

    #[test]
    fn calls_that_share_an_index_are_told_apart() {
        let message = call_pieces(&[
            json!({"index": 0, "id": "a", "function": {"name": "look", "arguments": "{}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "look", "arguments": "{\"p\""}}),
            json!({"index": 0, "id": "b", "function": {"arguments": ":1}"}}),
        ]);
        let calls: Vec<(&str, &str)> = (message.calls())
            .map(|call| (&*call.id, &*call.arguments))
            .collect();
        assert_eq!(calls, [("a", "{}"), ("b", "{\"p\":1}")]);
    }

    #[test]
    fn work_on_many_calls_is_linear() {
        let units = |calls: u64| {
            let part = |index: u64| json!({"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": "c", "name": "f", "input": {}}});
            let delta = |index: u64| json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": "{}"}});
            let events: Vec<Value> = (0..calls).map(part).chain((0..calls).map(delta)).collect();
            let (message, units) = work::counted(|| assembled(Dialect::Messages, &events));
            assert_eq!(message.calls().count() as u64, calls);
            units
        };
        let (once, twice) = (units(2_000), units(4_000));
        assert!(once >= 4_000 && twice <= once * 5 / 2, "{once}, {twice}");
    }
}
