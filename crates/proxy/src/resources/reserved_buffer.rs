//! Buffers for bodies, in memory that is reserved as they grow.

use bytes::{Bytes, BytesMut};

use crate::resources::memory_budget::Reservation;

/// How much more is reserved at a time while a buffer grows.
const STEP: usize = 256 << 10;

/// A buffer whose memory is reserved as it grows, together with what the work on it will take:
/// whoever is read to the end can be worked on.
pub(crate) struct ReservedBuffer {
    /// The first piece, as long as there is no other.
    first: Bytes,
    /// All pieces, if there are several.
    all: BytesMut,
    memory: Option<Reservation>,
    /// Bytes to reserve for each byte of the buffer.
    factor: usize,
}

impl ReservedBuffer {
    /// An empty buffer; without a reservation nobody counts it.
    pub(crate) fn new(memory: Option<Reservation>, factor: usize) -> Self {
        Self {
            first: Bytes::new(),
            all: BytesMut::new(),
            memory,
            factor,
        }
    }

    /// Reserves memory for so many bytes more, waiting a little for others to give some back.
    /// False if there is none.
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

    /// Adds bytes that may be all there are: the first ones are taken over, not copied. Room
    /// is made for `expected` of them in all: memory that is not written to costs nothing.
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

    /// How many bytes it has.
    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    /// The bytes with their reservation, and what is reserved beyond them.
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
