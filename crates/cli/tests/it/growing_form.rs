//! A made conversation in every form, which can be continued in the file that a run has written.

use serde_json::{Value, json};

/// The instructions of the client, in forms that have a place for them.
pub(crate) const INSTRUCTIONS: &str = "Be brief.";

/// A step of a conversation.
#[derive(Clone)]
pub(crate) enum Step {
    User(String),
    /// An answer with one call, and its output.
    Round(usize),
}

impl Step {
    /// `rounds` rounds from `first` on, with a message of the user before every tenth.
    pub(crate) fn some(first: usize, rounds: usize) -> Vec<Self> {
        let steps = (first..first + rounds).flat_map(|number| {
            let said = match number {
                0 => Some("Find the function that loses a row.".to_owned()),
                _ if number % 10 == 0 => Some(format!("Go on with part {number}.")),
                _ => None,
            };
            said.map(Self::User)
                .into_iter()
                .chain([Self::Round(number)])
        });
        steps.collect()
    }
}

fn said(number: usize) -> String {
    format!("I read src/part_{number}.rs next.")
}

fn call_id(number: usize) -> String {
    format!("call_{number}")
}

fn arguments(number: usize) -> Value {
    json!({"path": format!("src/part_{number}.rs")})
}

fn output(number: usize) -> String {
    let line = |line: usize| format!("let row_{number}_{line} = table.read({line})?;\n");
    (0..40).map(line).collect()
}

/// A form of a file.
#[derive(Clone, Copy)]
pub(crate) struct GrowingForm {
    pub(crate) name: &'static str,
    /// True if it has a place for the client's instructions.
    pub(crate) has_instructions: bool,
    /// The first lines, or the document without its conversation.
    empty: fn() -> Vec<Value>,
    /// The list of a document; none if each unit is a line.
    list: Option<&'static str>,
    /// The units of a step; the number is another one for every step.
    units: fn(usize, &Step) -> Vec<Value>,
}

impl GrowingForm {
    /// A file with these steps.
    pub(crate) fn begin(&self, steps: &[Step]) -> String {
        self.grow(&lines(&(self.empty)()), 0, steps)
    }

    /// The file with more steps, which are numbered from `first` on.
    pub(crate) fn grow(&self, file: &str, first: usize, steps: &[Step]) -> String {
        let steps = steps.iter().enumerate();
        let units = steps.flat_map(|(at, step)| (self.units)(first + at, step));
        let units: Vec<Value> = units.collect();
        let Some(list) = self.list else {
            return file.to_owned() + &lines(&units);
        };
        let mut document: Value = serde_json::from_str(file).unwrap();
        document[list].as_array_mut().unwrap().extend(units);
        document.to_string()
    }
}

fn lines(values: &[Value]) -> String {
    let lines = values
        .iter()
        .flat_map(|value| [value.to_string(), "\n".to_owned()]);
    lines.collect()
}

const BARE: GrowingForm = GrowingForm {
    name: "",
    has_instructions: true,
    empty: Vec::new,
    list: None,
    units: chat,
};

pub(crate) const FORMS: [GrowingForm; 6] = [
    GrowingForm {
        name: "claude_code",
        has_instructions: false,
        units: claude_code,
        ..BARE
    },
    GrowingForm {
        name: "chat",
        empty: || {
            let system = json!({"role": "system", "content": INSTRUCTIONS});
            vec![json!({"model": "gpt-4o", "messages": [system]})]
        },
        list: Some("messages"),
        ..BARE
    },
    GrowingForm {
        name: "one message per line",
        empty: || vec![json!({"role": "system", "content": INSTRUCTIONS})],
        ..BARE
    },
    GrowingForm {
        name: "messages",
        empty: || {
            vec![json!({"model": "claude-sonnet-4-5", "system": INSTRUCTIONS, "messages": []})]
        },
        list: Some("messages"),
        units: messages,
        ..BARE
    },
    GrowingForm {
        name: "responses",
        empty: || vec![json!({"model": "gpt-5.1", "instructions": INSTRUCTIONS, "input": []})],
        list: Some("input"),
        units: responses,
        ..BARE
    },
    GrowingForm {
        name: "codex",
        empty: || {
            let payload =
                json!({"id": "s", "cwd": "/w", "base_instructions": {"text": INSTRUCTIONS}});
            vec![json!({"type": "session_meta", "payload": payload})]
        },
        units: codex,
        ..BARE
    },
];

fn chat(_: usize, step: &Step) -> Vec<Value> {
    match step {
        Step::User(text) => vec![json!({"role": "user", "content": text})],
        Step::Round(number) => vec![
            json!({"role": "assistant", "content": said(*number), "tool_calls": [
                {"id": call_id(*number), "type": "function", "function":
                    {"name": "read_file", "arguments": arguments(*number).to_string()}}]}),
            json!({"role": "tool", "tool_call_id": call_id(*number), "content": output(*number)}),
        ],
    }
}

fn messages(_: usize, step: &Step) -> Vec<Value> {
    match step {
        Step::User(text) => vec![json!({"role": "user", "content": text})],
        Step::Round(number) => vec![
            json!({"role": "assistant", "content": [
                {"type": "text", "text": said(*number)},
                {"type": "tool_use", "id": call_id(*number), "name": "read_file",
                 "input": arguments(*number)}]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call_id(*number),
                 "content": output(*number)}]}),
        ],
    }
}

fn claude_code(at: usize, step: &Step) -> Vec<Value> {
    let units = messages(at, step).into_iter().enumerate();
    let line = |(part, message): (usize, Value)| {
        json!({"type": message["role"], "uuid": format!("line-{at}-{part}"), "parentUuid": null,
               "sessionId": "s", "message": message})
    };
    units.map(line).collect()
}

fn responses(_: usize, step: &Step) -> Vec<Value> {
    let message = |role: &str, kind: &str, text: &str| json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]});
    match step {
        Step::User(text) => vec![message("user", "input_text", text)],
        Step::Round(number) => vec![
            message("assistant", "output_text", &said(*number)),
            json!({"type": "function_call", "call_id": call_id(*number), "name": "read_file",
                   "arguments": arguments(*number).to_string()}),
            json!({"type": "function_call_output", "call_id": call_id(*number),
                   "output": output(*number)}),
        ],
    }
}

fn codex(at: usize, step: &Step) -> Vec<Value> {
    let items = responses(at, step).into_iter();
    let line = |item: Value| json!({"type": "response_item", "payload": item});
    items.map(line).collect()
}
