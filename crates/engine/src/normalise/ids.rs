//! Chooses call ids that a dialect accepts.

use std::collections::HashMap;

use trimtab_model::{Dialect, work};

use super::rules::{ids_are_global, is_legal_in_id};

/// Replaces an empty id.
const NAMELESS: &str = "call";

/// The ids that were sent, each with the number to try when it occurs again.
pub(super) type SentIds = HashMap<String, u64>;

/// Chooses the ids under which calls are sent.
pub(super) struct CallIds<'a> {
    dialect: Dialect,
    sent_before: &'a SentIds,
    /// The ids that were sent now.
    pub(super) sent: SentIds,
}

impl<'a> CallIds<'a> {
    pub(super) fn new(dialect: Dialect, before: &'a SentIds) -> Self {
        Self {
            dialect,
            sent_before: before,
            sent: SentIds::new(),
        }
    }

    /// The ids for the calls of one round, in order. An id that the dialect accepts stays.
    pub(super) fn choose<'i>(&mut self, ids: impl Iterator<Item = &'i str>) -> Vec<String> {
        let of_round = ids.map(|id| self.choose_one(id)).collect();
        if !ids_are_global(self.dialect) {
            // A new map instead of `clear`, which costs as much as the map once held.
            self.sent = SentIds::new();
        }
        of_round
    }

    fn choose_one(&mut self, id: &str) -> String {
        // Two ids can become equal by their spelling, so uniqueness is checked after it.
        let spelled = spell(id, self.dialect);
        let Some(next) = self.next_number(&spelled) else {
            // The first repetition of `id` becomes `id_2`.
            self.sent.insert(spelled.clone(), 2);
            return spelled;
        };
        // The number grows with each repetition and is remembered, so that an id which occurs n
        // times takes n steps, not n squared. The loop runs only if the client itself sent such a
        // numbered id.
        let mut number = next;
        let mut free = format!("{spelled}_{number}");
        while self.next_number(&free).is_some() {
            work::step(1);
            number += 1;
            free = format!("{spelled}_{number}");
        }
        self.sent.insert(spelled, number + 1);
        self.sent.insert(free.clone(), 2);
        free
    }

    /// The number to try for an id that was sent before; none if it is free.
    fn next_number(&self, id: &str) -> Option<u64> {
        self.sent
            .get(id)
            .or_else(|| self.sent_before.get(id))
            .copied()
    }
}

fn spell(id: &str, dialect: Dialect) -> String {
    if id.is_empty() {
        return NAMELESS.to_owned();
    }
    let legal = |c: char| if is_legal_in_id(c, dialect) { c } else { '_' };
    id.chars().map(legal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(rounds: &[&[&str]], dialect: Dialect) -> Vec<Vec<String>> {
        let before = SentIds::new();
        let mut ids = CallIds::new(dialect, &before);
        rounds
            .iter()
            .map(|round| ids.choose(round.iter().copied()))
            .collect()
    }

    #[test]
    fn an_accepted_id_is_kept() {
        assert_eq!(
            chosen(&[&["a", "f.x:0"], &["a"]], Dialect::Chat),
            [vec!["a", "f.x:0"], vec!["a"]]
        );
    }

    #[test]
    fn ids_become_unique_in_the_window_where_the_dialect_wants_it() {
        let rounds: [&[&str]; 4] = [&["a"], &["a"], &["a_2"], &["a"]];
        assert_eq!(
            chosen(&rounds, Dialect::Messages),
            [["a"], ["a_2"], ["a_2_2"], ["a_3"]]
        );
    }

    #[test]
    fn ids_are_spelled_as_the_dialect_wants_it() {
        assert_eq!(
            chosen(&[&["functions.x:0"]], Dialect::Messages),
            [["functions_x_0"]]
        );
        assert_eq!(chosen(&[&["", ""]], Dialect::Chat), [["call", "call_2"]]);
    }
}
