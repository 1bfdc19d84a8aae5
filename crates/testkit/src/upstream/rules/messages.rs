//! The rules of Messages.

use serde_json::Value;
use trimtab_wire::validate::{RequestFault, RequestRule};

use super::{BrokenRule, entries, text};
use crate::upstream::ReceivedRequest;
use crate::upstream::refusal::ProviderRefusal;

pub(super) fn judge(body: &Value, received: &ReceivedRequest, prefill: bool) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    let mut note = |rule: &str, message: String| {
        broken.push(BrokenRule::new(rule, ProviderRefusal::anthropic(message)));
    };
    if received.header("anthropic-version").is_none() {
        let message = "anthropic-version: header is required";
        note("no anthropic-version", message.to_owned());
    }
    let counting = received.path.contains("count_tokens");
    let required = ["model", "max_tokens"].into_iter();
    for name in required.filter(|name| !(counting && *name == "max_tokens")) {
        if body.get(name).is_none_or(Value::is_null) {
            note(
                &format!("there is no {name}"),
                format!("{name}: Field required"),
            );
        }
    }
    if body.get("max_tokens").and_then(Value::as_u64) == Some(0) {
        let message = "max_tokens: Input should be greater than or equal to 1";
        note("max_tokens is 0", message.to_owned());
    }
    if let Some(message) = thinking(body) {
        note("the thinking budget is too large", message);
    }
    for (at, message) in entries(body, "messages") {
        let role = text(message, "role");
        if !matches!(role, "user" | "assistant" | "system") {
            let broken = format!("message {at} has the role {role:?}");
            note(&broken, bad_role(role));
        }
    }
    let last = entries(body, "messages").last();
    if last.is_some_and(|(_, message)| text(message, "role") == "assistant") && !prefill {
        let message = "This model does not support assistant message prefill. The conversation \
                       must end with a user message.";
        note("the model speaks last", message.to_owned());
    }
    broken
}

fn bad_role(role: &str) -> String {
    format!(
        "messages: Unexpected role \"{role}\". The Messages API accepts a top-level `system` \
         parameter, not \"{role}\" as an input message role."
    )
}

fn thinking(body: &Value) -> Option<String> {
    let budget = body.pointer("/thinking/budget_tokens")?.as_u64()?;
    let most = body.get("max_tokens")?.as_u64()?;
    let message = "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult \
                   our documentation at https://docs.claude.com/en/docs/build-with-claude/\
                   extended-thinking#max-tokens-and-context-window-size";
    (budget >= most).then(|| message.to_owned())
}

/// What the provider says of `fault`; `open` are the calls that are open at the same place.
pub(super) fn words(fault: &RequestFault, open: &[&str], body: &Value) -> ProviderRefusal {
    let at = fault.entry;
    let output = |id: &str| place(body, at, "tool_use_id", id);
    let call = |id: &str| place(body, at, "id", id);
    ProviderRefusal::anthropic(match &fault.rule {
        RequestRule::OpenCall(id) => format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately \
             after: {}. Each `tool_use` block must have a corresponding `tool_result` block in \
             the next message.",
            asked_in(body, at, id),
            open.join(", ")
        ),
        RequestRule::OrphanOutput(id) => format!(
            "{}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each \
             `tool_result` block must have a corresponding `tool_use` block in the previous \
             message.",
            output(id)
        ),
        RequestRule::DuplicateOutput(id) => format!(
            "{}: each tool_use must have a single result. Found multiple `tool_result` blocks \
             with id: {id}",
            output(id)
        ),
        RequestRule::MisplacedOutput(_) => {
            format!("messages.{at}: `tool_result` blocks can only be in `user` messages")
        }
        RequestRule::MisplacedCall(_) => {
            format!("messages.{at}: `tool_use` blocks can only be in `assistant` messages")
        }
        RequestRule::OutputNotFirst(id) => format!(
            "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately \
             after: {id}. Each `tool_use` block must have a corresponding `tool_result` block \
             in the next message.",
            at.saturating_sub(1)
        ),
        RequestRule::RepeatedId(id) => format!("{}: `tool_use` ids must be unique", call(id)),
        RequestRule::MalformedId(id) => format!(
            "{}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            call(id)
        ),
        RequestRule::MissingId => format!("messages.{at}.content.0.tool_use.id: Field required"),
        RequestRule::EmptyMessage => format!(
            "messages.{at}: all messages must have non-empty content except for the optional \
             final assistant message"
        ),
        RequestRule::DanglingReasoning => {
            format!("messages.{at}: The final block in an assistant message cannot be `thinking`.")
        }
        RequestRule::BlankPart => "messages: text content blocks must be non-empty".to_owned(),
        RequestRule::UserNotFirst if role_of(body, at) == "system" => bad_role("system"),
        RequestRule::UserNotFirst => {
            "messages: first message must use the \"user\" role".to_owned()
        }
        RequestRule::NoMessage => "messages: at least one message is required".to_owned(),
        RequestRule::TooManyMarkers(count) => {
            format!("A maximum of 4 blocks with cache_control may be provided. Found {count}.")
        }
        RequestRule::MisplacedMarker => {
            format!("messages.{at}.content.0.cache_control: Extra inputs are not permitted")
        }
        other => format!("messages.{at}: {other}"),
    })
}

fn role_of(body: &Value, at: usize) -> &str {
    let message = entries(body, "messages").nth(at);
    message.map_or("", |(_, message)| text(message, "role"))
}

/// Where in message `at` the part is whose field `name` is `id`.
fn place(body: &Value, at: usize, name: &str, id: &str) -> String {
    let message = entries(body, "messages").nth(at);
    let mut parts = message
        .into_iter()
        .flat_map(|(_, message)| entries(message, "content"));
    let part = parts.find(|(_, part)| text(part, name) == id);
    format!("messages.{at}.content.{}", part.map_or(0, |(part, _)| part))
}

/// The last message before `at` that asks with `id`.
fn asked_in(body: &Value, at: usize, id: &str) -> usize {
    let asks =
        |message: &Value| entries(message, "content").any(|(_, part)| text(part, "id") == id);
    let asking = entries(body, "messages")
        .take(at)
        .filter(|(_, message)| asks(message));
    asking.last().map_or(at, |(index, _)| index)
}
