//! The definitions of tools.

use std::collections::HashSet;

use serde_json::Value;
use trimtab_model::Dialect;

use super::{BrokenRule, entries, text};
use crate::upstream::refusal::ProviderRefusal;

/// How many tools Chat Completions and Responses take.
const MOST: usize = 128;

pub(super) fn judge(body: &Value, dialect: Dialect) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    let mut names = HashSet::new();
    for (at, tool) in entries(body, "tools") {
        let name = name(tool, dialect);
        if name.is_empty() && is_own(tool, dialect) {
            continue;
        }
        if !is_legal(name) {
            let rule = format!("tool {at} has the name {name:?}");
            broken.push(BrokenRule::new(rule, bad_name(at, dialect)));
        }
        if !names.insert(name) && dialect == Dialect::Messages {
            let refusal = ProviderRefusal::anthropic("tools: Tool names must be unique.");
            broken.push(BrokenRule::new(
                format!("two tools are called {name:?}"),
                refusal,
            ));
        }
    }
    let count = entries(body, "tools").count();
    if count > MOST && dialect != Dialect::Messages {
        let message = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {MOST}, but \
             got an array with length {count} instead."
        );
        let refusal =
            ProviderRefusal::openai(message, Some("tools"), Some("array_above_max_length"));
        broken.push(BrokenRule::new(format!("{count} tools"), refusal));
    }
    broken
}

fn name(tool: &Value, dialect: Dialect) -> &str {
    match dialect {
        Dialect::Chat => tool
            .get("function")
            .map_or("", |function| text(function, "name")),
        Dialect::Responses | Dialect::Messages => text(tool, "name"),
    }
}

/// True for a tool that the provider itself carries out, which has no name.
fn is_own(tool: &Value, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Chat => text(tool, "type") != "function",
        Dialect::Responses => !matches!(text(tool, "type"), "function" | "custom"),
        Dialect::Messages => !matches!(text(tool, "type"), "" | "custom"),
    }
}

fn is_legal(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=128).contains(&name.len()) && name.bytes().all(legal)
}

fn bad_name(at: usize, dialect: Dialect) -> ProviderRefusal {
    let openai = |place: String| {
        let message = format!(
            "Invalid '{place}': string does not match pattern. Expected a string that matches \
             the pattern '^[a-zA-Z0-9_-]+$'."
        );
        ProviderRefusal::openai(message, Some(&place), Some("invalid_value"))
    };
    match dialect {
        Dialect::Chat => openai(format!("tools[{at}].function.name")),
        Dialect::Responses => openai(format!("tools[{at}].name")),
        Dialect::Messages => ProviderRefusal::anthropic(format!(
            "tools.{at}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        )),
    }
}
