//! The memory that planning takes for a body.

/// Bytes that planning takes for each byte of a body: its texts in the log, in what is written
/// to the store and in the body that is sent.
const PLANNING_PER_BYTE: usize = 5;
/// Bytes to reserve for each byte of a body while it comes: for itself, and for planning.
pub(crate) const BYTES_PER_BYTE: usize = 1 + PLANNING_PER_BYTE;
/// Bytes that planning takes for each object in a body, which is at most a message or a part.
const PLANNING_PER_OBJECT: usize = 2048;

/// The memory that planning takes for a body, about.
pub(crate) fn planning_bytes(body: &[u8]) -> usize {
    let objects = memchr::memchr_iter(b'{', body).count();
    body.len() * PLANNING_PER_BYTE + objects * PLANNING_PER_OBJECT
}
