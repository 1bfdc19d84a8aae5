//! The keyed hash of a body, computed while it arrives.
//!
//! Hashes of prefixes are needed once the body is complete, at positions that are only known then.
//! So the state of the hash is saved at regular positions, and continued from the nearest of them.

use xxhash_rust::xxh3::Xxh3;

use crate::prefix_cache::fingerprint::Fingerprint;

/// The distance in bytes between two saved states.
const APART: usize = 64 << 10;

/// The hash of a body so far, with its state at every multiple of [`APART`].
#[derive(Clone)]
pub(crate) struct PrefixHash {
    /// Boxed, because it is large and moved often.
    now: Box<Xxh3>,
    bytes: usize,
    saved_states: Vec<Xxh3>,
}

impl PrefixHash {
    /// The hash of an empty body.
    pub(crate) fn new(key: &[u8; 192]) -> Self {
        Self {
            now: Box::new(Xxh3::with_secret(*key)),
            bytes: 0,
            saved_states: Vec::new(),
        }
    }

    /// The hash of a complete body.
    pub(crate) fn of(key: &[u8; 192], body: &[u8]) -> Self {
        let mut hashed = Self::new(key);
        hashed.add(body);
        hashed
    }

    /// Adds the next bytes.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = APART - self.bytes % APART;
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.now.update(now);
            self.bytes += now.len();
            if self.bytes.is_multiple_of(APART) {
                self.saved_states.push(Xxh3::clone(&self.now));
            }
            bytes = later;
        }
    }

    /// The hashes of prefixes of `body`, which must be the hashed body.
    pub(crate) fn prefix_hashes<'h>(&'h self, key: &[u8; 192], body: &'h [u8]) -> PrefixHashes<'h> {
        PrefixHashes {
            hashed: self,
            body,
            hasher: Xxh3::with_secret(*key),
            at: 0,
        }
    }
}

/// Computes hashes of prefixes of a body.
pub(crate) struct PrefixHashes<'h> {
    hashed: &'h PrefixHash,
    body: &'h [u8],
    hasher: Xxh3,
    at: usize,
}

impl PrefixHashes<'_> {
    /// The hash of the first `length` bytes. It is fastest with ascending lengths.
    pub(crate) fn hash_of(&mut self, length: usize) -> Fingerprint {
        // Entry 0 is the state after the first interval, so a shorter prefix has no saved state.
        let saved = (length / APART).checked_sub(1);
        let nearest =
            saved.and_then(|at| Some((self.hashed.saved_states.get(at)?, (at + 1) * APART)));
        // Going on from the last position is cheaper, unless a saved state is nearer or we passed
        // it.
        if let Some((hasher, at)) = nearest.filter(|(_, at)| *at > self.at || length < self.at) {
            (self.hasher, self.at) = (hasher.clone(), at);
        } else if length < self.at {
            self.hasher.reset();
            self.at = 0;
        }
        let more = self.body.get(self.at..length).unwrap_or_default();
        self.hasher.update(more);
        self.at = length;
        self.hasher.digest128()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xxhash_rust::xxh3::xxh3_128_with_secret;

    #[test]
    fn every_beginning_has_the_print_of_its_bytes() {
        let key = [7; 192];
        let body: Vec<u8> = (0..251).cycle().take(5 * APART + 77).collect();
        let mut prefix_hash = PrefixHash::new(&key);
        for piece in body.chunks(10_007) {
            prefix_hash.add(piece);
        }
        let mut hashes = prefix_hash.prefix_hashes(&key, &body);
        let lengths = [
            1,
            63,
            APART - 1,
            APART,
            APART + 1,
            4 * APART + 9,
            body.len(),
        ];
        for length in lengths.iter().chain(lengths.iter().rev()) {
            let expected = xxh3_128_with_secret(&body[..*length], &key);
            assert_eq!(hashes.hash_of(*length), expected, "{length}");
        }
    }
}
