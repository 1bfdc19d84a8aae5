//! Summary requests and answers, what survives, how it is rebuilt.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::engine::decide::compact::keep_rules;
use trimtab::engine::decide::summary::answer::SummaryAnswer;
use trimtab::engine::decide::summary::conversation;
use trimtab::engine::policy::SummaryPlacement;
use trimtab::engine::policy::{EstimateBy, KeepRule, Policy, Strategy};
use trimtab::model::{Message, Role, turns};
use trimtab::session::{Limits, ManualCompaction, SummariserAnswer};

use super::{Must, Ran, messages, texts, written};
use crate::front::{Framed, Question, in_words, is_summary, preset, says, window};

/// The messages that the session would send, and whether a compaction changed them.
fn after(framed: &mut Framed, compacted: bool) -> Ran {
    let sent = window(&mut framed.session)?;
    Ok(json!({"compacted": compacted, "messages": in_words(&sent)}))
}

/// The preset `refs` with the settings of a case.
fn refs(config: &Value) -> Policy {
    let mut policy = preset("refs");
    policy.compaction.enabled = config["enabled"] != false;
    let prompt = &mut policy.compaction.prompt;
    if let Some(summary) = config["summaryPrompt"].as_str() {
        summary.clone_into(&mut prompt.summary);
    }
    prompt.summary_directives = texts(&config["summaryDirectives"]);
    if let Some(retain) = config.get("retainPrompt") {
        let retain = retain.as_str().unwrap_or_default();
        retain.clone_into(&mut prompt.retain);
    }
    prompt.retain_directives = texts(&config["retainDirectives"]);
    policy
}

/// What the summariser is asked, at the end of the first request.
pub(super) fn instructions(input: &Value) -> Ran {
    let policy = refs(&input["config"]);
    let framed = Framed::new(policy, Limits::default(), Vec::new(), &Question::Free)?;
    let last = |messages: &[Message]| messages.last().map(|last| last.text().into_owned());
    Ok(json!({"text": asked_first(framed, last)?}))
}

/// All that the summariser is given first.
pub(super) fn asked(input: &Value) -> Ran {
    let case = messages(&input["messages"])?;
    let mut policy = preset("checkpoint");
    // What is kept word for word is not read again.
    policy.compaction.keep = vec![KeepRule::OpenCalls];
    let framed = Framed::new(policy, Limits::default(), case, &Question::Free)?;
    let text = asked_first(framed, |messages| {
        let texts: Vec<_> = messages.iter().map(Message::text).collect();
        Some(texts.join("\n"))
    })?;
    Ok(json!({ "text": text }))
}

fn asked_first(mut framed: Framed, read: impl FnOnce(&[Message]) -> Option<String>) -> Ran<String> {
    let pending = framed.session.compact(&ManualCompaction::default());
    let request = pending
        .must("compact")?
        .and_then(|pending| pending.request());
    read(&request.must("request")?.messages).must("message")
}

pub(super) fn prepared(input: &Value) -> Ran {
    let prepared = conversation::without_open_end(messages(&input["messages"])?);
    Ok(json!({"messages": written(&prepared)}))
}

pub(super) fn parsed(input: &Value) -> Ran {
    let asked = input["retain_enabled"] != false;
    let SummaryAnswer {
        retain,
        summary,
        effective_summary,
    } = SummaryAnswer::parse(input["text"].as_str().must("text")?, asked);
    Ok(json!({"retain": retain, "summary": summary, "effective_summary": effective_summary}))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of turns, rounded down as the design does"
)]
pub(super) fn with_response(input: &Value) -> Ran {
    let (case, config) = (messages(&input["messages"])?, &input["config"]);
    let turns = config["retainLastTurns"].as_f64().unwrap_or(1.0);
    let turns = turns.floor().max(0.0) as usize;
    let mut policy = refs(config);
    // The frame stands for turns before those of the case. Where the case has no turn at all,
    // all of it belongs to the one that is kept.
    let starts = turns::boundaries(&case).len();
    let (turns, question) = match starts {
        0 => (turns, Question::None),
        starts => (turns.min(starts) + 1, Question::Free),
    };
    policy.compaction.keep = vec![if starts == 0 && turns > 0 {
        let messages = case.len();
        KeepRule::RecentMessages { messages }
    } else {
        KeepRule::LastTurns { turns }
    }];
    let mut framed = Framed::new(policy, Limits::default(), case, &question)?;
    let compacted = framed.compact(&says(
        input["response_text"].as_str().must("response_text")?,
    ))?;
    after(&mut framed, compacted)
}

