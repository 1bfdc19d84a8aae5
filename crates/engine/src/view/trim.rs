//! Trimming by budget: the oldest outputs become placeholders until all of them fit.

use std::borrow::{Borrow, Cow};
use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use trimtab_model::rounds::{Answer, Pairing, Place, pair};
use trimtab_model::{Message, Output, Part};

use super::{Change, placeholder};
use crate::observation::observed;

/// How many tokens of output a window may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputBudget {
    /// Said outright; the rest is not looked at then.
    pub tokens: Option<u64>,
    /// Share of the model's window, in percent, rounded down.
    pub window_percent: u64,
    /// The share is never less than this.
    pub min: u64,
    /// The share is never more than this; also the budget where the window is not known.
    pub max: u64,
}

impl Default for OutputBudget {
    fn default() -> Self {
        Self {
            tokens: None,
            window_percent: 25,
            min: 20_000,
            max: 60_000,
        }
    }
}

impl OutputBudget {
    /// The budget for a model with this window.
    ///
    /// ```
    /// # use trimtab_engine::view::trim::OutputBudget;
    /// let budget = OutputBudget::default();
    /// assert_eq!(budget.resolve(Some(128_000)), 32_000);
    /// assert_eq!(budget.resolve(Some(40_000)), 20_000);
    /// assert_eq!(budget.resolve(None), 60_000);
    /// assert_eq!(OutputBudget { tokens: Some(0), ..budget }.resolve(None), 0);
    /// ```
    pub fn resolve(&self, window: Option<u64>) -> u64 {
        if let Some(tokens) = self.tokens {
            return tokens;
        }
        let Some(window) = window.filter(|window| *window > 0) else {
            return self.max;
        };
        let share = u128::from(window) * u128::from(self.window_percent) / 100;
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        share.max(self.min).min(self.max)
    }
}

/// An output whose placeholder saves fewer tokens than this goes only after all others: what it
/// says costs next to nothing.
const LARGE_SAVING: u64 = 50;

/// The design's estimate: a quarter of the bytes, rounded up.
pub fn estimate(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

/// The outputs that have to become placeholders so that all outputs fit `budget` tokens.
///
/// Oldest first, and no more than it takes; short ones only after all others, and only where
/// that makes the rest fit. The newest batch is never touched, nor are outputs
/// of tools that `protect` names, or those that a placeholder would not make smaller. An output
/// that was shortened when it came in goes like any other, if it is stored.
///
/// ```
/// use trimtab_engine::view::trim::trim_outputs;
/// use trimtab_model::Message;
///
/// let log = [Message::output("c1", "x".repeat(400)), Message::output("c2", "y".repeat(40))];
/// let changes = trim_outputs(&log, 20, |_tool| false);
/// assert_eq!(changes.len(), 1);
/// assert_eq!(changes[0].output.text(), "[tool output trimmed]");
/// ```
pub fn trim_outputs<M: Borrow<Message>>(
    messages: &[M],
    budget: u64,
    protect: impl Fn(&str) -> bool,
) -> Vec<Change> {
    let pairing = pair(messages);
    let newest = newest_batch(messages, &pairing);
    let outputs: Vec<_> = visible_outputs(messages, &pairing).collect();
    let total: u64 = outputs.iter().map(|found| found.tokens).sum();
    let may_go = |found: &Found<'_>| {
        // What was shortened and is not stored could not be had back.
        let is_last_copy = found.output.trimmed && found.output.stored.is_none();
        !newest.contains(&found.place) && !is_last_copy && !protect(found.tool)
    };
    let candidates = outputs.into_iter().filter(may_go).filter_map(Trim::of);
    let (large, small): (Vec<_>, Vec<_>) = candidates.partition(|trim| trim.saves >= LARGE_SAVING);
    let mut excess = total.saturating_sub(budget);
    let mut chosen = oldest_first(large, &mut excess);
    if small.iter().map(|trim| trim.saves).sum::<u64>() >= excess {
        chosen.extend(oldest_first(small, &mut excess));
    }
    chosen.sort_unstable_by_key(|trim| trim.found.place);
    chosen.into_iter().map(Trim::change).collect()
}

