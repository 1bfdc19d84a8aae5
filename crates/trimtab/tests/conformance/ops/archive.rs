//! Archived outputs, and the compaction of the third design.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::engine::decide::summary::conversation::{self, Cut};
use trimtab::engine::policy::KeepRule;
use trimtab::engine::policy::Moment;
use trimtab::engine::policy::ToolSummaries;
use trimtab::engine::trigger::{Metric, Threshold};
use trimtab::model::{Message, Part};
use trimtab::session::Limits;

use super::{Must, Ran, aged, figure, messages, number};
use crate::front::{Framed, Question, in_words, is_summary, preset, says};

/// The digest of old outputs in the part that a compaction keeps.
pub(super) fn digested(input: &Value) -> Ran {
    let case = messages(&input["messages"])?;
    let mut policy = preset("archive");
    policy.compaction.keep = vec![KeepRule::RecentMessages {
        messages: case.len(),
    }];
    policy.compaction.digest.cutoff = number(&input["cutoff"]);
    // What comes in is archived by another rule of the design.
    policy.ageing.archive.enabled = false;
    let mut framed = Framed::new(policy, Limits::default(), case, &Question::None)?;
    framed.compact(&says("S"))?;
    let mut left = framed.before_repairs();
    left.retain(|message| !is_summary(message));
    Ok(json!({"messages": in_words(&without_fences(left))}))
}

/// Archives what is over the cutoff, with a summary of each at the end.
pub(super) fn summarised(input: &Value) -> Ran {
    let mut policy = preset("archive");
    let archive = &mut policy.ageing.archive;
    archive.cutoff = number(&input["cutoff"]);
    archive.summaries = match input["strategy"].as_str() {
        Some("off") => ToolSummaries::Off,
        Some("heuristic") => ToolSummaries::Heuristic,
        _ => archive.summaries,
    };
    let answer = input["llm_returns"].as_str();
    let log = messages(&input["messages"])?;
    let (_, _, messages) = aged(&policy, log, None, Moment::AfterOutputs, answer)?;
    Ok(json!({"messages": in_words(&without_fences(messages))}))
}

/// The messages as the design writes them. Ours mark text of outputs as a quotation, see
/// `docs/threat-model.md`.
fn without_fences(mut messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
    for message in &mut messages {
        let text = message.text().into_owned();
        let quoted = text.strip_prefix("[quoted from tool outputs");
        let quoted = quoted.and_then(|text| text.split_once("]\n> "));
        if let Some((_, quoted)) = quoted {
            Arc::make_mut(message).parts = vec![Part::text(quoted.replace("\n> ", "\n"))];
        }
    }
    messages
}

pub(super) fn projected(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    let projected: Vec<_> =
        conversation::project_to(&log, Cut::outputs(conversation::OUTPUT_LIMIT)).collect();
    let first = projected.first();
    let text = first.map_or_else(String::new, |message| message.text().into_owned());
    let run = |chars: &mut dyn Iterator<Item = char>| {
        let mut chars = chars.peekable();
        let first = chars.peek().copied();
        chars.take_while(|c| Some(*c) == first).count()
    };
    Ok(json!({
        "len": projected.len(), "rune_len": text.chars().count(), "text": text,
        "head_runes": run(&mut text.chars()), "tail_runes": run(&mut text.chars().rev()),
    }))
}

pub(super) fn compacted(input: &Value) -> Ran {
    let mut policy = preset("archive");
    policy.ageing.archive.enabled = false;
    let compaction = &mut policy.compaction;
    compaction.digest.cutoff = number(&input["tool_cutoff"]);
    for trigger in &mut compaction.when {
        match trigger.value {
            Threshold::WindowLess(_) => {
                if let Some(reserve) = figure(input, "reserve_tokens") {
                    trigger.value = Threshold::WindowLess(reserve);
                }
            }
            _ if trigger.metric == Metric::Messages => {}
            _ => trigger.value = Threshold::Fixed(figure(input, "max_tokens").unwrap_or(0)),
        }
    }
    let recent = figure(input, "keep_recent").unwrap_or(5);
    let (keep, question) = if let Some(tokens) = figure(input, "keep_recent_tokens") {
        (KeepRule::RecentTokens { tokens }, Question::None)
    } else {
        // The question of the frame is one more.
        let messages = usize::try_from(recent)
            .must("keep_recent")?
            .saturating_add(1);
        (KeepRule::RecentMessages { messages }, Question::Silent)
    };
    compaction.keep = vec![keep];
    let limits = Limits {
        window: figure(input, "context_window"),
        ..Limits::default()
    };
    let mut framed = Framed::new(policy, limits, messages(&input["messages"])?, &question)?;
    framed.compact(&says(input["summary"].as_str().must("summary")?))?;
    let mut left = framed.before_repairs();
    if framed.keeps_the_case() {
        // A summary of the frame alone: the case is left as it was.
        left.retain(|message| !is_summary(message));
    }
    Ok(json!({"messages": in_words(&without_fences(left))}))
}
