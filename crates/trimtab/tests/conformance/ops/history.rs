//! Turns, boundaries, normalising, what is sent.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trimtab::engine::decide::compact::keep_rules;
use trimtab::engine::normalise::EntryChange;
use trimtab::engine::policy::KeepRule;
use trimtab::engine::policy::Moment;
use trimtab::model::{Role, turns};
use trimtab::session::Limits;

use super::{Must, Ran, messages, number, texts, written};
use crate::front::{admitted, in_words, open, preset, window};

pub(super) fn boundaries(input: &Value) -> Ran {
    Ok(json!({"indices": turns::boundaries(&messages(&input["messages"])?)}))
}

pub(super) fn nearest_boundary(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    Ok(json!({"index": turns::nearest_safe_boundary(&log, number(&input["target_index"]))}))
}

/// A place is safe if none is nearer to it.
pub(super) fn is_boundary(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    let at = number(&input["index"]);
    let nearest = turns::nearest_safe_boundary(&log, at);
    let has_users = !turns::boundaries(&log).is_empty();
    let is_end = at == 0 || at >= log.len();
    Ok(json!({"result": is_end || (has_users && nearest == at)}))
}

/// The designs add outputs and nothing else: a history with nothing in it stays empty.
pub(super) fn normalised(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    let mut session = admitted(open(preset("checkpoint"), Limits::default())?, log)?;
    let entries = session.window().must("window")?.entries().iter();
    let sent = entries
        .filter(|entry| entry.change != EntryChange::Made || entry.message.role == Role::Tool);
    let sent: Vec<_> = sent.map(|entry| entry.message.clone()).collect();
    Ok(json!({"messages": in_words(&sent)}))
}

/// What the second design does not summarise: system messages, the newest, protected rounds
/// and open calls.
pub(super) fn preserved(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    let mut rules = preset("checkpoint").compaction.keep;
    rules.retain(|rule| !matches!(rule, KeepRule::UserMessages { .. }));
    for rule in &mut rules {
        if let KeepRule::ProtectedTools { tools } = rule {
            *tools = texts(&input["protected_tools"]);
        }
    }
    let messages = number(&input["recent_min"]);
    rules.insert(0, KeepRule::RecentMessages { messages });
    let system = (0..log.len()).filter(|at| log[*at].role == Role::System);
    let behind = keep_rules::kept_messages(&log, &rules, |_| 0).after_summary;
    let preserved: BTreeSet<usize> = system.chain(behind).collect();
    Ok(json!({ "preserved": preserved }))
}

/// The preset has no limit on the number of messages: what fits is sent.
pub(super) fn kept_whole(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    let mut session = admitted(open(preset("retention"), Limits::default())?, log)?;
    session.check(Moment::BeforeCall).must("check")?;
    session.ready().must("ready")?;
    let notes = session.events().into_iter().filter_map(|event| event.note);
    let stderr: String = notes.map(|note| note + "\n").collect();
    Ok(json!({"messages": in_words(&window(&mut session)?), "stderr": stderr}))
}

pub(super) fn visible(input: &Value) -> Ran {
    let log = messages(&input["messages"])?;
    let mut session = admitted(open(preset("archive"), Limits::default())?, log)?;
    let sent = window(&mut session)?;
    Ok(json!({"contents": sent.iter().map(|message| message.text()).collect::<Vec<_>>()}))
}

pub(super) fn metadata(input: &Value) -> Ran {
    let message = super::message(&input["message"])?;
    Ok(written([&message])[0]["metadata"].clone())
}
