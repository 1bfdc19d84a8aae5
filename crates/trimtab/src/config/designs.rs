//! The environment names that design `checkpoint` gave its settings.

use toml::Value;

use super::Source;
use super::layer::{Laid, Set};

/// A name of that design, and what it is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The environment variable.
    pub variable: &'static str,
    /// What it is here, in words.
    pub setting: &'static str,
}

/// The names, in the order in which they are applied.
pub const ALIASES: &[Alias] = &[
    alias(
        "TOOL_OUTPUT_TRUNCATION_POLICY",
        "views.default.unit (`tokens_by_chars` or `bytes`), or the shape `whole` for `none`",
    ),
    alias("TOOL_OUTPUT_MAX_TOKENS", "views.default.max"),
    alias(
        "TOOL_OUTPUT_SERIALIZATION_BUFFER",
        "views.default.buffer_percent (1.2 is 120)",
    ),
    alias("APPROX_CHARS_PER_TOKEN", "views.default.per_token"),
    alias(
        "COMPACT_USER_MESSAGE_MAX_TOKENS",
        "tokens of `user_messages` in compaction.keep",
    ),
    alias(
        "PROTECTED_TOOLS",
        "tools of `protected_tools` in compaction.keep, separated by commas",
    ),
    alias("COMPACT_SUMMARIZATION_PROMPT", "compaction.prompt.summary"),
    alias("COMPACT_SUMMARY_PREFIX", "compaction.placement.prefix"),
    alias("CONTEXT_OVERFLOW_MAX_RETRIES", "recovery.retries"),
    alias(
        "MEMORY_COMPRESSION_THRESHOLD",
        "the figure of `log > N` in compaction.when",
    ),
    alias(
        "MEMORY_SHORT_TERM_SIZE",
        "the figure of `messages >= N` in compaction.when",
    ),
];

const fn alias(variable: &'static str, setting: &'static str) -> Alias {
    Alias { variable, setting }
}

/// What a variable of that design sets, given the settings so far; none if it is not one of
/// its names, an error in words if its value is nothing that it can have.
pub(super) fn set(laid: &Laid, variable: &str, text: &str) -> Option<Result<Set, &'static str>> {
    let number = || {
        text.trim()
            .parse::<i64>()
            .ok()
            .filter(|number| *number >= 0)
    };
    let (name, value) = match variable {
        "TOOL_OUTPUT_TRUNCATION_POLICY" => return Some(policy(variable, text)),
        "TOOL_OUTPUT_MAX_TOKENS" => ("views.default.max", number().map(Value::from)),
        "TOOL_OUTPUT_SERIALIZATION_BUFFER" => ("views.default.buffer_percent", percent(text)),
        "APPROX_CHARS_PER_TOKEN" => {
            let some = number().filter(|number| *number > 0);
            ("views.default.per_token", some.map(Value::from))
        }
        "COMPACT_USER_MESSAGE_MAX_TOKENS" => {
            let tokens = number().map(Value::from);
            (
                "compaction.keep",
                tokens.map(|tokens| kept(laid, "user_messages", "tokens", &tokens)),
            )
        }
        "PROTECTED_TOOLS" => {
            let tools: Vec<Value> = list(text).map(Value::from).collect();
            (
                "compaction.keep",
                Some(kept(laid, "protected_tools", "tools", &Value::Array(tools))),
            )
        }
        "COMPACT_SUMMARIZATION_PROMPT" => ("compaction.prompt.summary", Some(Value::from(text))),
        "COMPACT_SUMMARY_PREFIX" => ("compaction.placement.prefix", Some(Value::from(text))),
        "CONTEXT_OVERFLOW_MAX_RETRIES" => ("recovery.retries", number().map(Value::from)),
        "MEMORY_COMPRESSION_THRESHOLD" => (
            "compaction.when",
            number().map(|number| condition(laid, "log > ", number)),
        ),
        "MEMORY_SHORT_TERM_SIZE" => (
            "compaction.when",
            number().map(|number| condition(laid, "messages >= ", number)),
        ),
        _ => return None,
    };
    Some(
        value
            .map(|value| of(variable, name, value))
            .ok_or("a number from 0"),
    )
}

fn of(variable: &str, name: &str, value: Value) -> Set {
    Set {
        name: name.to_owned(),
        value,
        source: Source::Environment(variable.to_owned()),
        behind: false,
    }
}

fn policy(variable: &str, text: &str) -> Result<Set, &'static str> {
    let unit = match text.trim() {
        "none" => {
            let whole = toml::Table::from_iter([("shape".to_owned(), Value::from("whole"))]);
            return Ok(of(variable, "views.default", Value::Table(whole)));
        }
        "bytes" => "bytes",
        "tokens" => "tokens_by_chars",
        _ => return Err("none, bytes or tokens"),
    };
    Ok(of(variable, "views.default.unit", Value::from(unit)))
}

/// A factor such as 1.2 as percent.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a factor between 1 and 100 is a percentage below 10,001"
)]
fn percent(text: &str) -> Option<Value> {
    let factor: f64 = text.trim().parse().ok()?;
    let usual = (1.0..=100.0).contains(&factor);
    usual.then(|| Value::from((factor * 100.0).round() as i64))
}

/// The elements of `[a, "b"]`, or of `a,b`.
fn list(text: &str) -> impl Iterator<Item = String> {
    let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
    let quote = |found: char| matches!(found, '"' | '\'') || found.is_whitespace();
    let names = inner
        .split(',')
        .map(move |name| name.trim_matches(quote).to_owned());
    names
        .filter(|name| !name.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
}

/// What is kept, with another value of a field in the rule called `rule`.
fn kept(laid: &Laid, rule: &str, field: &str, value: &Value) -> Value {
    let mut rules = laid.get("compaction.keep").cloned();
    let list = rules.as_mut().and_then(Value::as_array_mut);
    for entry in list.into_iter().flatten() {
        if entry.get("keep").and_then(Value::as_str) == Some(rule)
            && let Some(table) = entry.as_table_mut()
        {
            table.insert(field.to_owned(), value.clone());
        }
    }
    rules.unwrap_or_else(|| Value::Array(Vec::new()))
}

/// The conditions, with another figure in the one that starts with `start`.
fn condition(laid: &Laid, start: &str, number: i64) -> Value {
    let mut when = laid.get("compaction.when").cloned();
    let list = when.as_mut().and_then(Value::as_array_mut);
    for entry in list.into_iter().flatten() {
        if entry.as_str().is_some_and(|text| text.starts_with(start)) {
            *entry = Value::from(format!("{start}{number}"));
        }
    }
    when.unwrap_or_else(|| Value::Array(Vec::new()))
}
