//! Hashes of a sent body, which show where two bodies begin to differ without keeping them.

use xxhash_rust::xxh3::xxh3_64;

/// The number of bytes per hash, and so the precision of a found change.
pub(crate) const CHUNK: usize = 256;

/// The hashes of a body, one for each [`CHUNK`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SentPrint {
    chunks: Vec<u32>,
    /// Its length.
    pub(crate) bytes: usize,
}

impl SentPrint {
    pub(crate) fn of(body: &[u8]) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "32 bits tell two chunks apart well enough for a picture"
        )]
        let chunks = body.chunks(CHUNK).map(|chunk| xxh3_64(chunk) as u32);
        Self {
            chunks: chunks.collect(),
            bytes: body.len(),
        }
    }

    /// Its memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.chunks.len() * size_of::<u32>()
    }

    /// The length of the common prefix, to within a chunk.
    pub(crate) fn common_bytes(&self, other: &Self) -> usize {
        let pairs = self.chunks.iter().zip(&other.chunks);
        let common = pairs.take_while(|(a, b)| a == b).count();
        (common * CHUNK).min(self.bytes).min(other.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_byte_is_found_to_within_a_chunk() {
        let before = vec![b'a'; 10_000];
        let mut after = before.clone();
        after.extend_from_slice(b"more");
        let (one, other) = (SentPrint::of(&before), SentPrint::of(&after));
        assert!(one.common_bytes(&other) >= 10_000 - CHUNK);
        after[5_000] = b'b';
        let other = SentPrint::of(&after);
        let found = one.common_bytes(&other);
        assert!((5_000 - CHUNK..=5_000).contains(&found), "{found}");
    }
}
