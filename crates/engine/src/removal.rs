//! Removes messages without splitting a round.

use std::borrow::Borrow;
use std::collections::BTreeSet;

use trimtab_model::{DisjointSets, Message, rounds, work};

/// The messages that must be removed or kept together with `chosen`: calls with their outputs and
/// outputs with their calls, to a fixed point.
///
/// ```
/// # use trimtab_engine::removal::with_counterparts;
/// # use trimtab_model::{Call, Message};
/// let log = [
///     Message::user("q"),
///     Message::assistant("")
///         .with_call(Call::new("a", "read", "{}"))
///         .with_call(Call::new("b", "read", "{}")),
///     Message::output("a", "1"),
///     Message::output("b", "2"),
/// ];
/// assert!(with_counterparts(&log, [3]).into_iter().eq([1, 2, 3]));
/// ```
pub fn with_counterparts<M: Borrow<Message>>(
    messages: &[M],
    chosen: impl IntoIterator<Item = usize>,
) -> BTreeSet<usize> {
    let mut chosen = chosen.into_iter().peekable();
    // Finding the groups walks all messages.
    if chosen.peek().is_none() {
        return BTreeSet::new();
    }
    RoundGroups::of(messages).with_counterparts(chosen)
}

/// The nearest position at or before `cut` where removing everything in front splits no round. If
/// that is the front itself, the next such position after `cut`.
///
/// ```
/// # use trimtab_engine::removal::safe_cut;
/// # use trimtab_model::{Call, Message};
/// let log = [
///     Message::assistant("a"),
///     Message::assistant("").with_call(Call::new("c", "read", "{}")),
///     Message::output("c", "text"),
///     Message::assistant("b"),
/// ];
/// assert_eq!([1, 2, 3].map(|cut| safe_cut(&log, cut)), [1, 1, 3]);
/// assert_eq!(safe_cut(&log[1..], 1), 2);
/// ```
pub fn safe_cut<M: Borrow<Message>>(messages: &[M], cut: usize) -> usize {
    let cuts = SafeCuts::of(messages);
    match cuts.at_or_before(cut) {
        0 => cuts.at_or_behind(cut),
        back => back,
    }
}

/// The positions at which a cut splits no round.
pub(crate) struct SafeCuts {
    /// For each message, true if a cut before it splits a round.
    splits: Vec<bool>,
}

impl SafeCuts {
    pub(crate) fn of<M: Borrow<Message>>(messages: &[M]) -> Self {
        Self::between(messages.len(), rounds::pair(messages).spans())
    }

    /// The same for given spans, which must not be split. Each is a first and a last message.
    pub(crate) fn between(
        messages: usize,
        spans: impl IntoIterator<Item = (usize, usize)>,
    ) -> Self {
        let mut begins = vec![0usize; messages];
        let mut ends = vec![0usize; messages];
        for (first, last) in spans {
            if let (Some(begins), Some(ends)) = (begins.get_mut(first), ends.get_mut(last)) {
                *begins += 1;
                *ends += 1;
            }
        }
        // Counting how many spans are open at each message takes one pass, however the spans
        // overlap.
        let mut open = 0;
        let splits = begins.iter().zip(&ends).map(|(begins, ends)| {
            let splits = open > 0;
            open = open + begins - ends;
            splits
        });
        Self {
            splits: splits.collect(),
        }
    }

    /// True if a cut before this message splits a round.
    pub(crate) fn splits(&self, cut: usize) -> bool {
        self.splits.get(cut).copied().unwrap_or(false)
    }

    /// The nearest safe position at or before `cut`.
    pub(crate) fn at_or_before(&self, cut: usize) -> usize {
        // Position 0 never splits anything, so the search always ends.
        (0..=cut).rev().find(|at| !self.splits(*at)).unwrap_or(0)
    }

    /// The nearest safe position at or after `cut`.
    pub(crate) fn at_or_behind(&self, cut: usize) -> usize {
        let end = self.splits.len().max(cut);
        (cut..end).find(|at| !self.splits(*at)).unwrap_or(end)
    }
}

/// Groups of messages that share rounds.
pub(crate) struct RoundGroups {
    /// For each message the first one of its group.
    group_of: Vec<usize>,
    /// For the first message of each group all its messages, in order.
    messages_of: Vec<Vec<usize>>,
}

impl RoundGroups {
    /// Groups `messages`. Keep the result to ask more than one question about them.
    pub(crate) fn of<M: Borrow<Message>>(messages: &[M]) -> Self {
        let mut sets = DisjointSets::new(messages.len());
        for (first, last) in rounds::pair(messages).spans() {
            sets.join(first, last);
        }
        let group_of: Vec<usize> = (0..messages.len()).map(|at| sets.first_of(at)).collect();
        let mut messages_of = vec![Vec::new(); messages.len()];
        for (at, first) in group_of.iter().enumerate() {
            if let Some(group) = messages_of.get_mut(*first) {
                group.push(at);
            }
        }
        Self {
            group_of,
            messages_of,
        }
    }

    /// The messages that must be removed or kept together with `chosen`.
    pub(crate) fn with_counterparts(
        &self,
        chosen: impl IntoIterator<Item = usize>,
    ) -> BTreeSet<usize> {
        let mut together = BTreeSet::new();
        for at in chosen {
            work::step(1);
            if together.contains(&at) {
                continue;
            }
            let group = self
                .group_of
                .get(at)
                .and_then(|group| self.messages_of.get(*group));
            work::step(group.map_or(0, Vec::len));
            together.extend(group.into_iter().flatten());
        }
        together
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Call, Output, Part, Role};

    fn calls(ids: &[&str]) -> Message {
        ids.iter().fold(Message::assistant(""), |message, id| {
            message.with_call(Call::new(*id, "tool", "{}"))
        })
    }

    #[test]
    fn an_output_before_its_call_takes_it_along() {
        let log = [Message::output("a", ""), calls(&["a"])];
        assert!(with_counterparts(&log, [0]).into_iter().eq([0, 1]));
    }

    #[test]
    fn a_message_that_answers_two_rounds_joins_them() {
        let both = Message::new(
            Role::Tool,
            vec![
                Part::Output(Output::new("a", "")),
                Part::Output(Output::new("b", "")),
            ],
        );
        let log = [calls(&["a"]), calls(&["b"]), both];
        assert!(with_counterparts(&log, [0]).into_iter().eq([0, 1, 2]));
    }
}
