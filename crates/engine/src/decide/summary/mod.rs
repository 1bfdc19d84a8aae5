//! Summaries by a model: what it is asked, within its window, and what it answers.
//!
//! Nothing here calls a model.

pub mod answer;
mod briefing;
pub mod conversation;
pub mod requests;
