//! Edits and plans: the only way in which a window differs from its log.
//!
//! [`decide`](crate::decide) makes plans, and the journal keeps the executed ones.

mod provider_parts;

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use trimtab_model::{Message, Output, Ref};

/// One change of the window. Positions are those of the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "edit", rename_all = "snake_case")]
pub enum Edit {
    /// Shows an output differently: as a shorter view or a placeholder.
    Show {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
        /// What is shown instead.
        output: Output,
    },
    /// Shows a part that is not an output as text, for example an image as a note about where it is
    /// stored.
    ShowAsText {
        /// Position of the message.
        message: usize,
        /// Index of the part in it.
        part: usize,
        /// What is shown instead.
        text: String,
    },
    /// Hides a run of rounds. System messages stay.
    Hide {
        /// The first position that is hidden.
        from: usize,
        /// The first position after the run.
        to: usize,
    },
    /// Archives an output: hides it from the model, and still shows it to the user.
    Archive {
        /// Position of the message.
        message: usize,
    },
    /// Removes what earlier plans inserted up to a position.
    Withdraw {
        /// The last position whose insertions are removed.
        to: usize,
    },
    /// Inserts a message of ours: a summary, a retain, a digest, a note.
    Insert {
        /// The position that it stands before; the length of the log for the end.
        before: usize,
        /// The message.
        message: Arc<Message>,
    },
    /// Removes the reasoning of a run of messages, because its provider would reject it.
    StripReasoning {
        /// The first position whose reasoning is removed.
        #[serde(default)]
        from: usize,
        /// The first position after the run.
        before: usize,
    },
}

impl Edit {
    /// Inserts a message of ours before a position of the log.
    pub(crate) fn insert(before: usize, message: Message) -> Self {
        let message = Arc::new(message);
        Self::Insert { before, message }
    }

    /// The position of the message that it shows differently or archives.
    pub fn shown_message(&self) -> Option<usize> {
        match self {
            Self::Show { message, .. }
            | Self::ShowAsText { message, .. }
            | Self::Archive { message } => Some(*message),
            _ => None,
        }
    }
}

/// Why a plan was made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum PlanReason {
    /// There was nothing to do.
    #[default]
    Nothing,
    /// A new output was larger than its view may be.
    Admission,
    /// Old outputs were over their budget.
    OutputsOverBudget,
    /// A trigger fired.
    Triggered {
        /// The trigger, in words.
        trigger: String,
    },
    /// The window would not have fit.
    Fit,
    /// The provider rejected the window as too large.
    Overflow,
    /// A user asked for it.
    ByHand,
    /// Something in front of all messages changed: tools or instructions.
    FrontChanged,
}

impl PlanReason {
    /// True if the window cannot be sent without the plan.
    pub fn must_fit(&self) -> bool {
        matches!(self, Self::Fit | Self::Overflow)
    }
}

/// The decision for one call.
///
/// An empty plan means: send the messages unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Why it was made.
    pub reason: PlanReason,
    /// What to change, in order.
    pub edits: Vec<Edit>,
    /// Estimate of the window before, in tokens.
    pub tokens_before: u64,
    /// Estimate of the window after, in tokens.
    pub tokens_after: u64,
    /// The refs of everything that it removes.
    pub refs: Vec<Ref>,
    /// The length of the log when it was made.
    #[serde(default)]
    pub at: usize,
    /// How many messages of the log were sent before it was executed. Windows of at most so many
    /// messages were made without it.
    #[serde(default)]
    pub since: usize,
}

impl Plan {
    /// A plan without token figures.
    pub fn new(reason: PlanReason, edits: Vec<Edit>) -> Self {
        let refs = edits.iter().filter_map(|edit| match edit {
            Edit::Show { output, .. } => output.stored.clone(),
            _ => None,
        });
        Self {
            reason,
            refs: refs.collect(),
            edits,
            ..Self::default()
        }
    }

    /// Adds refs, each only once.
    pub(crate) fn name_refs<'r>(&mut self, refs: impl IntoIterator<Item = &'r Ref>) {
        let mut named: HashSet<Ref> = self.refs.iter().cloned().collect();
        let new = refs
            .into_iter()
            .filter(|stored| named.insert((*stored).clone()));
        self.refs.extend(new.cloned());
    }

    /// The plan for a log of `length`: no edit reaches messages that are yet to come.
    #[must_use]
    pub fn within(mut self, length: usize) -> Self {
        // A plan that waited for its summary keeps the age of its draft.
        self.at = if self.at == 0 {
            length
        } else {
            self.at.min(length)
        };
        self.edits.retain_mut(|edit| match edit {
            Edit::Show { message, .. }
            | Edit::ShowAsText { message, .. }
            | Edit::Archive { message } => *message < length,
            Edit::Hide { from, to } => {
                *to = length.min(*to);
                from < to
            }
            Edit::Insert { before, .. } | Edit::StripReasoning { before, .. } => {
                *before = length.min(*before);
                true
            }
            Edit::Withdraw { .. } => true,
        });
        self
    }

    /// True if it replaces messages: a compaction, or a step that drops some.
    pub fn compacts(&self) -> bool {
        let hides = |edit: &Edit| matches!(edit, Edit::Hide { .. });
        self.edits.iter().any(hides)
    }

    /// The messages that it inserts.
    pub fn inserted(&self) -> impl Iterator<Item = &Message> {
        self.edits.iter().filter_map(|edit| match edit {
            Edit::Insert { message, .. } => Some(message.as_ref()),
            _ => None,
        })
    }

    /// True if it shows or inserts a ref that the model can ask for.
    pub fn shows_a_ref(&self) -> bool {
        let names = |text: &str| self.refs.iter().any(|stored| text.contains(stored.id()));
        self.edits.iter().any(|edit| match edit {
            Edit::Show { output, .. } => {
                let stored = output.stored.as_ref();
                stored.is_some_and(|stored| output.text().contains(stored.id()))
            }
            // An observation names its ref only in its text, inside the retrieval call. `refs` has
            // no entry for it.
            Edit::ShowAsText { text, .. } => text.contains("ref_id") || names(text),
            Edit::Insert { message, .. } => names(&message.text()),
            _ => false,
        })
    }

    /// True if it can be undone: everything except the views chosen at admission, and the removal
    /// of what is no longer valid.
    pub fn can_be_undone(&self) -> bool {
        !matches!(
            self.reason,
            PlanReason::Admission | PlanReason::FrontChanged
        )
    }

    /// True if it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }
}
