//! Buffers for long bodies, used again.
//!
//! Memory that was never used before has to be made ready by the system, page by page, which
//! takes longer than reading a body into it. So the buffers of the last long bodies are kept,
//! and taken again once nobody else has them any more.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

/// Bytes of the shortest body that is worth it.
const SHORTEST: usize = 128 << 10;
/// How many buffers are kept.
const MOST: usize = 16;
/// How many bytes all of them may have.
const MEMORY: usize = 64 << 20;

/// Buffers that were used before, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Spare(Mutex<Vec<Used>>);

/// A body that was read, and how much its buffer holds.
#[derive(Debug)]
struct Used {
    body: Bytes,
    capacity: usize,
}

impl Spare {
    fn kept(&self) -> MutexGuard<'_, Vec<Used>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An empty buffer for so many bytes.
    pub(crate) fn take(&self, length: usize) -> BytesMut {
        if length < SHORTEST {
            return BytesMut::with_capacity(length);
        }
        let mut kept = self.kept();
        let fits = |used: &Used| used.capacity >= length && used.body.is_unique();
        let found = kept.iter().position(fits).map(|at| kept.remove(at));
        drop(kept);
        match found.map(|used| used.body.try_into_mut()) {
            Some(Ok(mut buffer)) => {
                buffer.clear();
                buffer
            }
            // The next body of the conversation will be a little longer.
            Some(Err(_)) | None => BytesMut::with_capacity(length + length / 4),
        }
    }

    /// The body in a buffer, which is kept for when it is free again.
    pub(crate) fn keep(&self, buffer: BytesMut) -> Bytes {
        let capacity = buffer.capacity();
        let body = buffer.freeze();
        if (SHORTEST..=MEMORY).contains(&capacity) {
            let mut kept = self.kept();
            let used = Used {
                body: body.clone(),
                capacity,
            };
            kept.push(used);
            while kept.len() > MOST || kept.iter().map(|used| used.capacity).sum::<usize>() > MEMORY
            {
                kept.remove(0);
            }
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(spare: &Spare, length: usize) -> Bytes {
        let mut buffer = spare.take(length);
        buffer.resize(length, b'x');
        spare.keep(buffer)
    }

    #[test]
    fn a_buffer_is_used_again_once_it_is_free() {
        let spare = Spare::default();
        let first = body(&spare, SHORTEST);
        let place = first.as_ptr();
        let second = body(&spare, SHORTEST);
        assert_ne!(second.as_ptr(), place);
        assert!(first.iter().all(|byte| *byte == b'x'));
        drop(first);
        let third = spare.take(SHORTEST + 1);
        assert!(third.is_empty() && third.as_ptr() == place);
    }

    #[test]
    fn few_are_kept() {
        let spare = Spare::default();
        for _ in 0..2 * MOST {
            body(&spare, SHORTEST);
        }
        let held: Vec<Bytes> = (0..2 * MOST).map(|_| body(&spare, SHORTEST)).collect();
        assert_eq!((held.len(), spare.kept().len()), (2 * MOST, MOST));
        body(&spare, MEMORY + 1);
        assert_eq!(spare.kept().len(), MOST);
    }
}
