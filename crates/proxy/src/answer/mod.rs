//! Answers of upstreams, whole and streamed.

pub(crate) mod assemble;
pub(crate) mod events;
pub(crate) mod hide_calls;
pub(crate) mod peek;
pub(crate) mod usage_watch;
