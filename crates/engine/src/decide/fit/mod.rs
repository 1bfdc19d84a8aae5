//! Makes a window fit: before a call, and after the provider rejected it.

mod dropping;
mod floor;
mod ladder;
mod media;
mod overflow;
mod steps;

pub use dropping::{half_of_turns, with_note};
pub(in crate::decide) use ladder::waits_for_summary;
pub use ladder::{
    drop_by_own_estimate, rungs_after_overflow, rungs_before_call, rungs_before_summary,
};
pub use media::{MediaPlace, shed_media};
pub use overflow::Overflow;
pub use steps::{shorten_sent, step_for_rung};
