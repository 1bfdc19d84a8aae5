//! Selects the messages that survive a compaction.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet, HashSet};

use trimtab_model::{Message, Part, Role, rounds, turns};

use crate::policy::KeepRule;
use crate::removal::{safe_cut, with_counterparts};
use crate::view::policy::ToolGlobs;
use crate::view::{MiddleCut, Shape, ViewContext, view};

/// Marks a user message about an interrupted turn; both spellings are in use.
const TURN_ABORTED: [&str; 2] = ["<turn-aborted>", "<turn_aborted>"];

/// The surviving messages, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptMessages {
    /// Messages before the summary.
    pub before_summary: BTreeSet<usize>,
    /// Messages before the summary in a shorter form.
    pub shortened: BTreeMap<usize, Message>,
    /// Messages after the summary, in the order in which they are sent.
    pub after_summary: Vec<usize>,
    /// True if system messages stay at their place; otherwise they come first.
    pub system_stays: bool,
}

/// Selects the messages that survive under `rules`. System messages always survive and are not
/// listed.
///
/// A round is kept completely or not at all. `weigh` returns the tokens of a message.
pub fn kept_messages<M: Borrow<Message>>(
    messages: &[M],
    rules: &[KeepRule],
    weigh: impl Fn(&Message) -> u64,
) -> KeptMessages {
    let mut kept = KeptMessages::default();
    // The same as `kept.after_summary`, for lookups.
    let mut behind: HashSet<usize> = HashSet::new();
    let from = |start: usize| -> Vec<usize> { (start..messages.len()).collect() };
    for rule in rules {
        let chosen = match rule {
            KeepRule::UserMessages { tokens } | KeepRule::UserMessagesCut { tokens } => {
                let may_cut = matches!(rule, KeepRule::UserMessagesCut { .. });
                let (whole, cut) = user_messages(messages, *tokens, may_cut, &weigh);
                let whole = whole.into_iter().filter(|at| !behind.contains(at));
                kept.before_summary.extend(whole);
                kept.shortened
                    .extend(cut.filter(|(at, _)| !behind.contains(at)));
                continue;
            }
            KeepRule::LastTurns { turns } => from(last_turns(messages, *turns)),
            KeepRule::RecentTokens { tokens } => from(recent_by_tokens(messages, *tokens, &weigh)),
            KeepRule::RecentMessages { messages: newest } => {
                from(messages.len().saturating_sub(*newest))
            }
            KeepRule::RecentTurns { messages: newest } => from(recent_turns(messages, *newest)),
            KeepRule::ProtectedTools { tools } => protected_rounds(messages, tools),
            KeepRule::OpenCalls => open_rounds(messages),
        };
        // Rules can overlap, and a message must be sent once. The first rule that selects it
        // decides its place.
        for at in with_counterparts(messages, chosen) {
            let system = messages
                .get(at)
                .is_none_or(|m| m.borrow().role == Role::System);
            if !system && !kept.before_summary.contains(&at) && behind.insert(at) {
                kept.after_summary.push(at);
                // A message that is kept in full needs no shorter form.
                kept.shortened.remove(&at);
            }
        }
    }
    kept
}

/// The start of the last `number` turns; 0 if there are fewer turns.
fn last_turns<M: Borrow<Message>>(messages: &[M], number: usize) -> usize {
    let starts = turns::boundaries(messages);
    match (number, starts.len().checked_sub(number)) {
        (0, _) => messages.len(),
        (_, Some(first)) => starts.get(first).copied().unwrap_or(0),
        (_, None) => 0,
    }
}

/// The start of whole turns with about the newest `number` messages; 0 if all are among them.
pub(in crate::decide) fn recent_turns<M: Borrow<Message>>(messages: &[M], number: usize) -> usize {
    let Some(target) = messages.len().checked_sub(number).filter(|at| *at > 0) else {
        return 0;
    };
    safe_cut(messages, turns::nearest_safe_boundary(messages, target))
}

/// The start of the newest messages that fit `budget` tokens. The last message is always among
/// them; 0 if all fit.
pub fn recent_by_tokens<M: Borrow<Message>>(
    messages: &[M],
    budget: u64,
    weigh: impl Fn(&Message) -> u64,
) -> usize {
    let last = messages.len().saturating_sub(1);
    // The design keeps at least the last message, even without a budget.
    if budget == 0 {
        return last;
    }
    let mut used = 0u64;
    let mut from = messages.len();
    for (at, message) in messages.iter().enumerate().rev() {
        used = used.saturating_add(weigh(message.borrow()));
        if used > budget && at != last {
            break;
        }
        from = at;
    }
    from
}

