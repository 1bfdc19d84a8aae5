//! Rounds that the client never sees: the model reads stored outputs, and we answer. The client's
//! later messages know nothing of them, so this module restores what the provider sent, from the
//! message that the client sends back.

use std::collections::HashMap;
use std::mem::{Discriminant, discriminant};

use serde::{Deserialize, Serialize};
use trimtab_model::{Call, Message, Output, Part};
use trimtab_store::{Result, SessionId, Store, Stream};

use crate::conversation::message_map;

/// The maximum number of answers to one request whose calls are kept. A client continues one of
/// them, usually the newest; more than a few copies of a request are not expected.
pub(crate) const MOST_PENDING: usize = 8;

/// Calls of our tools in an answer that also calls the client's tools. They are put back when the
/// client sends its outputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingOwnCalls {
    /// How long the log was when the model answered.
    pub(crate) at: usize,
    /// Each call with its index among the parts of the answer.
    pub(crate) calls: Vec<(usize, Call)>,
    /// Their outputs.
    pub(crate) outputs: Vec<Output>,
    /// The ids of the client's own calls in the answer.
    pub(crate) theirs: Vec<String>,
}

impl PendingOwnCalls {
    /// True if `message`, which arrives at log length `at`, is the answer that contained them. A
    /// client that asked again may send another answer.
    pub(crate) fn belongs_to(&self, message: &Message, at: usize) -> bool {
        let ids = message.calls().map(|call| &call.id);
        // Ids may repeat within a conversation, so the position counts as well.
        self.at == at && ids.eq(&self.theirs)
    }
}

/// The pending calls that belong to `message`, which arrives at log length `at`.
pub(crate) fn calls_in_message(
    pending: Vec<PendingOwnCalls>,
    message: &Message,
    at: usize,
) -> Option<PendingOwnCalls> {
    let mut newest_first = pending.into_iter().rev();
    newest_first.find(|pending| pending.belongs_to(message, at))
}

/// The parts of an answer that the client sees: all except calls of our tools.
pub(crate) fn visible_parts(answer: &Message, is_ours: impl Fn(&str) -> bool) -> Vec<Part> {
    let shown = |part: &&Part| part.as_call().is_none_or(|call| !is_ours(&call.name));
    answer.parts.iter().filter(shown).cloned().collect()
}

/// The client's message as the provider sent it: without texts of the hidden `rounds` before it,
/// and with the calls of our tools.
pub(crate) fn restore_provider_message(
    mut message: Message,
    rounds: &[Vec<Part>],
    pending: Option<&PendingOwnCalls>,
) -> Message {
    // The client saw one answer made of several. Its message repeats the texts of the hidden
    // rounds, which are in the log already.
    let came = message.parts.clone();
    if let Some((parts, _)) = without_rounds(&message.parts, rounds) {
        message.parts = parts;
    }
    if let Some(pending) = pending {
        message.parts = put_back(message.parts, &pending.calls);
    }
    if message.parts != came {
        message_map::mark_altered(&mut message);
    }
    message
}

/// `parts` with our calls inserted at their indexes, or at the end.
fn put_back(parts: Vec<Part>, calls: &[(usize, Call)]) -> Vec<Part> {
    let mut parts = parts.into_iter();
    let mut restored: Vec<Part> = Vec::new();
    // The indexes ascend and count all parts of the answer, so each call is put where it was.
    for (index, call) in calls {
        let before = index.saturating_sub(restored.len());
        restored.extend(parts.by_ref().take(before));
        restored.push(Part::Call(call.clone()));
    }
    restored.extend(parts);
    restored
}

/// How many parts of hidden `rounds` the message begins with.
pub(crate) fn repeated_parts(message: &Message, rounds: &[Vec<Part>]) -> usize {
    without_rounds(&message.parts, rounds).map_or(0, |(_, repeated)| repeated)
}

