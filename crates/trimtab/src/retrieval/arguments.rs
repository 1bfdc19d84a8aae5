//! Parses the arguments of a retrieval call.

use serde_json::{Map, Value};
use trimtab_engine::view::tools::ToolDefinition;

use super::RetrievalRefusal;

/// The fields of a call's arguments.
pub(super) struct CallArguments(Map<String, Value>);

impl CallArguments {
    /// Parses JSON text. An empty text means no fields; an object in a string, as some clients send
    /// it, is accepted.
    pub(super) fn parse(json: &str) -> Result<Self, RetrievalRefusal> {
        let value = match read(json)? {
            // Only one level: a string in a string is surely a mistake.
            Value::String(inner) => read(&inner)?,
            value => value,
        };
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            Value::Null => Ok(Self(Map::new())),
            other => Err(RetrievalRefusal::new(format!(
                "The arguments must be a JSON object such as {{\"ref_id\":\"...\"}}, not {}.",
                short(&other)
            ))),
        }
    }

    /// Rejects unknown arguments: ignoring a misspelt `ref_id` would search everything.
    pub(super) fn refuse_unknown(&self, tool: &ToolDefinition) -> Result<(), RetrievalRefusal> {
        let known: Vec<&str> = tool.arguments().collect();
        let names = self.0.keys().map(String::as_str);
        let unknown: Vec<&str> = names.filter(|name| !known.contains(name)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let is_one = unknown.len() == 1;
        let unknown: Vec<String> = unknown
            .iter()
            .map(|name| short(&Value::from(*name)))
            .collect();
        Err(RetrievalRefusal::new(format!(
            "{} has no {} {}. Its arguments are: {}.",
            tool.name,
            if is_one { "argument" } else { "arguments" },
            unknown.join(", "),
            known.join(", ")
        )))
    }

    /// A text; none if it is missing or empty. A number is taken as written.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, RetrievalRefusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Number(number)) => Ok(Some(number.to_string())),
            Some(other) => Err(wrong(name, "a string", other)),
        }
    }

    /// A ref, without the quotes and prefixes that models copy along with it.
    pub(super) fn ref_id(&self) -> Result<Option<String>, RetrievalRefusal> {
        let text = self.text("ref_id")?;
        let bare = |text: String| {
            let text = text.trim().trim_matches(['"', '\'', '`']);
            text.strip_prefix("ref:").unwrap_or(text).to_owned()
        };
        Ok(text.map(bare).filter(|id| !id.is_empty()))
    }

    /// An integer of at least `minimum`; none if it is missing.
    pub(super) fn count(&self, name: &str, minimum: u64) -> Result<Option<u64>, RetrievalRefusal> {
        let argument = self.0.get(name).filter(|argument| !argument.is_null());
        let Some(argument) = argument else {
            return Ok(None);
        };
        let number = match argument {
            Value::String(text) if text.trim().is_empty() => return Ok(None),
            Value::String(text) => text.trim().parse().ok(),
            other => other.as_u64().or_else(|| whole(other.as_f64()?)),
        };
        let expected = format!("a whole number of at least {minimum}");
        let number = number.filter(|number| *number >= minimum);
        let number = number.ok_or_else(|| wrong(name, &expected, argument))?;
        Ok(Some(number))
    }

    /// A flag; false if it is missing.
    pub(super) fn flag(&self, name: &str) -> Result<bool, RetrievalRefusal> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(other) => Err(wrong(name, "true or false", other)),
        }
    }
}

fn read(json: &str) -> Result<Value, RetrievalRefusal> {
    if json.trim().is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_str(json).map_err(|error| {
        RetrievalRefusal::new(format!("The arguments are not valid JSON: {error}."))
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole, not negative and small enough was checked"
)]
fn whole(number: f64) -> Option<u64> {
    // Below 2^53, so that the number is exact.
    let fits = number.fract() == 0.0 && (0.0..9e15).contains(&number);
    fits.then_some(number as u64)
}

fn wrong(name: &str, expected: &str, argument: &Value) -> RetrievalRefusal {
    RetrievalRefusal::new(format!(
        "{name} must be {expected}, not {}.",
        short(argument)
    ))
}

/// The value, cut to a recognisable length.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