/// The newest user messages that fit `budget` tokens, newest first.
///
/// With `may_cut`, the first one that does not fit is cut to the remaining budget and ends the
/// search. Otherwise it is skipped, older ones are still tried, and marks of interrupted turns cost
/// nothing.
fn user_messages<M: Borrow<Message>>(
    messages: &[M],
    budget: u64,
    may_cut: bool,
    weigh: impl Fn(&Message) -> u64,
) -> (Vec<usize>, Option<(usize, Message)>) {
    let mut left = budget;
    let mut whole = Vec::new();
    for (at, message) in messages.iter().enumerate().rev() {
        let message = message.borrow();
        if !is_users_own(message) {
            continue;
        }
        if budget == 0 || (may_cut && left == 0) {
            break;
        }
        if !may_cut && is_turn_aborted(message) {
            whole.push(at);
        } else if let Some(rest) = left.checked_sub(weigh(message)) {
            left = rest;
            whole.push(at);
        } else if may_cut {
            return (whole, Some((at, cut_to(message, left))));
        }
    }
    (whole, None)
}

/// Cuts the middle of a message's text; other parts stay.
fn cut_to(message: &Message, tokens: u64) -> Message {
    let text = message.parts.iter().filter_map(Part::as_text);
    let text = text.collect::<Vec<_>>().join("\n");
    let shape = Shape::Middle(MiddleCut::codex_tokens(tokens));
    let shown = view(&text, &shape, &ViewContext::default()).into_owned();
    let mut cut = message.clone();
    cut.parts.retain(|part| part.as_text().is_none());
    cut.parts.insert(0, Part::text(shown));
    cut
}

/// True for user messages, and for marks of interrupted turns.
fn is_users_own(message: &Message) -> bool {
    message.is_real_user() || is_turn_aborted(message)
}

fn is_turn_aborted(message: &Message) -> bool {
    let text = message.text();
    message.role == Role::User && TURN_ABORTED.iter().any(|mark| text.contains(mark))
}

fn protected_rounds<M: Borrow<Message>>(messages: &[M], tools: &[String]) -> Vec<usize> {
    // A policy with an invalid glob was rejected before.
    let protected = ToolGlobs::new(tools).unwrap_or_default();
    let calls_one = |message: &Message| message.calls().any(|call| protected.matches(&call.name));
    let all = messages.iter().enumerate();
    all.filter(|(_, message)| calls_one((*message).borrow()))
        .map(|(at, _)| at)
        .collect()
}

fn open_rounds<M: Borrow<Message>>(messages: &[M]) -> Vec<usize> {
    let rounds = rounds::pair(messages).rounds.into_iter();
    let open = rounds.filter(|round| round.calls.iter().any(|call| call.output.is_none()));
    open.map(|round| round.start).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Call, MessageKind};

    fn call(id: &str, tool: &str) -> Message {
        Message::assistant("").with_call(Call::new(id, tool, "{}"))
    }

    fn log() -> Vec<Message> {
        vec![
            Message::system("s"),
            Message::user("one"),
            call("t", "todo_write"),
            Message::output("t", "ok"),
            Message::user("digest").with_kind(MessageKind::ToolSummary),
            Message::user("two"),
            call("a", "read"),
            Message::output("a", "text"),
            call("open", "read"),
        ]
    }

    fn behind(rule: KeepRule) -> Vec<usize> {
        kept_messages(&log(), &[rule], |_| 10).after_summary
    }

    #[test]
    fn recent_messages_take_the_whole_round() {
        assert_eq!(behind(KeepRule::RecentMessages { messages: 2 }), [6, 7, 8]);
        assert_eq!(behind(KeepRule::RecentTokens { tokens: 25 }), [6, 7, 8]);
    }

    #[test]
    fn recent_user_message_is_not_also_kept_in_a_shorter_form() {
        let log = [
            Message::user("an old question of some length"),
            Message::assistant("an answer"),
            Message::user("a recent question of some length"),
            Message::assistant("another answer"),
        ];
        let recent = KeepRule::RecentMessages { messages: 2 };
        for tokens in [3, 1_000] {
            let cut = KeepRule::UserMessagesCut { tokens };
            for rules in [[recent.clone(), cut.clone()], [cut, recent.clone()]] {
                let kept = kept_messages(&log, &rules, |message| message.text().len() as u64);
                let behind = &kept.after_summary;
                let is_twice = |at: &usize| {
                    kept.before_summary.contains(at) || kept.shortened.contains_key(at)
                };
                assert!(!behind.iter().any(is_twice), "{rules:?}: {kept:?}");
            }
        }
    }

    #[test]
    fn protected_and_open_rounds_are_kept_once() {
        assert_eq!(
            behind(KeepRule::ProtectedTools {
                tools: vec!["todo_*".into()]
            }),
            [2, 3]
        );
        assert_eq!(behind(KeepRule::OpenCalls), [8]);
        let both = [
            KeepRule::ProtectedTools {
                tools: vec!["read".into()],
            },
            KeepRule::OpenCalls,
        ];
        assert_eq!(
            kept_messages(&log(), &both, |_| 10).after_summary,
            [6, 7, 8]
        );
    }

    #[test]
    fn turns_are_counted_from_real_users() {
        assert_eq!(behind(KeepRule::LastTurns { turns: 1 }), [5, 6, 7, 8]);
        assert_eq!(
            behind(KeepRule::LastTurns { turns: 9 }),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert!(behind(KeepRule::LastTurns { turns: 0 }).is_empty());
    }
}
