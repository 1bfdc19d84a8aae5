//! Compaction: old rounds become a summary.
//!
//! Deciding and doing are apart. [`keep_rules`] says what survives, [`prompt`] and [`request`] say
//! what the summariser is asked, [`summary_requests`] how it is asked within its own window;
//! [`answer`] reads what it said, [`audit`] looks for what it left out, and [`fallback`] does
//! without it;
//! [`rebuild`] turns all of it into edits. Nothing here talks to a model.

pub mod answer;
pub mod archive;
pub mod audit;
pub mod fallback;
pub mod keep_rules;
pub mod prompt;
pub mod rebuild;
pub mod recovery;
pub mod request;
pub mod summary_requests;
pub(crate) mod text;
pub mod text_budget;
