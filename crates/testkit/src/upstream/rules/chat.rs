//! The rules of Chat Completions.

use serde_json::Value;
use trimtab_wire::validate::{RequestFault, RequestRule};

use super::{BrokenRule, entries, text};
use crate::upstream::refusal::ProviderRefusal;

/// Longest id of a call, in bytes.
const LONGEST_ID: usize = 40;

/// Longest text, in characters.
const LONGEST_TEXT: usize = 10_485_760;

/// Models that take no function tools while they reason.
const NO_TOOLS_WITH_EFFORT: [&str; 4] = ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6"];

/// The roles there are.
const ROLES: [&str; 6] = [
    "system",
    "assistant",
    "user",
    "function",
    "tool",
    "developer",
];

pub(super) fn judge(body: &Value) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    if text(body, "model").is_empty() {
        let refusal = ProviderRefusal::openai("you must provide a model parameter", None, None);
        broken.push(BrokenRule::new("there is no model", refusal));
    }
    if body
        .get("stream_options")
        .is_some_and(|options| !options.is_null())
        && body.get("stream") != Some(&Value::Bool(true))
    {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        let refusal = ProviderRefusal::openai(message, Some("stream_options"), None);
        broken.push(BrokenRule::new("stream_options without stream", refusal));
    }
    broken.extend(tools_with_effort(body));
    for (at, message) in entries(body, "messages") {
        broken.extend(role(at, text(message, "role")));
        broken.extend(content(at, message));
        broken.extend(no_content(at, message));
        for (number, call) in entries(message, "tool_calls") {
            broken.extend(call_fields(at, number, call));
        }
    }
    broken
}

/// The newest models take function tools only with reasoning switched off.
fn tools_with_effort(body: &Value) -> Option<BrokenRule> {
    let model = text(body, "model");
    let is_new = NO_TOOLS_WITH_EFFORT
        .iter()
        .any(|name| model.starts_with(name));
    let has_effort = !matches!(text(body, "reasoning_effort"), "" | "none");
    let has_tools = entries(body, "tools").next().is_some();
    (is_new && has_effort && has_tools).then(|| {
        let message = format!(
            "Function tools with reasoning_effort are not supported for {model} in \
             /v1/chat/completions. To use function tools, use /v1/responses or set \
             reasoning_effort to 'none'."
        );
        let refusal = ProviderRefusal::openai(message, Some("reasoning_effort"), None);
        BrokenRule::new("function tools with reasoning_effort", refusal)
    })
}

fn role(at: usize, role: &str) -> Option<BrokenRule> {
    if ROLES.contains(&role) {
        return None;
    }
    let message = format!(
        "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', \
         'function', 'tool', and 'developer'."
    );
    let param = format!("messages[{at}].role");
    let refusal = ProviderRefusal::openai(message, Some(&param), Some("invalid_value"));
    Some(BrokenRule::new(
        format!("message {at} has the role {role:?}"),
        refusal,
    ))
}

fn content(at: usize, message: &Value) -> Option<BrokenRule> {
    let length = text(message, "content").len();
    if length <= LONGEST_TEXT {
        return None;
    }
    let length = text(message, "content").chars().count();
    let place = format!("messages[{at}].content");
    let refusal = too_long(&place, LONGEST_TEXT, length);
    (length > LONGEST_TEXT).then(|| BrokenRule::new(format!("message {at} is too long"), refusal))
}

/// Only an answer that has something else may go without content.
fn no_content(at: usize, message: &Value) -> Option<BrokenRule> {
    let has = |name: &&str| message.get(name).is_some_and(|value| !value.is_null());
    let role = text(message, "role");
    let instead = [
        "tool_calls",
        "function_call",
        "refusal",
        "audio",
        "reasoning_content",
    ];
    let excused = role == "assistant" && instead.iter().any(has);
    if has(&"content") || excused || role == "function" {
        return None;
    }
    let place = format!("messages.[{at}].content");
    let message = "Invalid value for 'content': expected a string, got null.";
    let refusal = ProviderRefusal::openai(message, Some(&place), None);
    Some(BrokenRule::new(
        format!("message {at} has no content"),
        refusal,
    ))
}

pub(super) fn too_long(place: &str, most: usize, length: usize) -> ProviderRefusal {
    let message = format!(
        "Invalid '{place}': string too long. Expected a string with maximum length {most}, but \
         got a string with length {length} instead."
    );
    ProviderRefusal::openai(message, Some(place), Some("string_above_max_length"))
}

fn call_fields(at: usize, number: usize, call: &Value) -> Option<BrokenRule> {
    let place = format!("messages[{at}].tool_calls[{number}]");
    let id = text(call, "id");
    if id.len() > LONGEST_ID {
        let refusal = too_long(&format!("{place}.id"), LONGEST_ID, id.len());
        return Some(BrokenRule::new(
            format!("call id {id:?} is too long"),
            refusal,
        ));
    }
    let arguments = call.pointer("/function/arguments");
    if text(call, "type") == "function" && !arguments.is_some_and(Value::is_string) {
        let param = format!("{place}.function.arguments");
        let message =
            format!("Invalid type for '{param}': expected a string, but got an object instead.");
        let refusal = ProviderRefusal::openai(message, Some(&param), Some("invalid_type"));
        return Some(BrokenRule::new(
            format!("arguments of call {id:?} are no text"),
            refusal,
        ));
    }
    None
}

/// What the provider says of `fault`; `open` are the calls that are open at the same place.
pub(super) fn words(fault: &RequestFault, open: &[&str]) -> ProviderRefusal {
    let at = fault.entry;
    let role = format!("messages.[{at}].role");
    match &fault.rule {
        RequestRule::OpenCall(_) => ProviderRefusal::openai(
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages \
                 responding to each 'tool_call_id'. The following tool_call_ids did not have \
                 response messages: {}",
                open.join(", ")
            ),
            Some(&role),
            None,
        ),
        RequestRule::OrphanOutput(_)
        | RequestRule::MisplacedOutput(_)
        | RequestRule::DuplicateOutput(_) => {
            let message = "Invalid parameter: messages with role 'tool' must be a response to \
                           a preceeding message with 'tool_calls'.";
            ProviderRefusal::openai(message, Some(&role), None)
        }
        RequestRule::RepeatedId(id) => {
            let message = format!("Duplicate value for 'tool_call_id' of '{id}' in message[{at}]");
            ProviderRefusal::openai(message, None, None)
        }
        RequestRule::MissingId => {
            let place = format!("messages[{at}].tool_calls[0].id");
            let message = format!("Missing required parameter: '{place}'.");
            ProviderRefusal::openai(message, Some(&place), Some("missing_required_parameter"))
        }
        RequestRule::NoMessage => {
            let message = "Invalid 'messages': empty array. Expected an array with minimum \
                           length 1, but got an empty array instead.";
            ProviderRefusal::openai(message, Some("messages"), Some("empty_array"))
        }
        other => ProviderRefusal::openai(format!("Invalid value: {other}"), Some("messages"), None),
    }
}
