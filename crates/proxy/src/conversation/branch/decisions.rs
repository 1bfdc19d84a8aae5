//! The decisions of a conversation: whether they are its own, and who made them.

use trimtab::session::SharedBeginning;
use trimtab_engine::journal::JournalEntry;
use trimtab_engine::plan::{Edit, Plan, PlanReason};
use trimtab_engine::policy::Policy;

use super::Branch;

impl Branch {
    /// True if it decided what `longer` decided for the same messages, so that a copy of that
    /// beginning is as good.
    pub(crate) fn decided_like(&self, longer: &Self) -> bool {
        let messages = self.session.projection().log().len();
        // Otherwise one of them has rounds that the client does not see.
        if longer.log_length(self.fingerprints().len()) != messages {
            return false;
        }
        let own = Decisions::of(self, None);
        // A plan that was made after these messages were sent may be in both, or not yet in this one.
        [false, true].into_iter().any(|goes_on| {
            let beginning = SharedBeginning { messages, goes_on };
            Decisions::of(longer, Some(beginning)) == own
        })
    }

    /// True if a request under `policy` may continue it: a policy that sends everything unchanged
    /// does not continue what another one has edited. `asked_for` is true if the request named the
    /// policy.
    pub(crate) fn suits(&self, policy: &Policy, asked_for: bool) -> bool {
        let policy = if self.chosen && !asked_for {
            &self.session.setup().policy
        } else {
            policy
        };
        !(policy.sends_unchanged() && self.is_edited_by_policy())
    }

    fn is_edited_by_policy(&self) -> bool {
        let projection = self.session.projection();
        !projection.is_unedited() && projection.journal().plans().any(is_of_policy)
    }
}

/// What a branch decided about its messages.
#[derive(PartialEq, Eq)]
struct Decisions<'a> {
    /// The views that were chosen at admission. They are apart from the others, because a branch
    /// that was read from the store has them at the beginning of its journal.
    views: Vec<&'a [Edit]>,
    others: Vec<&'a JournalEntry>,
}

impl<'a> Decisions<'a> {
    /// Those of a beginning, or of all messages.
    fn of(branch: &'a Branch, beginning: Option<SharedBeginning>) -> Self {
        let is_in = |message: usize| beginning.is_none_or(|part| message < part.messages);
        let includes = |entry: &JournalEntry| beginning.is_none_or(|part| part.includes(entry));
        let (mut views, mut others) = (Vec::new(), Vec::new());
        for entry in branch.session.projection().journal().entries() {
            if let (JournalEntry::Plan(plan), Some(message)) = (entry, entry.admitted_message()) {
                views.extend(is_in(message).then_some(plan.edits.as_slice()));
            } else if !matches!(entry, JournalEntry::Judged { .. }) {
                others.push(entry);
            }
        }
        // Journals are applied in order, so nothing counts after an entry that does not.
        let first_out = others.iter().position(|entry| !includes(entry));
        others.truncate(first_out.unwrap_or(others.len()));
        Self { views, others }
    }
}

/// True if a policy made the plan: no user asked for it, and it is no repair.
fn is_of_policy(plan: &Plan) -> bool {
    let is_repair = |edit: &Edit| matches!(edit, Edit::StripReasoning { .. });
    plan.reason != PlanReason::ByHand && !plan.edits.iter().all(is_repair)
}
