//! The session of the demo: an agent finds out why orders are charged twice.
//!
//! It is written by hand so that it can be read here. Its outputs have the sizes and shapes of real
//! ones and are the same in every run.

mod outputs;
mod story;
mod words;

use serde_json::{Value, json};

/// A session: the user's messages, the model's answers and the tools' outputs.
#[derive(Clone, Debug)]
pub(super) struct DemoSession {
    /// The system prompt.
    pub(super) system: String,
    /// The steps, in order.
    pub(super) steps: Vec<DemoStep>,
}

/// One step of a session.
#[derive(Clone, Debug)]
pub(super) enum DemoStep {
    /// A message of the user.
    User(String),
    /// A call of the model.
    Model(DemoRound),
}

/// One answer of the model with the outputs of its calls.
#[derive(Clone, Debug, Default)]
pub(super) struct DemoRound {
    /// The text of the answer.
    pub(super) text: String,
    /// Its calls.
    pub(super) calls: Vec<DemoToolCall>,
    /// A text that the model first searches in the stored outputs, if it can.
    pub(super) looks_up: Option<&'static str>,
}

/// A call with its output.
#[derive(Clone, Debug)]
pub(super) struct DemoToolCall {
    pub(super) id: String,
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) output: String,
}

impl DemoSession {
    /// Builds the session.
    pub(super) fn make() -> Self {
        story::tell()
    }

    /// The answers of the model, in order.
    pub(super) fn rounds(&self) -> impl Iterator<Item = &DemoRound> {
        self.steps.iter().filter_map(|step| match step {
            DemoStep::Model(round) => Some(round),
            DemoStep::User(_) => None,
        })
    }

    /// The session as Chat Completions messages, which the other verbs read.
    pub(super) fn transcript(&self, model: &str) -> Value {
        let mut messages = vec![json!({"role": "system", "content": self.system})];
        for step in &self.steps {
            match step {
                DemoStep::User(text) => messages.push(json!({"role": "user", "content": text})),
                DemoStep::Model(round) => messages.extend(round.chat_messages()),
            }
        }
        json!({"id": "web-shop", "model": model, "messages": messages})
    }
}

impl DemoRound {
    fn chat_messages(&self) -> Vec<Value> {
        let calls = self.calls.iter().map(|call| {
            let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
            json!({"id": call.id, "type": "function", "function": function})
        });
        let calls: Vec<Value> = calls.collect();
        // Providers reject an empty list of calls.
        let answer = if calls.is_empty() {
            json!({"role": "assistant", "content": self.text})
        } else {
            json!({"role": "assistant", "content": self.text, "tool_calls": calls})
        };
        let outputs = self
            .calls
            .iter()
            .map(|call| json!({"role": "tool", "tool_call_id": call.id, "content": call.output}));
        std::iter::once(answer).chain(outputs).collect()
    }
}

/// The tools of the agent, as Messages defines them.
pub(super) fn tools() -> Value {
    let tool = |name: &str, about: &str, argument: &str| {
        json!({
            "name": name,
            "description": about,
            "input_schema": {
                "type": "object",
                "properties": {argument: {"type": "string"}},
                "required": [argument],
            },
        })
    };
    json!([
        tool("list_files", "List all files below a folder.", "path"),
        tool("read_file", "Read a file.", "path"),
        tool("search", "Search all files for a text.", "text"),
        tool("run", "Run a shell command.", "command"),
        tool("query", "Run a read-only SQL query.", "sql"),
        tool("edit_file", "Replace text in a file.", "path"),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demo_session_is_long_and_deterministic() {
        let (one, two) = (DemoSession::make(), DemoSession::make());
        assert_eq!(format!("{one:?}"), format!("{two:?}"));
        let rounds = one.rounds().count();
        assert!(rounds >= 36, "{rounds} rounds");
        let bytes: usize = one
            .rounds()
            .flat_map(|round| &round.calls)
            .map(|call| call.output.len())
            .sum();
        assert!((500_000..1_000_000).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn looked_up_text_was_seen_before() {
        let session = DemoSession::make();
        let mut seen = String::new();
        let mut looked_up = 0;
        for round in session.rounds() {
            if let Some(text) = round.looks_up {
                assert!(seen.contains(text), "{text}");
                looked_up += 1;
            }
            seen.extend(round.calls.iter().map(|call| call.output.as_str()));
        }
        assert!(looked_up >= 2);
    }

    #[test]
    fn call_ids_are_unique() {
        let session = DemoSession::make();
        let calls = session.rounds().flat_map(|round| &round.calls);
        let mut ids: Vec<&str> = calls.map(|call| call.id.as_str()).collect();
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }
}
