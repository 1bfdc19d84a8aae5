//! Assembles a streamed answer into a message.

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use trimtab_model::{Dialect, Message, work};

use super::{LONGEST_ANSWER, read_message};
use crate::sse::{EventFrame, EventFrames};

/// Assembles an answer from its stream.
#[derive(Clone, Debug)]
pub struct AnswerAssembler {
    dialect: Dialect,
    frames: EventFrames,
    parts: AssembledParts,
    /// Bytes of the stream so far; none once it is too long.
    bytes: Option<usize>,
}

/// The parts so far.
#[derive(Clone, Debug, Default)]
struct AssembledParts {
    /// Chat Completions: the message.
    message: Map<String, Value>,
    /// Chat Completions: the calls. Messages: the parts, with the JSON of their input.
    list: Vec<(Value, String)>,
    /// The newest of these for each index of the stream.
    newest: HashMap<u64, usize>,
    /// Responses: the complete entries.
    entries: Vec<Value>,
}

impl AnswerAssembler {
    /// An assembler for `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            frames: EventFrames::new(LONGEST_ANSWER),
            parts: AssembledParts::default(),
            bytes: Some(0),
        }
    }

    /// True if the answer is too long to keep.
    pub fn gave_up(&self) -> bool {
        self.bytes.is_none()
    }

    /// Adds the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.has_room(bytes.len()) {
            let (parts, dialect) = (&mut self.parts, self.dialect);
            self.frames.push(bytes, |frame| parts.take(dialect, &frame));
        }
    }

    /// Takes the data of one event, which somebody else has framed already.
    pub fn take(&mut self, data: &str) {
        if self.has_room(data.len()) {
            let frame = EventFrame::Data(data.as_bytes());
            self.parts.take(self.dialect, &frame);
        }
    }

    /// Counts so many bytes more. False if that is too much, and nothing is kept then.
    fn has_room(&mut self, more: usize) -> bool {
        work::step_bytes(more);
        let bytes = self.bytes.map(|came| came + more);
        self.bytes = bytes.filter(|came| *came <= LONGEST_ANSWER);
        if self.gave_up() {
            // Free what was kept so far: the rest of a long answer may take minutes.
            self.frames = EventFrames::new(LONGEST_ANSWER);
            self.parts = AssembledParts::default();
        }
        !self.gave_up()
    }

    /// The message, unless the answer is empty or too long.
    pub fn finish(mut self) -> Option<Message> {
        let (mut parts, dialect) = (self.parts, self.dialect);
        // The last event counts even without its closing blank line.
        self.frames.finish(|frame| parts.take(dialect, &frame));
        let said = match self.dialect {
            Dialect::Chat => Value::Object(parts.chat_message()),
            Dialect::Messages => json!({"role": "assistant", "content": parts.blocks()}),
            Dialect::Responses => Value::Array(parts.entries),
        };
        read_message(self.dialect, &said)
    }
}

impl AssembledParts {
    fn take(&mut self, dialect: Dialect, frame: &EventFrame<'_>) {
        work::step(1);
        let EventFrame::Data(data) = frame else {
            return;
        };
        let Ok(event) = serde_json::from_slice::<Value>(data) else {
            return;
        };
        match dialect {
            Dialect::Chat => self.chat(&event),
            Dialect::Messages => self.messages(&event),
            Dialect::Responses => self.responses(event),
        }
    }

    fn chat(&mut self, event: &Value) {
        let choices = event.get("choices").and_then(Value::as_array);
        // Only the first choice is part of the conversation that continues.
        let first = choices
            .into_iter()
            .flatten()
            .find(|choice| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0);
        let delta = first.and_then(|choice| choice.get("delta")?.as_object());
        for (name, value) in delta.into_iter().flatten() {
            if name == "tool_calls" {
                for call in value.as_array().into_iter().flatten() {
                    self.add_call(call);
                }
            } else if name != "role" && !value.is_null() {
                add(self.message.entry(name).or_insert(Value::Null), value);
            }
        }
    }

