//! A request on its way, and the decision what is sent for it.

pub(crate) mod bypass_reason;
pub(crate) mod context;
pub(crate) mod front_page;
pub(crate) mod plan;
pub(crate) mod shared;
