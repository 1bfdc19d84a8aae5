//! Budgets and triggers.

use serde_json::{Value, json};
use trimtab::engine::budget::{self, LimitSource, Regions};
use trimtab::engine::compaction::keep;
use trimtab::engine::trigger::{Comparison, Metric, Rule, Situation, Threshold, Trigger, Triggers};
use trimtab::engine::view::trim::OutputBudget;
use trimtab::model::Usage;
use trimtab::model::estimate::Heuristic;

use super::messages;

pub(super) fn run(op: &str, input: &Value) -> Option<Value> {
    Some(match op {
        "context_budget" => {
            let tokens = input["contextBudgetTokens"].as_u64();
            let window = figure(input, "context_window").or(figure(input, "max_input_tokens"));
            let budget = OutputBudget {
                tokens,
                ..OutputBudget::default()
            };
            json!({"tokens": budget.resolve(window)})
        }
        "is_over_context_budget" => json!({"result": is_over(input)}),
        "resolve_context_window" => {
            let (window, answer) = (figure(input, "context_window"), figure(input, "max_tokens"));
            json!({"context_window": budget::window_or_guess(window, answer)})
        }
        "effective_token_limit" => effective_limit(input),
        "effective_keep_recent_tokens" => {
            let keep = figure(input, "keep_recent_tokens").unwrap_or(0);
            json!({"tokens": budget::effective_keep(keep, limit(input).map(|(limit, _)| limit))})
        }
        "split_by_token_budget" => {
            let tokens = input["budget"]
                .as_i64()
                .and_then(|n| u64::try_from(n).ok())
                .unwrap_or(0);
            let log = messages(&input["messages"]);
            let split = keep::recent_by_tokens(&log, tokens, |m| Heuristic::ARCHIVE.message(m));
            json!({ "split_index": split })
        }
        "should_compact_usage" => refs_fires(input),
        "should_compress_manager" => checkpoint_fires(input),
        "should_summarize" => json!({"result": turns_fires(input)}),
        "should_compact_limits" => json!({"result": archive_fires(input)}),
        _ => return None,
    })
}

/// A figure that is given; zero and less mean that it is not.
fn figure(input: &Value, key: &str) -> Option<u64> {
    input[key]
        .as_i64()
        .and_then(|figure| u64::try_from(figure).ok())
        .filter(|n| *n > 0)
}

fn is_over(input: &Value) -> bool {
    let tools = input["tools"].as_array().cloned().unwrap_or_default();
    let regions = Regions {
        log: Heuristic::TURNS.messages(&messages(&input["messages"])),
        tools: Heuristic::TURNS.tools(&tools),
        max_output: figure(input, "max_tokens").unwrap_or(0),
        ..Regions::default()
    };
    regions.is_over(input["context_window"].as_u64().unwrap())
}

fn limit(input: &Value) -> Option<(u64, LimitSource)> {
    let reserve = figure(input, "reserve_tokens").unwrap_or(0);
    budget::effective_limit(
        figure(input, "context_window"),
        reserve,
        figure(input, "max_tokens"),
    )
}

fn effective_limit(input: &Value) -> Value {
    match limit(input) {
        Some((limit, LimitSource::Window)) => json!({"limit": limit, "source": "context_window"}),
        Some((limit, LimitSource::MaxTokens)) => json!({"limit": limit, "source": "max_tokens"}),
        None => json!({"limit": 0, "source": "none"}),
    }
}

fn trigger(metric: Metric, is: Comparison, value: Threshold) -> Trigger {
    Trigger { metric, is, value }
}

fn refs_fires(input: &Value) -> Value {
    let ratio = input["threshold_ratio"]
        .as_f64()
        .or(input["thresholdRatio"].as_f64())
        .unwrap_or(0.8);
    let threshold = Threshold::WindowRatio(ratio);
    let triggers = Triggers {
        enabled: input["enabled"] != false,
        auto: input["auto"] != false,
        rule: Rule::Any,
        when: vec![trigger(Metric::UsageTotal, Comparison::AtLeast, threshold)],
    };
    let total = input["usage"]["total_tokens"].as_u64();
    let usage = total.map(|input| Usage {
        input,
        ..Usage::default()
    });
    let situation = Situation {
        window: figure(input, "context_limit"),
        usage,
        ..Situation::default()
    };
    // The design is strict: without a limit it does not guess.
    let error = triggers.check(&situation).err();
    json!({
        "result": triggers.fired(&situation).is_some(),
        "error": error.map(|error| error.to_string()),
    })
}

fn checkpoint_fires(input: &Value) -> Value {
    let at = |key: &str, default| Threshold::Fixed(input[key].as_u64().unwrap_or(default));
    let tokens = trigger(Metric::Log, Comparison::MoreThan, at("threshold", 60_000));
    let count = trigger(
        Metric::Messages,
        Comparison::AtLeast,
        at("max_messages", 100),
    );
    let triggers = Triggers {
        enabled: true,
        auto: true,
        rule: Rule::Any,
        when: vec![tokens, count],
    };
    let fired = triggers.fired(&Situation {
        log_tokens: input["current_tokens"].as_u64().unwrap(),
        messages: input["message_count"].as_u64().unwrap(),
        ..Situation::default()
    });
    let reason = match fired {
        Some(fired) if fired == tokens => "hard_limit",
        Some(_) => "short_term_full",
        None => "",
    };
    json!({"result": fired.is_some(), "reason": reason})
}

fn turns_fires(input: &Value) -> bool {
    let count = Threshold::Fixed(figure(input, "message_threshold").unwrap_or(20));
    let percent = Threshold::WindowPercent(figure(input, "token_percent").unwrap_or(75));
    let triggers = Triggers {
        enabled: true,
        auto: true,
        rule: Rule::Any,
        when: vec![
            trigger(Metric::Messages, Comparison::MoreThan, count),
            trigger(Metric::Log, Comparison::MoreThan, percent),
        ],
    };
    let situation = Situation {
        window: figure(input, "context_window"),
        log_tokens: input["history_tokens"].as_u64().unwrap(),
        messages: input["message_count"].as_u64().unwrap(),
        ..Situation::default()
    };
    triggers.fired(&situation).is_some()
}

fn archive_fires(input: &Value) -> bool {
    let log = messages(&input["messages"]);
    let at = |key: &str| Threshold::Fixed(figure(input, key).unwrap_or(0));
    let reserve = figure(input, "reserve_tokens").unwrap_or(budget::DEFAULT_RESERVE);
    let triggers = Triggers {
        enabled: true,
        auto: input["auto_compact"] != false,
        rule: Rule::FirstKnown,
        when: vec![
            trigger(
                Metric::Log,
                Comparison::AtLeast,
                Threshold::WindowLess(reserve),
            ),
            trigger(Metric::Log, Comparison::AtLeast, at("max_tokens")),
            trigger(Metric::Messages, Comparison::AtLeast, at("max_messages")),
        ],
    };
    let situation = Situation {
        window: figure(input, "context_window"),
        log_tokens: trimtab::model::estimate::anchored(&Heuristic::ARCHIVE, &log, 0),
        messages: log.len() as u64,
        ..Situation::default()
    };
    triggers.fired(&situation).is_some()
}
