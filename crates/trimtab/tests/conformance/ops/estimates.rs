//! Estimates and usage.

use serde_json::{Value, json};
use trimtab::engine::policy::Policy;
use trimtab::engine::trigger::TriggerInputs;
use trimtab::model::estimate::Measure;
use trimtab::model::{Call, Message, Part, Role, Usage};
use trimtab::session::Limits;

use super::{Must, Ran, message, messages};
use crate::front::{Framed, Question, preset, says};

/// The tokens of messages by a policy.
pub(super) fn tokens(policy: &Policy, messages: &[Message]) -> u64 {
    let each = messages.iter();
    each.map(|message| policy.estimate.message(message)).sum()
}

pub(super) fn refs_text(input: &Value) -> Ran {
    let text = input["text"].as_str().must("text")?;
    Ok(json!({"tokens": preset("refs").estimate.text(text)}))
}

pub(super) fn turns_message(input: &Value) -> Ran {
    let message = message(&input["message"])?;
    Ok(json!({"tokens": preset("turns").estimate.message(&message)}))
}

pub(super) fn turns_tools(input: &Value) -> Ran {
    Ok(
        json!({"tokens": preset("turns").estimate.tools(&Measure::of_tools(&input["tools"].to_string()))}),
    )
}

pub(super) fn archive_message(input: &Value) -> Ran {
    let message = message(&input["message"])?;
    Ok(json!({"tokens": preset("archive").estimate.message(&message)}))
}

pub(super) fn archive_messages(input: &Value) -> Ran {
    Ok(json!({"tokens": tokens(&preset("archive"), &messages(&input["messages"])?)}))
}

pub(super) fn context(input: &Value) -> Ran {
    Ok(json!({"tokens": counted(messages(&input["messages"])?)?.log_tokens}))
}

/// What a session counts: the usage that was reported for the newest answer, and an estimate of what
/// follows it. Nobody reports the usage of a call that failed or was aborted.
pub(super) fn counted(mut log: Vec<Message>) -> Ran<TriggerInputs> {
    let policy = preset("archive");
    let prefixes = policy.compaction.summary_prefixes.clone();
    let is_summary = |message: &Message| {
        let text = message.text();
        prefixes.iter().any(|prefix| text.starts_with(prefix))
    };
    let compacted = log.iter().any(is_summary);
    log.retain(|message| !is_summary(message));
    // The frame is for conversations that are compacted, which must become smaller.
    let mut framed = if compacted {
        Framed::new(policy, Limits::default(), Vec::new(), &Question::None)?
    } else {
        Framed::bare(policy)?
    };
    // A conversation begins with a user, and an output has a call.
    if log.first().is_some_and(|first| first.role != Role::User) {
        log.insert(0, Message::user("q"));
    }
    let mut answer = 0;
    for at in 0..log.len() {
        if log[at].role == Role::Assistant {
            answer = at;
        }
        let outputs = log[at].outputs().map(|output| output.call_id.clone());
        for id in outputs
            .filter(|_| log[at].agent_visible())
            .collect::<Vec<_>>()
        {
            log[answer].parts.push(Part::Call(Call::new(id, "f", "{}")));
        }
    }
    for message in log {
        let reason = message.meta.stop_reason.as_deref().unwrap_or_default();
        let failed = ["aborted", "error"].contains(&reason.trim().to_lowercase().as_str());
        let answers = message.role == Role::Assistant && message.agent_visible() && !failed;
        let usage = message.meta.usage.filter(|_| answers);
        // A window of nothing but an answer is not sent, but its usage counts all the same.
        let _ = framed.session.ready();
        if let Some(usage) = usage {
            framed.session.record(&usage).must("record")?;
        }
        framed.session.admit(message).must("admit")?;
        if usage.is_some() && compacted {
            framed.compact(&says("S"))?;
        }
    }
    framed.session.trigger_inputs().must("trigger_inputs")
}

pub(super) fn usage_total(input: &Value) -> Ran {
    let count = |key: &str| input[key].as_u64().unwrap_or(0);
    let usage = Usage {
        input: count("input_tokens"),
        cache_creation: count("cache_creation_tokens"),
        cache_read: count("cache_read_tokens"),
        output: count("output_tokens"),
        ..Usage::default()
    };
    Ok(json!({"total_tokens": usage.total()}))
}