/// `parts` without those of the hidden rounds that they begin with, and the number of the latter.
///
/// A client that asked again got only the rounds of its last answer, which are the last ones. The
/// rounds before them belong to an answer that it never had.
fn without_rounds(parts: &[Part], rounds: &[Vec<Part>]) -> Option<(Vec<Part>, usize)> {
    (0..rounds.len()).find_map(|first| {
        let said = rounds.get(first..)?.concat();
        let repeated = said.iter().filter(|part| !part.is_blank()).count();
        Some((without(parts, &said)?, repeated))
    })
}

/// `parts` without those in `before`. None if they do not begin with them, or if nothing would be
/// left.
fn without(parts: &[Part], before: &[Part]) -> Option<Vec<Part>> {
    let mut left: Vec<Option<Part>> = parts.iter().cloned().map(Some).collect();
    // For each kind of part, how far the client's parts are matched. Positions only move forward,
    // so this takes linear time.
    let mut gone: HashMap<Discriminant<Part>, usize> = HashMap::new();
    for said in before.iter().filter(|part| !part.is_blank()) {
        let from = gone.entry(discriminant(said)).or_default();
        let same_kind =
            |part: &Option<Part>| part.as_ref().is_some_and(|part| same_kind(part, said));
        *from += left.get(*from..)?.iter().position(same_kind)?;
        let part = left.get_mut(*from)?;
        *part = remaining_part(part.as_ref()?, said)?;
    }
    let left: Vec<Part> = left.into_iter().flatten().collect();
    (!left.is_empty()).then_some(left)
}

fn same_kind(one: &Part, other: &Part) -> bool {
    discriminant(one) == discriminant(other)
}

/// The rest of `part` after `said`: nothing, or more text. None if it begins differently.
#[expect(
    clippy::option_option,
    reason = "no match, a whole match, a match with a rest"
)]
fn remaining_part(part: &Part, said: &Part) -> Option<Option<Part>> {
    match (part, said) {
        (Part::Text(part), Part::Text(said)) => {
            // In Chat Completions the client gets the texts of all rounds as one string, so its
            // part may go on with the text of the next round.
            let rest = part.text.strip_prefix(said.text.as_str())?;
            Some((!rest.is_empty()).then(|| Part::text(rest)))
        }
        (Part::Reasoning(part), Part::Reasoning(said)) if part.seal == said.seal => {
            let rest = part.text.strip_prefix(said.text.as_str())?;
            Some((!rest.is_empty()).then(|| Part::reasoning(rest)))
        }
        (part, said) => (part == said).then_some(None),
    }
}

/// The session in which pending calls are stored, next to the one they belong to.
///
/// An answer may call the client's tools and ours at once. The client returns with its own outputs
/// and does not know our calls, so they are stored until then. The model gets the same bytes,
/// whether or not the proxy was restarted in between.
fn place(session: &SessionId) -> Result<SessionId> {
    SessionId::new(format!("{session}/kept"))
}

/// Stores the pending calls of `session`.
pub(crate) fn keep(
    store: &dyn Store,
    session: &SessionId,
    pending: &PendingOwnCalls,
) -> Result<()> {
    let place = place(session)?;
    let entry = serde_json::to_vec(pending).unwrap_or_default();
    let position = store.position(&place, Stream::Log)?;
    store.append(&place, Stream::Log, position, &[&entry])?;
    Ok(())
}

/// The pending calls of `session` at log length `at`, oldest first.
pub(crate) fn find(
    store: &dyn Store,
    session: &SessionId,
    at: usize,
) -> Result<Vec<PendingOwnCalls>> {
    let mut pending = newest(store, session)?;
    pending.retain(|pending| pending.at == at);
    Ok(pending)
}

