//! A summary that was asked for and is not complete yet.

use trimtab_engine::decide::summary::answer::SummaryEnding;
use trimtab_engine::decide::summary::requests::SummaryRequests;
use trimtab_engine::decide::{ArchivedOutputs, CompactionDraft};
use trimtab_model::Usage;
use trimtab_model::estimate::{Calibration, Measure};

pub use trimtab_engine::decide::summary::requests::SummaryRequest;

/// The parameters of a compaction by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManualCompaction {
    /// Additional instructions for the summary; empty for none.
    pub instructions: String,
    /// The number of turns to keep, instead of the policy's rule.
    pub keep_turns: Option<usize>,
    /// The number of messages that an earlier compaction left, if the session was opened with its
    /// result. The journal of the session has its own compactions.
    pub already_compacted: usize,
}

/// The result of a request to a summariser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SummariserAnswer {
    /// It answered.
    Text {
        /// Its text.
        text: String,
        /// How the answer ended.
        ending: SummaryEnding,
        /// The usage of the call.
        usage: Option<Usage>,
    },
    /// It failed, and why.
    Failed(String),
}

impl SummariserAnswer {
    /// True if there is no answer.
    pub fn is_failed(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// A plan that waits for a summary. Ask a model for each [`request`](Self::request) in turn, pass
/// its [`answer`](Self::answer), and pass the whole to [`Session::finish`](super::Session::finish).
/// Messages that come meanwhile are kept. It can also be finished without any answer.
#[derive(Clone, Debug)]
pub struct PendingSummary {
    pub(super) wants: PendingWork,
    /// The number of journal entries when it was made: a later plan that moved or hid something
    /// makes it stale.
    pub(super) journal: u64,
    /// What was known about how the model counts.
    pub(super) calibration: Box<Calibration>,
    /// The results of the requests so far, in order.
    pub(super) answers: Vec<SummariserAnswer>,
}

/// The kind of pending work.
#[derive(Clone, Debug)]
pub(super) enum PendingWork {
    /// A summary of old rounds.
    Compaction(Box<CompactionDraft>, SummaryRequests),
    /// A short summary of each archived output.
    ToolSummaries(Box<ArchivedOutputs>),
}

impl PendingSummary {
    /// The next request to the summariser; none if there is nothing more to ask.
    pub fn request(&self) -> Option<SummaryRequest> {
        match &self.wants {
            PendingWork::Compaction(draft, requests) => {
                let tokens = |measure: &Measure| self.calibration.tokens(measure);
                draft.next_request(requests, &texts(&self.answers), &tokens)
            }
            PendingWork::ToolSummaries(archived) => archived.request(self.answers.len()),
        }
    }

    /// Adds the result of the last request.
    pub fn answer(&mut self, answered: SummariserAnswer) {
        self.answers.push(answered);
    }
}

/// The texts of the answers, none for failures.
pub(super) fn texts(answers: &[SummariserAnswer]) -> Vec<Option<&str>> {
    let answered = answers.iter();
    answered
        .map(|answered| match answered {
            SummariserAnswer::Text { text, .. } => Some(text.as_str()),
            SummariserAnswer::Failed(_) => None,
        })
        .collect()
}
