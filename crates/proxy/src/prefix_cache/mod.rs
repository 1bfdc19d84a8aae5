//! Reuse of the previous request: fingerprints, parsed bodies and the body that was sent.

pub(crate) mod fingerprint;
pub(crate) mod parsed_bodies;
pub(crate) mod prefix_hash;
