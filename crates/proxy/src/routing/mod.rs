//! Where a request goes: an upstream, or an endpoint of our own.

pub(crate) mod own_endpoint;
pub(crate) mod query;
pub(crate) mod route;
pub(crate) mod spoken_dialects;
