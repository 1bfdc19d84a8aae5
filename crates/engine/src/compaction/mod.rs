//! Compaction: old rounds become a summary.
//!
//! Deciding and doing are apart. [`keep`] says what survives, [`prompt`] and [`request`] say
//! what the summariser is asked, [`answer`] reads what it said, [`rebuild`] turns all of it
//! into edits. Nothing here talks to a model.

pub mod answer;
pub mod archive;
pub mod audit;
pub mod fallback;
pub mod keep;
pub mod prompt;
pub mod rebuild;
pub mod recovery;
pub mod request;
pub mod room;
mod text;
