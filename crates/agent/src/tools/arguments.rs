//! Parses the arguments of a call.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Parses the arguments of a call as a JSON object. The error is a text for the model.
///
/// ```
/// use trimtab_agent::tools::parse;
///
/// assert!(parse("").unwrap().as_object().unwrap().is_empty());
/// assert!(parse("[1]").unwrap_err().contains("a JSON object"));
/// ```
pub fn parse(arguments: &str) -> Result<Value, String> {
    // Some models send no arguments for a tool that needs none.
    if arguments.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str::<Value>(arguments) {
        Ok(value) if value.is_object() => Ok(value),
        Ok(_) => Err("the arguments must be a JSON object, such as {\"path\": \"a.txt\"}".into()),
        Err(error) => Err(format!(
            "the arguments are not valid JSON: {error}\nhint: send them again as one JSON object"
        )),
    }
}

/// Deserialises the arguments of a tool. The error is a text for the model.
pub(super) fn parse_as<T: DeserializeOwned>(arguments: &Value) -> Result<T, String> {
    T::deserialize(arguments).map_err(|error| format!("invalid arguments: {error}"))
}
