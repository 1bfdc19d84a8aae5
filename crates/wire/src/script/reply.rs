//! One answer of the model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trimtab_model::Usage;

use super::Fault;

/// One answer of the model: what it thinks, says and asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// What it thinks first; empty for no thought.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// What it says; empty for nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tools it asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptedCall>,
    /// What is reported as usage; counted if it is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it stops.
    pub stop: Stop,
    /// How long to wait before each streamed piece, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// What goes wrong when it is given the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
}

/// A tool that the model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: Arguments,
    /// The id of the call; made up if it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// True for a custom tool of Responses, which takes a text instead of JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub custom: bool,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "arguments are an object, or a text that is sent as it is"
)]
pub enum Arguments {
    /// An object, as it should be.
    Object(Map<String, Value>),
    /// Any text, for a model that writes damaged JSON.
    Raw(String),
}

/// Why the model stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// It has said all, or waits for outputs.
    #[default]
    End,
    /// It ran into the limit of its answer.
    Length,
}

impl Default for Arguments {
    fn default() -> Self {
        Self::Object(Map::new())
    }
}

impl Arguments {
    /// The arguments as the model writes them.
    pub fn to_text(&self) -> String {
        match self {
            Self::Object(object) => serde_json::to_string(object).unwrap_or_default(),
            Self::Raw(text) => text.clone(),
        }
    }
}

impl ScriptedCall {
    /// A call of tool `name`; `arguments` that are no object become a text.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        let arguments = match arguments {
            Value::Object(object) => Arguments::Object(object),
            Value::String(text) => Arguments::Raw(text),
            other => Arguments::Raw(other.to_string()),
        };
        Self {
            name: name.into(),
            arguments,
            id: None,
            custom: false,
        }
    }
}

impl Reply {
    /// The reply of a script that has run out.
    pub fn done() -> Self {
        Self::text("done")
    }

    /// A reply that says `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A reply that asks for one tool.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// The same reply with one more call.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.calls.push(ScriptedCall::new(name, arguments));
        self
    }

    /// The same reply with a thought before it.
    #[must_use]
    pub fn thinking(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// The same reply with a fault when it is first given.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// What makes it no reply.
    pub(super) fn problem(&self) -> Option<String> {
        if self.text.is_empty() && self.calls.is_empty() {
            return Some("neither `text` nor `calls` is given".to_owned());
        }
        let nameless = self.calls.iter().position(|call| call.name.is_empty())?;
        Some(format!("call {} has an empty `name`", nameless + 1))
    }
}
