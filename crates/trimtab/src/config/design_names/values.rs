//! Converts values under the names of a design to our settings.

use toml::{Table, Value};

use super::super::keys::float;
use super::super::layered_settings::LayeredSettings;
use super::table::ARCHIVE;
use super::{DerivedValues, NamedValues};

/// The messages that `archive` keeps if its limit in tokens is 0.
const RECENT_MESSAGES: i64 = 5;
/// The reserve of `archive` if it is set to 0.
const RESERVE: i64 = 16_384;

/// The limit of an answer of `turns` if it is set to 0.
const ANSWER_LIMIT: i64 = 8_192;

/// A non-negative integer.
pub(super) fn number(value: &Value) -> Option<i64> {
    value.as_integer().filter(|number| *number >= 0)
}

/// One setting.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the functions of the table return it as it is"
)]
fn set(setting: &'static str, value: impl Into<Value>) -> DerivedValues {
    Some(vec![(setting, value.into())])
}

/// No setting: the value says nothing here.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the functions of the table return it as it is"
)]
fn nothing() -> DerivedValues {
    Some(Vec::new())
}

fn is_null(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim() == "null")
}

/// The limit of an answer of `turns`. If the window is not set, the design uses four times that.
pub(super) fn answer_limit(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    let tokens = number(value)?;
    let tokens = if tokens == 0 { ANSWER_LIMIT } else { tokens };
    let mut made = vec![("max_output", Value::from(tokens))];
    if settings.get("window").is_none() {
        made.push(("window", Value::from(tokens.saturating_mul(4))));
    }
    Some(made)
}

/// The window of `turns`; 0 sets nothing.
pub(super) fn window(_: &LayeredSettings, value: &Value) -> DerivedValues {
    match number(value)? {
        0 => nothing(),
        tokens => set("window", tokens),
    }
}

/// A number of the current shape. It sets nothing if outputs are shown in full.
pub(super) fn shown(
    settings: &LayeredSettings,
    setting: &'static str,
    value: &Value,
) -> DerivedValues {
    let shape = settings.get("views.default.shape").and_then(Value::as_str);
    let figure = number(value)?;
    if shape == Some("whole") {
        return nothing();
    }
    set(setting, figure)
}

fn whole() -> (&'static str, Value) {
    let shape = Table::from_iter([("shape".to_owned(), Value::from("whole"))]);
    ("views.default", Value::Table(shape))
}

/// Whether outputs are cut and trimmed at all.
pub(super) fn cache_switch(_: &LayeredSettings, value: &Value) -> DerivedValues {
    if value.as_bool()? {
        return nothing();
    }
    let disabled = ("ageing.placeholder.enabled", Value::from(false));
    Some(vec![whole(), disabled])
}

/// The limit of all outputs together in tokens; null for a share of the window.
pub(super) fn output_budget(_: &LayeredSettings, value: &Value) -> DerivedValues {
    if is_null(value) {
        return nothing();
    }
    set("ageing.placeholder.budget.tokens", number(value)?)
}

/// The instructions for retained text; null for none.
pub(super) fn without_null(_: &LayeredSettings, value: &Value) -> DerivedValues {
    let text = value.as_str()?;
    let text = if is_null(value) { "" } else { text };
    set("compaction.prompt.retain", text)
}

/// A factor such as 1.2 as percent.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a factor between 1 and 100 is a percentage below 10,001"
)]
pub(super) fn factor(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    let factor = float(value).filter(|factor| (1.0..=100.0).contains(factor))?;
    let percent = Value::from((factor * 100.0).round() as i64);
    shown(settings, "views.default.buffer_percent", &percent)
}

/// The unit in which outputs are measured, or that they are not cut.
pub(super) fn policy(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    let now = |field: &str| settings.get(&format!("views.default.{field}"));
    let figure = |field: &str| now(field).and_then(Value::as_integer);
    match value.as_str()?.trim() {
        "none" => Some(vec![whole()]),
        "tokens" => set("views.default.unit", "tokens_by_chars"),
        "bytes" => {
            let mut made = vec![("views.default.unit", Value::from("bytes"))];
            // The limit is converted once. A second source with the same value must not multiply it
            // again.
            let is_tokens = now("unit").and_then(Value::as_str) != Some("bytes");
            if let (Some(max), Some(per_token), true) =
                (figure("max"), figure("per_token"), is_tokens)
            {
                let bytes = max.saturating_mul(per_token);
                made.push(("views.default.max", Value::from(bytes)));
            }
            Some(made)
        }
        _ => None,
    }
}

/// The limit in bytes. It sets nothing while outputs are measured in tokens.
pub(super) fn bytes_limit(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    let unit = settings.get("views.default.unit").and_then(Value::as_str);
    let bytes = number(value)?;
    match unit {
        Some("bytes") => set("views.default.max", bytes),
        _ => nothing(),
    }
}

/// The keep rules, with another value of a field in the rule called `rule`.
pub(super) fn kept(
    settings: &LayeredSettings,
    rule: &str,
    field: &str,
    value: &Value,
) -> DerivedValues {
    number(value)?;
    Some(with_field(settings, rule, field, value))
}

/// The same for a list of texts: `["a", "b"]`, or `a,b` as users type it.
pub(super) fn kept_texts(
    settings: &LayeredSettings,
    rule: &str,
    field: &str,
    value: &Value,
) -> DerivedValues {
    let texts: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
    let quote = |found: char| matches!(found, '"' | '\'') || found.is_whitespace();
    let texts = texts?;
    // A variable holds the list as one text.
    let split = texts.iter().flat_map(|text| {
        let inner = text.trim().trim_start_matches('[').trim_end_matches(']');
        inner.split(',').map(|name| name.trim_matches(quote))
    });
    let split: Vec<Value> = split
        .filter(|name| !name.is_empty())
        .map(Value::from)
        .collect();
    Some(with_field(settings, rule, field, &Value::Array(split)))
}

