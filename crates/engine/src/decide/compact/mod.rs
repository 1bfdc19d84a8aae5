//! Compaction: replaces old rounds by a summary.
//!
//! `timing` says when, `survivors` what stays, by the rules of [`keep_rules`], and `draft` what must
//! be stored and summarised first. [`rebuild`] turns the result into edits.

mod draft;
mod finished;
pub mod keep_rules;
pub mod rebuild;
mod survivors;
mod timing;

pub use draft::{CompactionDraft, CompactionRequest, EstimateTokens, draft};
pub(in crate::decide) use draft::{DraftContent, summary_tokens};
pub use finished::FinishedCompaction;
pub(in crate::decide) use survivors::Survivors;
pub use timing::{
    failed_before, gained_enough, is_suspended, may_summarise_outputs, pays, time_to_compact,
};
