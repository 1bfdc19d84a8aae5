//! Buffers for bodies, in memory that is reserved as they grow.

use bytes::{Bytes, BytesMut};

use crate::resources::memory_budget::Reservation;

/// The step in bytes by which the reservation of a growing buffer increases.
const STEP: usize = 256 << 10;

/// A buffer whose memory is reserved while it grows, as long as there is room for the work on it too.
/// Otherwise, buffers could take all memory, and none of their bodies could be planned.
pub(crate) struct ReservedBuffer {
    /// The first piece, while it is the only one.
    first: Bytes,
    /// All pieces, if there are several.
    all: BytesMut,
    memory: Option<Reservation>,
    /// The bytes per byte of the buffer that must be free besides, up to a limit. They are not
    /// reserved.
    spare: usize,
}

impl ReservedBuffer {
    /// An empty buffer. Without a reservation its memory is not counted.
    pub(crate) fn new(memory: Option<Reservation>, spare: usize) -> Self {
        Self {
            first: Bytes::new(),
            all: BytesMut::new(),
            memory,
            spare,
        }
    }

    /// Reserves memory for more bytes, and waits a short time if there is none. False if none
    /// becomes free.
    pub(crate) async fn reserve(&mut self, more: usize) -> bool {
        let Some(memory) = &mut self.memory else {
            return true;
        };
        let wanted = (self.first.len() + self.all.len()).saturating_add(more);
        let missing = wanted.saturating_sub(memory.bytes());
        // A long body often needs less: most of it is known from the call before. What it really
        // needs is reserved before the work begins.
        let spare = wanted.saturating_mul(self.spare).min(memory.most_spare());
        // A larger step is tried first, so that the lock is not taken for every piece. If that
        // fails, exactly what is missing may still fit.
        let has_room = missing == 0
            || memory.grow(missing.max(STEP).saturating_add(spare))
            || memory.grow_soon(missing.saturating_add(spare)).await;
        if has_room && missing > 0 {
            memory.set(memory.bytes() - spare);
        }
        has_room
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

    /// The bytes with their reservation, which lives as long as they.
    pub(crate) fn freeze(self) -> Bytes {
        let bytes = if self.all.is_empty() {
            self.first
        } else {
            self.all.freeze()
        };
        match self.memory {
            Some(mut memory) => {
                memory.set(bytes.len());
                memory.attach(bytes)
            }
            None => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ProxyLimits;
    use crate::resources::memory_budget::MemoryBudget;

    #[tokio::test]
    async fn buffer_reserves_its_bytes_and_leaves_room_for_the_work_on_them() {
        let budget = MemoryBudget::new(&ProxyLimits {
            memory_bytes: 10 * STEP,
            tenant_memory_bytes: 10 * STEP,
            ..ProxyLimits::default()
        });
        let others = budget.try_reserve(Some("one"), 3 * STEP);
        let memory = budget.try_reserve(Some("one"), 0);
        // The second piece finds room because the room for the work is at most half of the share.
        let mut buffer = ReservedBuffer::new(memory, 4);
        for _ in 0..2 {
            assert!(buffer.reserve(STEP - 1).await);
            buffer.push(Bytes::from(vec![b'x'; STEP - 1]), 0);
        }
        assert_eq!(budget.used(), 5 * STEP);
        assert!(!buffer.reserve(5).await);
        let bytes = buffer.freeze();
        assert_eq!(bytes.len(), 2 * (STEP - 1));
        drop(others);
        assert_eq!(budget.used(), bytes.len());
        drop(bytes);
        assert_eq!(budget.used(), 0);
    }
}