/// The summariser fails.
pub(super) fn with_error(input: &Value) -> Ran {
    let (name, case) = match input.get("messages") {
        Some(list) => ("refs", messages(list)?),
        None => ("archive", vec![Message::user("q"), Message::assistant("a")]),
    };
    let mut framed = Framed::new(preset(name), Limits::default(), case, &Question::Free)?;
    let before = in_words(&framed.before_repairs());
    let why = input["error"].as_str().must("error")?.to_owned();
    let compacted = framed.compact(&SummariserAnswer::Failed(why))?;
    let after = in_words(&framed.before_repairs());
    let told = framed.events.last();
    Ok(json!({
        "compacted": compacted, "messages_unchanged": after == before, "messages": after,
        "error": told.and_then(|event| event.note.clone()),
        "usage": told.and_then(|event| event.usage),
    }))
}

/// The preset `checkpoint` with the settings of a case.
fn checkpoint_policy(input: &Value) -> Policy {
    let mut policy = preset("checkpoint");
    let compaction = &mut policy.compaction;
    let strategy = serde_json::from_value(input["strategy"].clone());
    compaction.strategy = strategy.unwrap_or(Strategy::SlidingWindow);
    for rule in &mut compaction.keep {
        match rule {
            KeepRule::UserMessages { tokens } => {
                let budget = input["user_budget"]
                    .as_i64()
                    .or(input["max_tokens"].as_i64());
                *tokens = budget.map_or(*tokens, |n| u64::try_from(n).unwrap_or(0));
            }
            KeepRule::ProtectedTools { tools } => *tools = texts(&input["protected_tools"]),
            _ => {}
        }
    }
    if let Some(prefix) = input["summary_prefix"].as_str() {
        let prefix = prefix.to_owned();
        compaction.placement = SummaryPlacement::Message { prefix };
    }
    let prefixes = texts(&input["summary_prefixes"]);
    if !prefixes.is_empty() {
        compaction.summary_prefixes = prefixes;
    }
    policy
}

pub(super) fn checkpoint(input: &Value) -> Ran {
    let policy = checkpoint_policy(input);
    let strategy = policy.compaction.strategy;
    let case = messages(&input["messages"])?;
    let mut framed = if case.is_empty() {
        Framed::bare(policy)?
    } else {
        Framed::new(policy, Limits::default(), case, &Question::Free)?
    };
    let answer = if input["llm_fails"] == true {
        SummariserAnswer::Failed("no answer".to_owned())
    } else {
        says(input["summary_text"].as_str().must("summary_text")?)
    };
    framed.compact(&answer)?;
    let failed = |note: &String| note.starts_with("failed");
    let mut notes = framed.events.iter().filter_map(|event| event.note.as_ref());
    Ok(json!({
        "error": notes.any(failed),
        "messages": in_words(&window(&mut framed.session)?),
        "llm_calls": framed.asked,
        "metadata_strategy": strategy,
    }))
}

/// The texts of the user's messages that survive a compaction before the summary.
fn surviving(policy: Policy, case: Vec<Message>) -> Ran<Vec<String>> {
    let mut framed = Framed::new(policy, Limits::default(), case, &Question::Free)?;
    framed.compact(&says("S"))?;
    let sent = window(&mut framed.session)?;
    let users = sent.iter().take_while(|message| !is_summary(message));
    let users = users.filter(|message| message.role == Role::User);
    Ok(users.map(|message| message.text().into_owned()).collect())
}

