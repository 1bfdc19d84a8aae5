//! One batch of reductions at a switch point.

use std::sync::Arc;

use trimtab_model::{Message, Ref};

use super::arithmetic::Account;
use super::block::{self, Contents};
use super::draft::Draft;
use super::settings::Steady;
use super::situation::Situation;
use super::survey::Survey;
use crate::normalise::Slot;
use crate::plan::Edit;

/// A batch of reductions. What it hides has to be stored before it is carried out.
#[derive(Clone, Debug)]
pub struct Rewrite {
    pub(super) edits: Vec<Edit>,
    pub(super) hides: Option<Hides>,
    pub(super) account: Account,
}

/// What is hidden, and the block that stands for it.
#[derive(Clone, Debug)]
pub(super) struct Hides {
    pub(super) messages: Vec<Arc<Message>>,
    pub(super) archive: String,
    pub(super) contents: Contents,
    pub(super) before: usize,
}

impl Rewrite {
    /// What is hidden, as text: to be stored, and its ref given to [`finish`](Self::finish).
    pub fn archive(&self) -> Option<&str> {
        self.hides.as_ref().map(|hides| hides.archive.as_str())
    }

    /// The messages that are hidden, oldest first.
    pub fn hidden(&self) -> &[Arc<Message>] {
        self.hides.as_ref().map_or(&[], |hides| &hides.messages)
    }

    /// What it costs and saves.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// The edits. Without a ref nothing is hidden, and the window may stay above its mark.
    pub fn finish(self, archived: Option<&Ref>) -> Vec<Edit> {
        let mut edits = self.edits;
        match (self.hides, archived) {
            (Some(hides), Some(archived)) => edits.push(Edit::Insert {
                before: hides.before,
                message: block::block(archived, &hides.contents),
            }),
            (Some(_), None) => edits.retain(|edit| matches!(edit, Edit::Show { .. })),
            (None, _) => {}
        }
        edits
    }
}

impl Steady {
    /// The reductions that bring a window down to its low-water mark; none if there is nothing
    /// to reduce. `slots` is the window as it is now, not yet normalised.
    pub fn rewrite(&self, slots: &[Slot], situation: &Situation<'_>) -> Option<Rewrite> {
        let survey = Survey::new(slots, situation);
        let fixed = survey.fixed(self.user(situation.room)).min(situation.room);
        let flexible = situation.room - fixed;
        let mut draft = Draft::new(self, &survey, situation, fixed, flexible);
        draft.supersede();
        draft.cards();
        draft.hide();
        draft.shorten();
        draft.finish()
    }
}
