//! Budgets and triggers.

use serde_json::{Value, json};
use trimtab::config::{Config, ConfigInputs};
use trimtab::engine::decide::compact::keep_rules;
use trimtab::engine::policy::{CompactionPolicy, Policy};
use trimtab::engine::trigger::{Metric, Threshold, Trigger, TriggerInputs};
use trimtab::model::Usage;
use trimtab::model::estimate::Measure;

use super::{Must, Ran, estimates, figure, messages};
use crate::front::preset;

pub(super) fn output_budget(input: &Value) -> Ran {
    let mut budget = preset("refs").ageing.placeholder.budget;
    budget.tokens = input["contextBudgetTokens"].as_u64();
    let window = figure(input, "context_window").or(figure(input, "max_input_tokens"));
    Ok(json!({"tokens": budget.resolve(window)}))
}

/// The window that the settings give. The design assumes four times the limit of the answer, and
/// 8,192 for that.
pub(super) fn window(input: &Value) -> Ran {
    let answer = figure(input, "max_tokens").unwrap_or(8_192);
    let window = figure(input, "context_window").unwrap_or(answer * 4);
    let mut inputs = ConfigInputs::default();
    inputs.set("preset=turns", "--set");
    inputs.set(&format!("window={window}"), "--set");
    let config = Config::load(&inputs).must("settings")?;
    Ok(json!({"context_window": config.window}))
}

pub(super) fn is_over(input: &Value) -> Ran {
    let mut policy = preset("turns");
    policy.compaction.when = vec!["call > 100 % of window".parse().must("condition")?];
    let tools = &input["tools"];
    let parts = [
        estimates::tokens(&policy, &messages(&input["messages"])?),
        policy
            .estimate
            .tools(&Measure::of_tools(&tools.to_string()))
            .unwrap_or_default(),
        figure(input, "max_tokens").unwrap_or(0),
    ];
    let situation = TriggerInputs {
        window: input["context_window"].as_u64(),
        call_tokens: parts.iter().sum(),
        ..TriggerInputs::default()
    };
    Ok(json!({"result": fires(&policy, &situation)}))
}

fn fires(policy: &Policy, situation: &TriggerInputs) -> bool {
    policy.compaction.fired(situation).is_some()
}

/// The compaction of the preset `archive` with the figures of a case. A reserve that is not
/// given is the preset's own.
fn archive_compaction(input: &Value) -> CompactionPolicy {
    let mut compaction = preset("archive").compaction;
    compaction.auto = input["auto_compact"] != false;
    for trigger in &mut compaction.when {
        trigger.value = match trigger.value {
            Threshold::WindowLess(reserve) => {
                Threshold::WindowLess(figure(input, "reserve_tokens").unwrap_or(reserve))
            }
            _ if trigger.metric == Metric::Messages => fixed(input, "max_messages"),
            _ => fixed(input, "max_tokens"),
        };
    }
    compaction
}

fn fixed(input: &Value, key: &str) -> Threshold {
    Threshold::Fixed(figure(input, key).unwrap_or(0))
}

pub(super) fn token_limit(input: &Value) -> Ran {
    let compaction = archive_compaction(input);
    let window = figure(input, "context_window");
    let limit = compaction.token_limit(window);
    let fired = compaction.fired(&TriggerInputs {
        window,
        log_tokens: limit.unwrap_or(0),
        ..TriggerInputs::default()
    });
    let source = match fired.map(|trigger| trigger.value) {
        Some(Threshold::WindowLess(_)) => "context_window",
        Some(_) => "max_tokens",
        None => "none",
    };
    Ok(json!({"limit": limit.unwrap_or(0), "source": source}))
}

pub(super) fn recent_tokens(input: &Value) -> Ran {
    let keep = figure(input, "keep_recent_tokens").unwrap_or(0);
    let window = figure(input, "context_window");
    Ok(json!({"tokens": archive_compaction(input).recent_tokens(keep, window)}))
}

pub(super) fn split(input: &Value) -> Ran {
    let policy = preset("archive");
    let log = messages(&input["messages"])?;
    let budget = figure(input, "budget").unwrap_or(0);
    let split = keep_rules::recent_by_tokens(&log, budget, |one| policy.estimate.message(one));
    Ok(json!({ "split_index": split }))
}

pub(super) fn refs_fires(input: &Value) -> Ran {
    let mut compaction = preset("refs").compaction;
    compaction.enabled = input["enabled"] != false;
    compaction.auto = input["auto"] != false;
    let ratio = input["threshold_ratio"].as_f64();
    if let Some(ratio) = ratio.or(input["thresholdRatio"].as_f64()) {
        compaction.when[0].value = Threshold::WindowRatio(ratio);
    }
    let usage = input["usage"]["total_tokens"].as_u64();
    let situation = TriggerInputs {
        window: figure(input, "context_limit"),
        usage: usage.map(|input| Usage {
            input,
            ..Usage::default()
        }),
        ..TriggerInputs::default()
    };
    // The design is strict: without a limit it does not guess.
    let error = compaction.check_window(&situation).err();
    Ok(json!({
        "result": compaction.fired(&situation).is_some(),
        "error": error.map(|error| error.to_string()),
    }))
}

/// The preset's triggers with the figures of the case for tokens and messages.
fn with_figures(name: &str, input: &Value, tokens: &str, messages: &str) -> Policy {
    let mut policy = preset(name);
    for trigger in &mut policy.compaction.when {
        let key = if trigger.metric == Metric::Messages {
            messages
        } else {
            tokens
        };
        let Some(given) = input[key].as_u64() else {
            continue;
        };
        trigger.value = match trigger.value {
            Threshold::WindowPercent(percent) if given == 0 => Threshold::WindowPercent(percent),
            Threshold::WindowPercent(_) => Threshold::WindowPercent(given),
            _ => Threshold::Fixed(given),
        };
    }
    policy
}

pub(super) fn checkpoint_fires(input: &Value) -> Ran {
    let policy = with_figures("checkpoint", input, "threshold", "max_messages");
    let fired = policy.compaction.fired(&TriggerInputs {
        log_tokens: input["current_tokens"].as_u64().must("current_tokens")?,
        messages: input["message_count"].as_u64().must("message_count")?,
        ..TriggerInputs::default()
    });
    let reason = match fired {
        Some(Trigger {
            metric: Metric::Messages,
            ..
        }) => "short_term_full",
        Some(_) => "hard_limit",
        None => "",
    };
    Ok(json!({"result": fired.is_some(), "reason": reason}))
}

pub(super) fn turns_fires(input: &Value) -> Ran {
    let policy = with_figures("turns", input, "token_percent", "message_threshold");
    let situation = TriggerInputs {
        window: figure(input, "context_window"),
        log_tokens: input["history_tokens"].as_u64().must("history_tokens")?,
        messages: input["message_count"].as_u64().must("message_count")?,
        ..TriggerInputs::default()
    };
    Ok(json!({"result": fires(&policy, &situation)}))
}

pub(super) fn archive_fires(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    let fired = archive_compaction(input).fired(&TriggerInputs {
        window: figure(input, "context_window"),
        messages: log.len() as u64,
        ..estimates::counted(log)?
    });
    Ok(json!({"result": fired.is_some()}))
}