/// An output that could become a placeholder.
struct Trim<'a> {
    found: Found<'a>,
    placeholder: String,
    saves: u64,
}

impl<'a> Trim<'a> {
    /// None if the placeholder would not be smaller.
    fn of(found: Found<'a>) -> Option<Self> {
        let placeholder = placeholder::plain(found.output.stored.as_ref());
        let saves = found.tokens.checked_sub(estimate(&placeholder));
        let saves = saves.filter(|saves| *saves > 0)?;
        Some(Self {
            found,
            placeholder,
            saves,
        })
    }

    fn change(self) -> Change {
        Change {
            message: self.found.place.message,
            part: self.found.place.part,
            output: replaced(&self.found.output, self.placeholder),
        }
    }
}

/// As many of `trims` as it takes to save `excess` tokens, which becomes what is left of it.
fn oldest_first<'a>(trims: Vec<Trim<'a>>, excess: &mut u64) -> Vec<Trim<'a>> {
    let wanted = trims.into_iter().take_while(|trim| {
        let over = *excess > 0;
        *excess = excess.saturating_sub(trim.saves);
        over
    });
    wanted.collect()
}

/// One output of a log, and what is known of it from the log.
pub(super) struct Found<'a> {
    pub(super) place: Place,
    pub(super) output: Cow<'a, Output>,
    /// The tool's name, from the output or from the call that it answers; may be empty.
    pub(super) tool: &'a str,
    pub(super) tokens: u64,
}

pub(super) fn visible_outputs<'a, M: Borrow<Message>>(
    messages: &'a [M],
    pairing: &'a Pairing,
) -> impl Iterator<Item = Found<'a>> {
    let outputs = pairing.outputs.iter().filter_map(move |&(place, answer)| {
        let message: &Message = messages.get(place.message)?.borrow();
        let output = message.parts.get(place.part)?.as_output()?;
        message.agent_visible().then(|| Found {
            place,
            output: Cow::Borrowed(output),
            tool: output
                .tool
                .as_deref()
                .or_else(|| called(messages, pairing, answer))
                .unwrap_or_default(),
            tokens: estimate(&output.text()),
        })
    });
    // No message is an observation any more once there are outputs.
    observations(messages).chain(outputs)
}

/// The observations among the messages that the model sees.
fn observations<M: Borrow<Message>>(messages: &[M]) -> impl Iterator<Item = Found<'_>> {
    messages.iter().enumerate().filter_map(|(at, message)| {
        let message: &Message = message.borrow();
        let (part, output) = observed(message).filter(|_| message.agent_visible())?;
        Some(Found {
            place: Place { message: at, part },
            tool: "",
            tokens: estimate(&output.text()),
            output: Cow::Owned(output),
        })
    })
}

fn called<'a, M: Borrow<Message>>(
    messages: &'a [M],
    pairing: &Pairing,
    answer: Answer,
) -> Option<&'a str> {
    let Answer::Answers { round, call } = answer else {
        return None;
    };
    let place = pairing.rounds.get(round)?.calls.get(call)?.call;
    let message: &Message = messages.get(place.message)?.borrow();
    message
        .parts
        .get(place.part)?
        .as_call()
        .map(|call| call.name.as_str())
}

/// The outputs of the newest round that has any, and the last output whatever it answers: the
/// model has not worked with these yet.
pub(super) fn newest_batch<M: Borrow<Message>>(
    messages: &[M],
    pairing: &Pairing,
) -> HashSet<Place> {
    if pairing.outputs.is_empty() {
        return newest_observation(messages).into_iter().collect();
    }
    let newest = pairing.rounds.iter().rev().find_map(|round| {
        let outputs: Vec<Place> = round.calls.iter().filter_map(|call| call.output).collect();
        (!outputs.is_empty()).then_some(outputs)
    });
    let last = pairing.outputs.iter().map(|&(place, _)| place).max();
    newest.into_iter().flatten().chain(last).collect()
}

