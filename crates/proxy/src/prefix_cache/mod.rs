//! Reuse of the previous request: fingerprints of messages, hashes of prefixes, and parsed bodies.

pub(crate) mod fingerprint;
pub(crate) mod parsed_bodies;
pub(crate) mod prefix_hash;
