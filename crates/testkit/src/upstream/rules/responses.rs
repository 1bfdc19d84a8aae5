//! The rules of Responses.

use serde_json::Value;
use trimtab_wire::validate::{RequestFault, RequestRule};

use super::chat::too_long;
use super::{BrokenRule, entries, text};
use crate::upstream::refusal::ProviderRefusal;

/// Longest id of a call, in bytes.
const LONGEST_ID: usize = 64;

/// Most items of an input.
const MOST_ITEMS: usize = 16_384;

pub(super) fn judge(body: &Value) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    for name in ["model", "input"] {
        if body.get(name).is_none_or(Value::is_null) {
            let message = format!("Missing required parameter: '{name}'.");
            let code = Some("missing_required_parameter");
            let refusal = ProviderRefusal::openai(message, Some(name), code);
            broken.push(BrokenRule::new(format!("there is no {name}"), refusal));
        }
    }
    broken.extend(previous(body));
    let count = entries(body, "input").count();
    if count > MOST_ITEMS {
        let message = format!(
            "Invalid 'input': array too long. Expected an array with maximum length \
             {MOST_ITEMS}, but got an array with length {count} instead."
        );
        let refusal =
            ProviderRefusal::openai(message, Some("input"), Some("array_above_max_length"));
        broken.push(BrokenRule::new(format!("{count} items"), refusal));
    }
    let stored = body.get("store") != Some(&Value::Bool(false));
    for (at, item) in entries(body, "input") {
        broken.extend(judge_item(at, item, stored));
    }
    broken
}

/// Nothing is kept between two requests.
fn previous(body: &Value) -> Option<BrokenRule> {
    let id = body.get("previous_response_id").and_then(Value::as_str)?;
    let message = format!("Previous response with id '{id}' not found.");
    let param = Some("previous_response_id");
    let refusal = ProviderRefusal::openai(message, param, Some("previous_response_not_found"));
    Some(BrokenRule::new(
        format!("there is no response {id:?}"),
        refusal,
    ))
}

fn judge_item(at: usize, item: &Value, stored: bool) -> Option<BrokenRule> {
    let id = text(item, "call_id");
    if id.len() > LONGEST_ID {
        let refusal = too_long(&format!("input[{at}].call_id"), LONGEST_ID, id.len());
        return Some(BrokenRule::new(
            format!("call id {id:?} is too long"),
            refusal,
        ));
    }
    let role = text(item, "role");
    if !matches!(role, "" | "assistant" | "system" | "developer" | "user") {
        let message = format!(
            "Invalid value: '{role}'. Supported values are: 'assistant', 'system', \
             'developer', and 'user'."
        );
        let param = format!("input[{at}].role");
        let refusal = ProviderRefusal::openai(message, Some(&param), Some("invalid_value"));
        return Some(BrokenRule::new(
            format!("item {at} has the role {role:?}"),
            refusal,
        ));
    }
    let bare = item.get("encrypted_content").is_none_or(Value::is_null);
    if text(item, "type") == "reasoning" && bare && !stored {
        let message = format!(
            "Item with id '{}' not found. Items are not persisted when `store` is set to \
             false. Try again with `store` set to true, or remove this item from your input.",
            text(item, "id")
        );
        let refusal = ProviderRefusal::openai(message, Some("input"), None);
        let refusal = refusal.with(404, "invalid_request_error");
        return Some(BrokenRule::new(
            format!("item {at} is a thought without content"),
            refusal,
        ));
    }
    None
}

/// What the provider says of `fault`.
pub(super) fn words(fault: &RequestFault, body: &Value) -> ProviderRefusal {
    let input = |message: String| ProviderRefusal::openai(message, Some("input"), None);
    match &fault.rule {
        RequestRule::OpenCall(id) => input(format!("No tool output found for function call {id}.")),
        RequestRule::OrphanOutput(id)
        | RequestRule::MisplacedOutput(id)
        | RequestRule::DuplicateOutput(id) => input(format!(
            "No tool call found for function call output with call_id {id}."
        )),
        RequestRule::DanglingReasoning => {
            let entry = entries(body, "input").nth(fault.entry);
            let id = entry.map_or("", |(_, item)| text(item, "id"));
            input(format!(
                "Item '{id}' of type 'reasoning' was provided without its required following \
                 item."
            ))
        }
        RequestRule::MissingId => {
            let place = format!("input[{}].call_id", fault.entry);
            let message = format!("Missing required parameter: '{place}'.");
            ProviderRefusal::openai(message, Some(&place), Some("missing_required_parameter"))
        }
        RequestRule::RepeatedId(id) => input(format!("Duplicate call_id found in input: {id}.")),
        other => input(format!("Invalid 'input[{}]': {other}", fault.entry)),
    }
}
