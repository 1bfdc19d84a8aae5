//! One answer of the scripted model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use trimtab_model::Usage;

use super::ScriptedFault;

/// One answer of the model: reasoning, text and calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScriptedReply {
    /// The reasoning; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The text; may be empty.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Items of Responses that come before the text, such as programs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Value>,
    /// The calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ScriptedCall>,
    /// The reported usage; counted if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The stop reason.
    pub stop: ScriptedStop,
    /// The delay before each streamed piece, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<u64>,
    /// The fault when it is given the first time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<ScriptedFault>,
}

/// A tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub name: String,
    /// The arguments.
    #[serde(default)]
    pub arguments: ScriptedArguments,
    /// The id of the call; generated if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// True for a custom tool of Responses, which takes a text instead of JSON.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub custom: bool,
    /// The program that makes the call, in Responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Value>,
}

/// The arguments of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "arguments are an object, or a text that is sent as it is"
)]
pub enum ScriptedArguments {
    /// An object, the normal case.
    Object(Map<String, Value>),
    /// Any text, for a model that writes invalid JSON.
    Raw(String),
}

/// The stop reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedStop {
    /// The answer is complete, or the model waits for outputs.
    #[default]
    End,
    /// The model reached its output limit.
    Length,
}

impl Default for ScriptedArguments {
    fn default() -> Self {
        Self::Object(Map::new())
    }
}

impl ScriptedArguments {
    /// The arguments as the model writes them.
    pub fn to_text(&self) -> String {
        match self {
            Self::Object(object) => serde_json::to_string(object).unwrap_or_default(),
            Self::Raw(text) => text.clone(),
        }
    }
}

impl ScriptedCall {
    /// A call of tool `name`. Arguments other than an object become a text.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        let arguments = match arguments {
            Value::Object(object) => ScriptedArguments::Object(object),
            Value::String(text) => ScriptedArguments::Raw(text),
            other => ScriptedArguments::Raw(other.to_string()),
        };
        Self {
            name: name.into(),
            arguments,
            id: None,
            custom: false,
            caller: None,
        }
    }
}

impl ScriptedReply {
    /// The reply after the end of a script.
    pub fn done() -> Self {
        Self::text("done")
    }

    /// A reply with `text`.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A reply with one call.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::default().and_call(name, arguments)
    }

    /// Adds a call.
    #[must_use]
    pub fn and_call(mut self, name: impl Into<String>, arguments: Value) -> Self {
        self.calls.push(ScriptedCall::new(name, arguments));
        self
    }

    /// Adds reasoning.
    #[must_use]
    pub fn thinking(mut self, reasoning: impl Into<String>) -> Self {
        self.reasoning = reasoning.into();
        self
    }

    /// Adds a fault for the first time it is given.
    #[must_use]
    pub fn with_fault(mut self, fault: ScriptedFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// The reason why it is not a valid reply.
    pub(super) fn problem(&self) -> Option<String> {
        if self.text.is_empty() && self.calls.is_empty() {
            return Some("neither `text` nor `calls` is given".to_owned());
        }
        let nameless = self.calls.iter().position(|call| call.name.is_empty())?;
        Some(format!("call {} has an empty `name`", nameless + 1))
    }
}