pub(super) fn collected(input: &Value) -> Ran {
    let mut policy = checkpoint_policy(input);
    policy.compaction.keep = vec![KeepRule::UserMessages { tokens: u64::MAX }];
    Ok(json!({"collected": surviving(policy, messages(&input["messages"])?)?}))
}

pub(super) fn selected(input: &Value) -> Ran {
    let policy = checkpoint_policy(input);
    Ok(json!({"selected": surviving(policy, messages(&input["messages"])?)?}))
}

/// How Codex rebuilds: tokens are a quarter of the bytes, and a long message is cut.
pub(super) fn built(input: &Value) -> Ran {
    let users = texts(&input["user_messages"])
        .into_iter()
        .map(Message::user);
    let case: Vec<Message> = messages(&input["initial"])?
        .into_iter()
        .chain(users)
        .collect();
    let mut policy = preset("checkpoint");
    policy.estimate = EstimateBy::Refs;
    policy.compaction.strategy = Strategy::Summary;
    policy.compaction.keep = vec![KeepRule::UserMessagesCut {
        tokens: input["user_budget"].as_u64().unwrap_or(20_000),
    }];
    policy.compaction.placement = SummaryPlacement::Message {
        prefix: String::new(),
    };
    let mut framed = Framed::new(policy, Limits::default(), case, &Question::Silent)?;
    framed.compact(&says(input["summary_text"].as_str().must("summary_text")?))?;
    let mut sent = window(&mut framed.session)?;
    // The question of the frame.
    sent.retain(|message| !message.text().is_empty());
    Ok(json!({"messages": in_words(&sent)}))
}

/// What the fourth design keeps, and what of the rest its summariser reads in which batch.
pub(super) fn turns_plan(input: &Value) -> Ran {
    let policy = preset("turns");
    let history = messages(&input["history"])?;
    let window = input["context_window"].as_u64().must("context_window")?;
    let kept = keep_rules::kept_messages(&history, &policy.compaction.keep, |_| 0).after_summary;
    let cut = kept.iter().min().copied().unwrap_or(history.len());
    let (batches, omitted) = conversation::readable_batches(&history[..cut], window);
    if batches.is_empty() {
        return Ok(json!({"action": "none", "cut": 0, "keep": history.len()}));
    }
    let read = batches.iter().flatten();
    let contents: Vec<_> = read.map(|at| history[*at].text()).collect();
    Ok(json!({
        "action": "summarize", "cut": cut, "keep": history.len() - cut,
        "summarised_contents": contents, "omitted_oversized": omitted,
        "batches": batches.iter().map(Vec::len).collect::<Vec<_>>(),
    }))
}

/// The fourth design's summary goes to the end of the system part.
pub(super) fn injected(input: &Value) -> Ran {
    let said = input["system"].as_str().must("system")?;
    let case = vec![
        Message::system(said),
        Message::user("q"),
        Message::assistant("a"),
    ];
    let mut framed = Framed::new(preset("turns"), Limits::default(), case, &Question::Free)?;
    framed.compact(&says(input["summary"].as_str().must("summary")?))?;
    let sent = window(&mut framed.session)?;
    let is_system = |message: &&Arc<Message>| message.role == Role::System;
    let (system, rest): (Vec<_>, Vec<_>) = sent.iter().partition(is_system);
    let last = system.last().is_some_and(|message| is_summary(message));
    let texts: Vec<_> = system.iter().map(|message| message.text()).collect();
    let text = texts.concat();
    let between = text
        .strip_prefix(said)
        .and_then(|rest| rest.split_once("CONTEXT_SUMMARY"));
    Ok(json!({
        "system": text, "separator": between.map(|(separator, _)| separator),
        "order": if last { "system parts then summary last" } else { "summary is not last" },
        "messages_have_no_summary_user_message": !rest.iter().any(|message| is_summary(message)),
    }))
}