fn newest_observation<M: Borrow<Message>>(messages: &[M]) -> Option<Place> {
    let mut newest = messages.iter().enumerate().rev();
    newest.find_map(|(message, found)| {
        let (part, _) = observed(found.borrow())?;
        Some(Place { message, part })
    })
}

/// `output` with `text` as all its content.
pub(super) fn replaced(output: &Output, text: String) -> Output {
    Output {
        call_id: output.call_id.clone(),
        tool: output.tool.clone(),
        content: vec![Part::text(text)],
        is_error: output.is_error,
        stored: output.stored.clone(),
        trimmed: true,
        extra: output.extra.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Call;

    fn round(ids: &[&str], bytes: usize) -> Vec<Message> {
        let calls = ids.iter().fold(Message::assistant(""), |message, id| {
            message.with_call(Call::new(*id, format!("tool_{id}"), "{}"))
        });
        let outputs = ids.iter().map(|id| Message::output(*id, "x".repeat(bytes)));
        std::iter::once(calls).chain(outputs).collect()
    }

    fn trimmed(log: &[Message], budget: u64, protect: &str) -> Vec<usize> {
        trim_outputs(log, budget, |tool| tool == protect)
            .into_iter()
            .map(|change| change.message)
            .collect()
    }

    #[test]
    fn the_oldest_go_and_no_more_than_it_takes() {
        let log = [round(&["a", "b"], 400), round(&["c"], 400)].concat();
        assert!(trimmed(&log, 300, "").is_empty());
        assert_eq!(trimmed(&log, 299, ""), [1]);
        assert_eq!(trimmed(&log, 0, ""), [1, 2]);
    }

    #[test]
    fn the_whole_newest_round_is_protected() {
        let log = [round(&["a"], 400), round(&["b", "c"], 400)].concat();
        assert_eq!(trimmed(&log, 0, ""), [1]);
    }

    #[test]
    fn protected_tools_are_known_by_their_calls() {
        let log = [round(&["a"], 400), round(&["b"], 400), round(&["c"], 9)].concat();
        assert_eq!(trimmed(&log, 0, "tool_a"), [3]);
    }

    #[test]
    fn an_output_that_would_not_get_smaller_stays() {
        let log = [round(&["a"], 24), round(&["b"], 25), round(&["c"], 9)].concat();
        assert_eq!(trimmed(&log, 15, ""), [3]);
    }

    #[test]
    fn short_outputs_go_last_and_only_where_that_helps() {
        let log = [
            round(&["a"], 68),
            round(&["b"], 4_000),
            round(&["c"], 68),
            round(&["d"], 400),
        ];
        let log = log.concat();
        assert_eq!(trimmed(&log, 600, ""), [3]);
        assert_eq!(trimmed(&log, 130, ""), [1, 3]);
        assert_eq!(trimmed(&log, 0, ""), [3]);
    }

    #[test]
    fn an_output_that_was_shortened_goes_if_it_is_stored() {
        let mut log = [round(&["a"], 4_000), round(&["b"], 400)].concat();
        let stored = trimtab_testkit::made_ref("r1", None, None);
        for stored in [None, Some(stored)] {
            let goes = usize::from(stored.is_some());
            if let Some(Part::Output(output)) = log[1].parts.first_mut() {
                output.trimmed = true;
                output.stored = stored;
            }
            assert_eq!(trimmed(&log, 200, "").len(), goes);
        }
    }

    #[test]
    fn trimming_twice_is_trimming_once() {
        let mut log = [round(&["a"], 400), round(&["b"], 400)].concat();
        for change in trim_outputs(&log, 0, |_| false) {
            log[change.message].parts[change.part] = Part::Output(change.output);
        }
        assert!(trim_outputs(&log, 0, |_| false).is_empty());
    }

    #[test]
    fn hidden_outputs_do_not_count() {
        let mut log = [round(&["a"], 4_000), round(&["b"], 40), round(&["c"], 40)].concat();
        log[1].meta.agent_visible = Some(false);
        assert!(trimmed(&log, 20, "").is_empty());
    }
}
