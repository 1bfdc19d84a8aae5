//! Signed thoughts that come back.

use std::collections::HashMap;

use serde_json::Value;
use trimtab_model::Dialect;

use super::ReceivedRequest;
use super::canonical::{CanonicalPrompt, SealClaim};
use super::model_rules::{BINDING_BETA, ModelRules};
use super::refusal::ProviderRefusal;
use super::rules::{BrokenRule, entries, text};
use super::seal::{SealVerdict, verdicts};

/// Judges the thoughts of a request; `thoughts` are those that calls and items came with,
/// empty for calls that came while thinking was disabled. `always` is true if every model of
/// Messages binds its reasoning; the models of Responses never do.
pub(super) fn judge(
    body: &Value,
    canonical: &CanonicalPrompt,
    received: &ReceivedRequest,
    thoughts: &HashMap<String, String>,
    always: bool,
) -> Vec<BrokenRule> {
    let messages = received.dialect == Some(Dialect::Messages);
    let has_beta = received.has_beta(BINDING_BETA);
    let behaviour = body.pointer("/thinking/block_binding/prefix_mismatch_behavior");
    let drops = messages && has_beta && behaviour.is_some_and(|value| value == "drop_block");
    // No model that binds its reasoning has this mode.
    let enabled = body.pointer("/thinking/type") == Some(&Value::from("enabled"));
    let binds = always || ModelRules::of(text(body, "model")).binds;
    let binds = messages && binds && !enabled;
    let mut broken = Vec::new();
    for (claim, verdict) in canonical.claims.iter().zip(verdicts(&canonical.claims)) {
        let refusal = match (verdict, messages) {
            (SealVerdict::Valid, _) => continue,
            (SealVerdict::Moved, _) if drops || !binds => continue,
            (SealVerdict::Moved, _) => moved(claim, has_beta),
            (SealVerdict::Forged, true) => forged(claim),
            (SealVerdict::Forged, false) => unverified(claim),
        };
        let rule = format!("the seal of {} does not fit", claim.path);
        broken.push(BrokenRule::new(rule, refusal));
    }
    if messages {
        broken.extend(enabled.then(|| mixed_loop(body, thoughts)).flatten());
    } else {
        broken.extend(missing(body, thoughts));
    }
    broken
}

fn forged(claim: &SealClaim) -> ProviderRefusal {
    ProviderRefusal::anthropic(format!(
        "{}: Invalid `signature` in `thinking` block",
        claim.path
    ))
}

fn moved(claim: &SealClaim, has_beta: bool) -> ProviderRefusal {
    let mut message = forged(claim).message();
    message.push_str(
        ". The block is bound to a different conversation. Remove the block, or set \
         `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".",
    );
    if !has_beta {
        message.push_str(" That setting requires the `");
        message.push_str(BINDING_BETA);
        message.push_str("` value in the `anthropic-beta` header.");
    }
    ProviderRefusal::anthropic(message)
}

fn unverified(claim: &SealClaim) -> ProviderRefusal {
    let message = format!(
        "The encrypted content for item {} could not be verified.",
        claim.path
    );
    ProviderRefusal::openai(message, None, Some("invalid_encrypted_content"))
}

/// With thinking enabled, a tool loop has thoughts in all its rounds that came with one, and no
/// round that came while thinking was disabled.
fn mixed_loop(body: &Value, thoughts: &HashMap<String, String>) -> Option<BrokenRule> {
    let messages: Vec<&Value> = entries(body, "messages")
        .map(|(_, message)| message)
        .collect();
    let has_output = |message: &Value| {
        let mut parts = entries(message, "content");
        parts.any(|(_, part)| text(part, "type") == "tool_result")
    };
    let begins_turn = |message: &&Value| text(message, "role") == "user" && !has_output(message);
    let start = messages.iter().rposition(begins_turn).unwrap_or(0);
    let mut open_loop = messages.iter().enumerate().skip(start);
    let (at, found) = open_loop.find_map(|(at, message)| {
        let mut parts = entries(message, "content").map(|(_, part)| part);
        let thought = parts.find_map(|part| thoughts.get(text(part, "id")))?;
        let first = entries(message, "content").next();
        let first = first.map_or("", |(_, part)| text(part, "type"));
        let is_right = !thought.is_empty() && first.ends_with("thinking");
        (!is_right).then_some((at, first))
    })?;
    let refusal = ProviderRefusal::anthropic(format!(
        "messages.{at}.content.0.type: Expected `thinking` or `redacted_thinking`, but found \
         `{found}`. When `thinking` is enabled, a final `assistant` message must start with a \
         thinking block."
    ));
    Some(BrokenRule::new(
        format!("the tool loop mixes rounds with and without thoughts at message {at}"),
        refusal,
    ))
}

/// An item that came with a thought is only taken back with it.
fn missing(body: &Value, thoughts: &HashMap<String, String>) -> Option<BrokenRule> {
    let mut items = entries(body, "input");
    items.find_map(|(_, item)| {
        let id = text(item, "id");
        let thought = thoughts.get(id)?;
        let mut items = entries(body, "input");
        if items.any(|(_, item)| text(item, "id") == thought) {
            return None;
        }
        let refusal = ProviderRefusal::openai(
            format!(
                "Item '{id}' of type '{}' was provided without its required 'reasoning' item: \
                 '{thought}'.",
                text(item, "type")
            ),
            Some("input"),
            None,
        );
        Some(BrokenRule::new(
            format!("item {id:?} without its thought"),
            refusal,
        ))
    })
}
