//! A summary that was asked for and is not there yet.

use trimtab_engine::compaction::answer::SummaryEnding;
use trimtab_engine::compaction::summary_requests::SummaryRequests;
use trimtab_engine::planner::{ArchivedOutputs, CompactionDraft};
use trimtab_model::Usage;
use trimtab_model::estimate::{Calibration, Measure};

pub use trimtab_engine::compaction::summary_requests::SummaryRequest;

/// What is asked of a compaction by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualCompaction {
    /// Further wishes for the summary; empty for none.
    pub instructions: String,
    /// How many turns stay, where that is not for the policy to say.
    pub keep_turns: Option<usize>,
}

/// What became of a request to a summariser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummariserAnswer {
    /// It answered.
    Text {
        /// What it wrote.
        text: String,
        /// How the answer ended.
        ending: SummaryEnding,
        /// What the call used.
        usage: Option<Usage>,
    },
    /// It did not, and why.
    Failed(String),
}

impl SummariserAnswer {
    /// True if there is no answer.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// A plan that wants a summary. Ask a model for each [`request`](Self::request) in turn, tell
/// it the [`answer`](Self::answer), and hand it to [`Session::finish`](super::Session::finish);
/// messages that come meanwhile are kept. Without any answer it is finished all the same.
#[derive(Clone, Debug)]
pub struct PendingSummary {
    pub(super) wants: PendingWork,
    /// How many lines the journal had: a plan since that moved or hid something makes it stale.
    pub(super) journal: u64,
    /// How the model counts, as far as that was known.
    pub(super) calibration: Box<Calibration>,
    /// What was asked so far came to this, in order.
    pub(super) answers: Vec<SummariserAnswer>,
}

/// What is pending.
#[derive(Clone, Debug)]
pub(super) enum PendingWork {
    /// A summary of old rounds.
    Compaction(Box<CompactionDraft>, SummaryRequests),
    /// A few words on each archived output.
    ToolSummaries(Box<ArchivedOutputs>),
}

impl PendingSummary {
    /// What to ask a summariser next; none if there is nothing more to ask.
    pub fn request(&self) -> Option<SummaryRequest> {
        match &self.wants {
            PendingWork::Compaction(draft, requests) => {
                let tokens = |measure: &Measure| self.calibration.tokens(measure);
                draft.next_request(requests, &texts(&self.answers), &tokens)
            }
            PendingWork::ToolSummaries(archived) => archived.request(self.answers.len()),
        }
    }

    /// What the summariser said to the last request.
    pub fn answer(&mut self, answered: SummariserAnswer) {
        self.answers.push(answered);
    }
}

/// What was answered, none where it failed.
pub(super) fn texts(answers: &[SummariserAnswer]) -> Vec<Option<&str>> {
    let answered = answers.iter();
    answered
        .map(|answered| match answered {
            SummariserAnswer::Text { text, .. } => Some(text.as_str()),
            SummariserAnswer::Failed(_) => None,
        })
        .collect()
}
