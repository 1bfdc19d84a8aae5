//! Trims by budget: the oldest outputs become placeholders until all of them fit.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};
use trimtab_model::rounds::PartPosition;
use trimtab_model::{Message, Output};

use super::{ViewChange, WindowOutputs, placeholder};
use crate::budget::percent;
use crate::observation::{is_shorter, shown_as};

/// The limit of all outputs of a window together, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OutputBudget {
    /// A fixed limit. The other settings are then ignored.
    pub tokens: Option<u64>,
    /// Share of the model's window, in percent, rounded down.
    pub window_percent: u64,
    /// The minimum of the share.
    pub min: u64,
    /// The maximum of the share; also the limit if the window is unknown.
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
        let share = percent(window, self.window_percent);
        // Not `clamp`, which panics if a user sets a minimum above the maximum.
        share.max(self.min).min(self.max)
    }
}

/// Outputs whose placeholder saves fewer tokens than this are trimmed last, because they cost next
/// to nothing.
pub(super) const LARGE_SAVING: u64 = 50;

/// The design's estimate: a quarter of the bytes, rounded up.
pub fn estimate(text: &str) -> u64 {
    text.len().div_ceil(4) as u64
}

impl<M: Borrow<Message>> WindowOutputs<'_, M> {
    /// The outputs that must become placeholders so that all outputs fit `budget` tokens.
    ///
    /// The oldest come first, and no more than necessary; short ones only after all others, and
    /// only if that makes the rest fit. The newest batch is never touched, nor are outputs of tools
    /// that `protect` names, or outputs that a placeholder would not make smaller. Outputs that
    /// were shortened at admission are treated like any other, if they are stored.
    pub fn over_budget(&self, budget: u64, protect: impl Fn(&str) -> bool) -> Vec<ViewChange> {
        let mut excess = self.tokens().saturating_sub(budget);
        if excess == 0 {
            return Vec::new();
        }
        let mut chosen = enough_to_save(self.to_trim(true, &protect), &mut excess);
        if excess > 0 {
            let small = enough_to_save(self.to_trim(false, &protect), &mut excess);
            // Trimming all small outputs without reaching the budget would lose text for nothing.
            if excess == 0 {
                chosen.extend(small);
            }
        }
        // Two passes chose them; plans list outputs in the order of the log.
        chosen.sort_unstable();
        let change = |position: PartPosition| {
            let (_, output) = self.get(position)?;
            let placeholder = placeholder::plain(output.stored.as_ref());
            Some(ViewChange {
                message: position.message,
                part: position.part,
                output: shown_as(&output, placeholder)?,
            })
        };
        chosen.into_iter().filter_map(change).collect()
    }
}

/// As many outputs as needed to save `excess` tokens. `excess` becomes the remainder.
fn enough_to_save(
    outputs: impl Iterator<Item = (PartPosition, u64)>,
    excess: &mut u64,
) -> Vec<PartPosition> {
    let mut chosen = Vec::new();
    for (place, saves) in outputs {
        if *excess == 0 {
            break;
        }
        *excess = excess.saturating_sub(saves);
        chosen.push(place);
    }
    chosen
}

/// The tokens that the placeholder of an output with this text would save; 0 if it would not be
/// smaller, or if the output could not be retrieved.
pub(super) fn saving(output: &Output, text: &str) -> u64 {
    // A view that was never stored is the only copy of its text.
    let is_last_copy = output.trimmed && output.stored.is_none();
    if is_last_copy {
        return 0;
    }
    let placeholder = placeholder::plain(output.stored.as_ref());
    if !is_shorter(&placeholder, text) {
        return 0;
    }
    estimate(text).saturating_sub(estimate(&placeholder))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Call, Part};

    fn trim_outputs(
        log: &[Message],
        budget: u64,
        protect: impl Fn(&str) -> bool,
    ) -> Vec<ViewChange> {
        WindowOutputs::of(log).over_budget(budget, protect)
    }

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
    fn outputs_of_several_tools_go_oldest_first() {
        let ids = ["b", "a", "c", "a", "b", "c", "d"];
        let log: Vec<Message> = ids.iter().flat_map(|id| round(&[*id], 400)).collect();
        // Four outputs of 100 tokens fit, so three of the oldest must go, whatever their tools.
        assert_eq!(trimmed(&log, 430, ""), [1, 3, 5]);
    }

    #[test]
    fn protected_tools_are_known_by_their_calls() {
        let log = [round(&["a"], 400), round(&["b"], 400), round(&["c"], 9)].concat();
        assert_eq!(trimmed(&log, 0, "tool_a"), [3]);
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
    fn hidden_outputs_do_not_count() {
        let mut log = [round(&["a"], 4_000), round(&["b"], 40), round(&["c"], 40)].concat();
        log[1].meta.agent_visible = Some(false);
        assert!(trimmed(&log, 20, "").is_empty());
    }
}