    fn add_call(&mut self, delta: &Value) {
        let index = delta.get("index").and_then(Value::as_u64).unwrap_or(0);
        // Some servers give all calls the same index. A name and another id begin a new call.
        let id = |call: &Value| call.get("id")?.as_str().map(str::to_owned);
        let open = self.newest.get(&index).and_then(|at| self.list.get(*at));
        let open = open.and_then(|(call, _)| id(call));
        let is_other = open.is_some_and(|open| id(delta).is_some_and(|id| id != open));
        if is_other
            && delta
                .pointer("/function/name")
                .is_some_and(Value::is_string)
        {
            self.begin(index, json!({}));
        }
        let call = self.at(index, json!({}));
        let fields = delta.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(name, _)| *name != "index") {
            match (name.as_str(), call.get_mut(name)) {
                // An empty field says nothing about the call.
                _ if value.is_null() || value == "" => {}
                ("function", Some(Value::Object(function))) => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        let slot = function.entry(name).or_insert(Value::Null);
                        // Only arguments come in pieces. Some servers repeat the name in every
                        // piece, and adding it up would make a wrong name.
                        if name == "arguments" || slot.is_null() {
                            add(slot, value);
                        }
                    }
                }
                // Pieces may repeat a field; the newest value counts.
                (_, Some(known)) => *known = value.clone(),
                (_, None) => {
                    if let Some(call) = call.as_object_mut() {
                        call.insert(name.clone(), value.clone());
                    }
                }
            }
        }
    }

    /// The part at an index of the stream; created if necessary.
    fn at(&mut self, index: u64, new: Value) -> &mut Value {
        let at = self.newest.get(&index).copied();
        let at = at.unwrap_or_else(|| self.begin(index, new));
        match self.list.get_mut(at) {
            Some((value, _)) => value,
            // Unreachable: the part was just added.
            None => self.message.entry("").or_insert(Value::Null),
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

    fn messages(&mut self, event: &Value) {
        let text = |name: &str| event.get(name).and_then(Value::as_str);
        let index = event.get("index").and_then(Value::as_u64).unwrap_or(0);
        match text("type") {
            Some("content_block_start") => {
                let part = event.get("content_block").cloned().unwrap_or_default();
                self.begin(index, part);
            }
            Some("content_block_delta") => {
                let at = self.newest.get(&index);
                let found = at.and_then(|at| self.list.get_mut(*at));
                if let (Some((part, input)), Some(delta)) = (found, event.get("delta")) {
                    add_to_part(part, input, delta);
                }
            }
            _ => {}
        }
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

    fn responses(&mut self, mut event: Value) {
        match event.get("type").and_then(Value::as_str) {
            Some("response.output_item.done") => {
                self.entries.extend(event.get_mut("item").map(Value::take));
            }
            // Some servers send their entries only in this event.
            Some("response.completed" | "response.incomplete") if self.entries.is_empty() => {
                let output = event.pointer_mut("/response/output");
                if let Some(Value::Array(output)) = output.map(Value::take) {
                    self.entries = output;
                }
            }
            _ => {}
        }
    }
}

/// Adds a delta of Messages to its part.
fn add_to_part(part: &mut Value, input: &mut String, delta: &Value) {
    let Some(part) = part.as_object_mut() else {
        return;
    };
    for (name, value) in delta.as_object().into_iter().flatten() {
        match name.as_str() {
            "type" => {}
            "partial_json" => input.push_str(value.as_str().unwrap_or_default()),
            // A signature comes in one piece, and replaces the empty one of the start.
            "signature" => drop(part.insert(name.clone(), value.clone())),
            "citation" => {
                let list = part.entry("citations").or_insert_with(|| json!([]));
                if list.is_null() {
                    *list = json!([]);
                }
                add(list, &json!([value]));
            }
            _ => add(part.entry(name).or_insert(Value::Null), value),
        }
    }
}

/// Strings and lists are extended; everything else is replaced.
fn add(slot: &mut Value, more: &Value) {
    match (slot, more) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(list), Value::Array(more)) => list.extend(more.iter().cloned()),
        (slot, more) => *slot = more.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Part;

    fn assembled(dialect: Dialect, events: &[Value]) -> Message {
        let mut assembler = AnswerAssembler::new(dialect);
        for event in events {
            assembler.push(format!("data: {event}\n\n").as_bytes());
        }
        assembler.push(b"data: [DONE]\n\n");
        assembler.finish().unwrap()
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

    #[test]
    fn overlong_stream_is_given_up() {
        let mut assembler = AnswerAssembler::new(Dialect::Chat);
        let event = format!(
            "data: {}\n\n",
            delta(json!({"content": "x".repeat(1 << 20)}))
        );
        for _ in 0..7 {
            assembler.push(event.as_bytes());
        }
        assert!(!assembler.gave_up());
        assembler.push(event.as_bytes());
        assert!(assembler.gave_up() && assembler.finish().is_none_or(|said| said.is_empty()));
    }
}