/// The newest pending calls of `session`, oldest first. Only these can belong to an answer that the
/// client continues.
pub(crate) fn newest(store: &dyn Store, session: &SessionId) -> Result<Vec<PendingOwnCalls>> {
    let place = place(session)?;
    let position = store.position(&place, Stream::Log)?;
    // Most conversations have none, and a shared store is a network round trip away.
    if position == 0 {
        return Ok(Vec::new());
    }
    let first = position.saturating_sub(MOST_PENDING as u64);
    let entries = store.read(&place, Stream::Log, first, MOST_PENDING)?;
    let pending = entries
        .iter()
        .filter_map(|entry| serde_json::from_slice(entry).ok());
    Ok(pending.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_store::MemoryStore;

    fn is_ours(name: &str) -> bool {
        name == "mine"
    }

    #[test]
    fn text_before_a_hidden_call_is_not_repeated() {
        let first = Message::assistant("Let me see. ").with_call(Call::new("h", "mine", "{}"));
        let before = [visible_parts(&first, is_ours)];
        assert_eq!(before[0].len(), 1);
        // Chat Completions: one text.
        let joined = Message::assistant("Let me see. It is 7.");
        assert_eq!(
            restore_provider_message(joined, &before, None).text(),
            "It is 7."
        );
        // Messages: two parts.
        let mut parts = Message::assistant("Let me see. ");
        parts.parts.push(Part::text("It is 7."));
        assert_eq!(
            restore_provider_message(parts, &before, None).text(),
            "It is 7."
        );
        // A client that changed it gets it back as it is.
        let other = Message::assistant("It is 7.");
        assert_eq!(
            restore_provider_message(other.clone(), &before, None),
            other
        );
    }

    #[test]
    fn rounds_of_an_answer_that_the_client_never_had_are_skipped() {
        let rounds = [vec![Part::text("First. ")], vec![Part::text("Second. ")]];
        let message = Message::assistant("Second. It is 7.");
        assert_eq!(repeated_parts(&message, &rounds), 1);
        let restored = restore_provider_message(message, &rounds, None);
        assert_eq!(restored.text(), "It is 7.");
        assert_eq!(repeated_parts(&Message::assistant("It is 7."), &rounds), 0);
    }

    #[test]
    fn calls_of_ours_are_put_back_where_they_were() {
        let message = Message::assistant("both").with_call(Call::new("c", "theirs", "{}"));
        let pending = PendingOwnCalls {
            at: 3,
            calls: vec![(1, Call::new("h", "mine", "{}"))],
            outputs: vec![Output::new("h", "found")],
            theirs: vec!["c".to_owned()],
        };
        // Another answer at the same place, and the same answer elsewhere, have none.
        let other = Message::assistant("both").with_call(Call::new("d", "theirs", "{}"));
        let found = |message: &Message, at| calls_in_message(vec![pending.clone()], message, at);
        assert_eq!(found(&other, 3), None);
        assert_eq!(found(&message, 5), None);
        assert!(found(&message, 3).is_some());
        let sent = restore_provider_message(message, &[], Some(&pending));
        let ids: Vec<&str> = sent.calls().map(|call| call.id.as_str()).collect();
        assert_eq!(ids, ["h", "c"]);
    }

    #[test]
    fn signed_thoughts_are_told_apart() {
        let thought = |text: &str, seal: &str| {
            let mut part = Part::reasoning(text);
            if let Part::Reasoning(reasoning) = &mut part {
                reasoning.seal = Some(seal.to_owned());
            }
            part
        };
        let parts = vec![thought("a", "1"), thought("b", "2"), Part::text("t")];
        let left = without(&parts, &[thought("a", "1")]).unwrap();
        assert_eq!(left, parts[1..]);
        assert!(without(&parts, &[thought("a", "3")]).is_none());
    }

    #[test]
    fn pending_calls_are_found_at_their_log_length() {
        let store = MemoryStore::new();
        let session = SessionId::new("s").unwrap();
        assert_eq!(find(&store, &session, 0).unwrap(), []);
        let pending = |at: usize| PendingOwnCalls {
            at,
            calls: vec![(1, Call::new("h", "mine", "{}"))],
            outputs: vec![Output::new("h", "found")],
            theirs: vec!["c".to_owned()],
        };
        keep(&store, &session, &pending(3)).unwrap();
        for _ in 0..2 * MOST_PENDING {
            keep(&store, &session, &pending(7)).unwrap();
        }
        let kept = vec![pending(7); MOST_PENDING];
        assert_eq!(find(&store, &session, 7).unwrap(), kept);
        assert_eq!(find(&store, &session, 3).unwrap(), []);
        assert_eq!(find(&store, &session, 8).unwrap(), []);
    }
}
