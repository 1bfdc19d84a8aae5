//! Answers of upstreams, whole and streamed.

pub(crate) mod hide_calls;
pub(crate) mod peek;
pub(crate) mod refused_reasoning;
pub(crate) mod usage_watch;
