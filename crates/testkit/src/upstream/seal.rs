//! Signatures of reasoning.
//!
//! A signature is bound to the thought and to everything that stood before it. The key is
//! fixed, so that a conversation can go on at another upstream.

use blake3::Hash;
use data_encoding::BASE64;

use super::canonical::SealClaim;

const KEY: &[u8; 32] = b"trimtab-testkit reasoning key 01";

/// Bytes of each half of a signature.
const HALF: usize = 24;

/// What a signature turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealVerdict {
    Valid,
    /// It is not for this thought, or not ours.
    Forged,
    /// It is for this thought, behind something else.
    Moved,
}

/// The signature of `thought` behind what `before` is the digest of.
pub(super) fn sign(before: &Hash, thought: &str) -> String {
    let mut signature = half(before.as_bytes());
    signature.extend(half(thought.as_bytes()));
    BASE64.encode(&signature)
}

/// Judges a signature that comes back.
pub(super) fn check(claim: &SealClaim) -> SealVerdict {
    let Ok(signature) = BASE64.decode(claim.seal.as_bytes()) else {
        return SealVerdict::Forged;
    };
    let Some((prefix, thought)) = signature.split_at_checked(HALF) else {
        return SealVerdict::Forged;
    };
    if thought != half(claim.thought.as_bytes()) {
        return SealVerdict::Forged;
    }
    if prefix == half(claim.before.as_bytes()) {
        SealVerdict::Valid
    } else {
        SealVerdict::Moved
    }
}

fn half(bytes: &[u8]) -> Vec<u8> {
    let mac = blake3::keyed_hash(KEY, bytes);
    mac.as_bytes().iter().copied().take(HALF).collect()
}
