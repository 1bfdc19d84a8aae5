//! Compaction: replaces old rounds by a summary.
//!
//! Decisions and their execution are separate. [`keep_rules`] selects what survives, [`prompt`] and
//! [`request`] build the request to the summariser, [`summary_requests`] makes it fit its window,
//! [`answer`] parses its answer, and [`rebuild`] turns all of that into edits. Nothing here calls a model.

pub mod answer;
pub mod archive;
pub mod keep_rules;
pub mod prompt;
pub mod rebuild;
pub mod recovery;
pub mod request;
pub mod summary_requests;
pub(crate) mod text;
