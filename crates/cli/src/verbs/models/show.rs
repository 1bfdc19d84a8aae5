//! `trimtab models show`: everything that is known about one model.

use std::io::Write;

use trimtab_wire::catalogue::{CacheKind, ModelInfo, ModelMatch, Prices};

use crate::catalogue;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::visible::visible;
use crate::ui::{Terminal, number, style};

pub(super) fn run(name: &str, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let catalogue = catalogue::load()?;
    let hint = "list the known ones with trimtab models list, or read a newer registry with \
                trimtab models update FILE";
    let found = catalogue::find(&catalogue, name, hint)?;
    if common.json {
        terminal.json(&found.model)?;
        return Ok(());
    }
    let (strong, dim) = (style::STRONG, style::DIM);
    let how = matched(found.matched);
    writeln!(
        terminal.out(),
        "{strong}{}{strong:#} {dim}{how}{dim:#}",
        visible(&found.model.id)
    )?;
    for (label, value) in facts(&found.model) {
        writeln!(terminal.out(), "  {label:<18} {}", visible(&value))?;
    }
    Ok(())
}

/// How the requested name matched this model.
fn matched(how: ModelMatch) -> &'static str {
    match how {
        ModelMatch::Exact => "",
        ModelMatch::Undated => "(found without its date)",
        ModelMatch::Provider => "(found by its name without a provider)",
        ModelMatch::Alias => "(found by an alias)",
        ModelMatch::Family => "(the closest of its family)",
        ModelMatch::Assumed => "(not known; assumed to be like this one, the newest of its family)",
    }
}

fn facts(model: &ModelInfo) -> Vec<(String, String)> {
    let tokens = |tokens: u64| format!("{} tokens", number::grouped(tokens));
    let mut facts = vec![
        ("provider".to_owned(), model.provider.clone()),
        ("window".to_owned(), tokens(model.window)),
        ("longest prompt".to_owned(), tokens(model.max_input)),
    ];
    let mut fact = |label: &str, value: String| facts.push((label.to_owned(), value));
    if let Some(answer) = model.max_output {
        fact("longest answer", tokens(answer));
    }
    if let Some(prices) = &model.prices {
        fact("prices", price_line(prices));
    }
    for tier in &model.tiers {
        let label = format!("above {}", number::short(tier.above));
        fact(&label, price_line(&tier.prices));
    }
    fact("prompt cache", cache_line(model));
    if let Some(vocabulary) = &model.vocabulary {
        fact("vocabulary", vocabulary.clone());
    }
    if let Some(retires) = &model.retires {
        fact("retires", retires.clone());
    }
    for rule in rules(model) {
        fact("rule", rule.to_owned());
    }
    facts
}

fn price_line(prices: &Prices) -> String {
    format!(
        "${} in, ${} out, ${} cache read, ${} cache write, per million tokens",
        prices.input, prices.output, prices.cache_read, prices.cache_write
    )
}

fn cache_line(model: &ModelInfo) -> String {
    let kind = match model.cache.kind {
        CacheKind::None => return "none known".to_owned(),
        CacheKind::Automatic => "automatic",
        CacheKind::Marked => "by markers in the request",
    };
    let minimum = model
        .cache
        .minimum
        .map(|tokens| format!("from {} tokens", number::grouped(tokens)));
    let lifetime = model
        .cache
        .lifetime
        .map(|kept| format!("kept {} s", kept.as_secs()));
    let facts = [Some(kind.to_owned()), minimum, lifetime];
    facts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn rules(model: &ModelInfo) -> Vec<&'static str> {
    let rules = &model.rules;
    let rule_if = |holds: bool, rule: &'static str| holds.then_some(rule);
    [
        rule_if(
            rules.bound_reasoning,
            "reasoning is valid only with the messages before it",
        ),
        rule_if(
            rules.no_chat_tools,
            "Chat Completions takes tools only with reasoning switched off",
        ),
        rule_if(
            rules.returns_reasoning,
            "reasoning must be sent back together with its calls",
        ),
        rule_if(
            rules.answer_may_overrun,
            "an answer that does not fit stops when the window is full",
        ),
        rule_if(
            rules.silent_overflow,
            "a prompt that is too long is truncated without an error",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