fn with_field(settings: &LayeredSettings, rule: &str, field: &str, value: &Value) -> NamedValues {
    let mut rules = rules(settings);
    for entry in &mut rules {
        if is_rule(entry, rule)
            && let Some(table) = entry.as_table_mut()
        {
            table.insert(field.to_owned(), value.clone());
        }
    }
    vec![("compaction.keep", Value::Array(rules))]
}

fn rules(settings: &LayeredSettings) -> Vec<Value> {
    let rules = settings.get("compaction.keep").and_then(Value::as_array);
    rules.cloned().unwrap_or_default()
}

fn is_rule(entry: &Value, rule: &str) -> bool {
    entry.get("keep").and_then(Value::as_str) == Some(rule)
}

/// The keep rules, with this rule for the newest messages instead of the current one.
fn recent(settings: &LayeredSettings, rule: &str, field: &str, figure: i64) -> NamedValues {
    let is_recent =
        |entry: &Value| is_rule(entry, "recent_tokens") || is_rule(entry, "recent_messages");
    let mut rules = rules(settings);
    rules.retain(|entry| !is_recent(entry));
    let new = Table::from_iter([
        ("keep".to_owned(), Value::from(rule)),
        (field.to_owned(), Value::from(figure)),
    ]);
    rules.insert(0, Value::Table(new));
    vec![("compaction.keep", Value::Array(rules))]
}

/// The tokens of the newest messages that are kept; 0 for a number of messages.
pub(super) fn kept_tokens(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    Some(match number(value)? {
        0 => recent(settings, "recent_messages", "messages", RECENT_MESSAGES),
        tokens => recent(settings, "recent_tokens", "tokens", tokens),
    })
}

/// The number of messages that are kept, unless the limit is in tokens.
pub(super) fn kept_messages(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    let messages = match number(value)? {
        0 => RECENT_MESSAGES,
        messages => messages,
    };
    // The limit in tokens wins, as in the design.
    if rules(settings)
        .iter()
        .any(|entry| is_rule(entry, "recent_tokens"))
    {
        return nothing();
    }
    Some(recent(settings, "recent_messages", "messages", messages))
}

/// The conditions, with another figure of the one that begins like the entry `at` of `order`.
pub(super) fn figure(
    settings: &LayeredSettings,
    order: &[&str],
    at: usize,
    value: &Value,
) -> DerivedValues {
    Some(condition(settings, order, at, &number(value)?.to_string()))
}

/// The same with a figure as text. A new condition gets the place that `order` says.
pub(super) fn condition(
    settings: &LayeredSettings,
    order: &[&str],
    at: usize,
    figure: &str,
) -> NamedValues {
    let mut when = without_condition(settings, order, at);
    let place = |entry: &Value| {
        let text = entry.as_str().unwrap_or_default();
        // `log >= window - ` is tried before `log >= `, which it begins with.
        order.iter().position(|start| text.starts_with(start))
    };
    // The order matters: with the rule `first_known`, the first condition that can be evaluated
    // decides.
    let behind = when.iter().position(|entry| place(entry) > Some(at));
    let start = order.get(at).copied().unwrap_or_default();
    let entry = Value::from(format!("{start}{figure}"));
    when.insert(behind.unwrap_or(when.len()), entry);
    vec![("compaction.when", Value::Array(when))]
}

fn without_condition(settings: &LayeredSettings, order: &[&str], at: usize) -> Vec<Value> {
    let when = settings.get("compaction.when").and_then(Value::as_array);
    let is_it = |entry: &Value| {
        let text = entry.as_str().unwrap_or_default();
        order.iter().position(|start| text.starts_with(start)) == Some(at)
    };
    let others = when.into_iter().flatten().filter(|entry| !is_it(entry));
    others.cloned().collect()
}

/// The share of the window that usage must reach.
pub(super) fn share(settings: &LayeredSettings, order: &[&str], value: &Value) -> DerivedValues {
    let share = float(value).filter(|share| *share > 0.0 && *share <= 1.0)?;
    Some(condition(settings, order, 0, &format!("{share} x window")))
}

/// The tokens at which `archive` compacts if the window is unknown; 0 for no such condition.
pub(super) fn auto_tokens(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    match number(value)? {
        0 => set("compaction.when", without_condition(settings, ARCHIVE, 1)),
        _ => figure(settings, ARCHIVE, 1, value),
    }
}

/// The tokens of the window that are reserved for the answer.
pub(super) fn reserve(settings: &LayeredSettings, value: &Value) -> DerivedValues {
    let reserve = match number(value)? {
        0 => RESERVE,
        reserve => reserve,
    };
    figure(settings, ARCHIVE, 0, &Value::from(reserve))
}

/// The number of outputs that stay visible; 0 to archive none.
pub(super) fn archived(_: &LayeredSettings, value: &Value) -> DerivedValues {
    Some(match number(value)? {
        0 => vec![
            ("ageing.archive.enabled", Value::from(false)),
            ("compaction.digest.enabled", Value::from(false)),
        ],
        cutoff => vec![
            ("ageing.archive.cutoff", Value::from(cutoff)),
            ("compaction.digest.cutoff", Value::from(cutoff)),
        ],
    })
}
