//! Buffers for bodies, in memory that is reserved as they grow.

use bytes::{Bytes, BytesMut};

use crate::resources::memory_budget::Reservation;

/// The step in bytes by which the reservation of a growing buffer increases.
const STEP: usize = 256 << 10;

/// A buffer whose memory is reserved while it grows, together with the memory for later work on it.
/// So a body that was read completely can be planned.
pub(crate) struct ReservedBuffer {
    /// The first piece, while it is the only one.
    first: Bytes,
    /// All pieces, if there are several.
    all: BytesMut,
    memory: Option<Reservation>,
    /// The bytes to reserve per byte of the buffer.
    factor: usize,
}

impl ReservedBuffer {
    /// An empty buffer. Without a reservation its memory is not counted.
    pub(crate) fn new(memory: Option<Reservation>, factor: usize) -> Self {
        Self {
            first: Bytes::new(),
            all: BytesMut::new(),
            memory,
            factor,
        }
    }

    /// Reserves memory for more bytes, and waits a short time if there is none. False if none
    /// becomes free.
    pub(crate) async fn reserve(&mut self, more: usize) -> bool {
        let Some(memory) = &mut self.memory else {
            return true;
        };
        let wanted = (self.first.len() + self.all.len()).saturating_add(more);
        let wanted = wanted.saturating_mul(self.factor);
        let missing = wanted.saturating_sub(memory.bytes());
        // A larger step is tried first, so that the lock is not taken for every piece. If that
        // fails, exactly what is missing may still fit.
        missing == 0 || memory.grow(missing.max(STEP)) || memory.grow_soon(missing).await
    }

    /// Adds bytes. The first piece is not copied. The buffer is allocated for `expected` bytes in
    /// total; unused pages cost no memory.
    pub(crate) fn push(&mut self, bytes: Bytes, expected: usize) {
        // Many bodies come in one piece, which is then never copied.
        if self.len() == 0 {
            self.first = bytes;
            return;
        }
        if self.all.is_empty() {
            self.all
                .reserve(expected.max(self.first.len() + bytes.len()));
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.all.extend_from_slice(&bytes);
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    /// The bytes with their reservation, and the reservation beyond them.
    pub(crate) fn freeze(self) -> (Bytes, Option<Reservation>) {
        let bytes = if self.all.is_empty() {
            self.first
        } else {
            self.all.freeze()
        };
        match self.memory {
            Some(mut memory) => {
                // The reservation of the bytes lives as long as the bytes. The rest is for
                // planning, and is given back when planning ends.
                let beyond = memory.split_off(bytes.len());
                (memory.attach(bytes), Some(beyond))
            }
            None => (bytes, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProxyLimits;
    use crate::resources::memory_budget::MemoryBudget;

    #[tokio::test]
    async fn buffer_reserves_what_the_work_on_it_takes() {
        let budget = MemoryBudget::new(&ProxyLimits {
            memory_bytes: 10 * STEP,
            tenant_memory_bytes: 10 * STEP,
            ..ProxyLimits::default()
        });
        let memory = budget.try_reserve(Some("one"), 0);
        let mut buffer = ReservedBuffer::new(memory, 5);
        for _ in 0..2 {
            assert!(buffer.reserve(STEP).await);
            buffer.push(Bytes::from(vec![b'x'; STEP]), 0);
        }
        assert_eq!(budget.used(), 10 * STEP);
        assert!(!buffer.reserve(1).await);
        let (bytes, beyond) = buffer.freeze();
        assert_eq!((bytes.len(), beyond.unwrap().bytes()), (2 * STEP, 8 * STEP));
        assert_eq!(budget.used(), 2 * STEP);
        drop(bytes);
        assert_eq!(budget.used(), 0);
    }
}
