//! Signatures of reasoning.
//!
//! A signature is bound to the thought, to everything that stood before it, and to the thought
//! before it. The key is fixed, so that a conversation can go on at another upstream.

use blake3::Hash;
use data_encoding::BASE64;

use super::canonical::SealClaim;

const KEY: &[u8; 32] = b"trimtab-testkit reasoning key 01";

/// Bytes of each part of a signature.
const PART: usize = 24;

/// What a signature turns out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SealVerdict {
    Valid,
    /// It is not for this thought, or not ours.
    Forged,
    /// It is for this thought, behind something else.
    Moved,
}

/// The signature of `thought` at the end of a prompt with the digest `before` and these thoughts.
pub(super) fn sign(before: &Hash, earlier: &[SealClaim], thought: &str) -> String {
    let valid = earlier.iter().zip(verdicts(earlier));
    let mut valid = valid.filter(|(_, verdict)| *verdict == SealVerdict::Valid);
    let newest = valid
        .next_back()
        .map_or("", |(claim, _)| claim.seal.as_str());
    let parts = [
        before.as_bytes().as_slice(),
        thought.as_bytes(),
        newest.as_bytes(),
    ];
    BASE64.encode(&parts.map(part).concat())
}

/// Judges the signatures of a prompt, in order. Thoughts may be missing at the beginning and at the
/// end, but not between others.
pub(super) fn verdicts(claims: &[SealClaim]) -> Vec<SealVerdict> {
    let mut newest: Option<&str> = None;
    let judged = claims.iter().map(|claim| {
        let verdict = check(claim, newest);
        if verdict == SealVerdict::Valid {
            newest = Some(&claim.seal);
        }
        verdict
    });
    judged.collect()
}

fn check(claim: &SealClaim, newest: Option<&str>) -> SealVerdict {
    let signature = BASE64.decode(claim.seal.as_bytes()).unwrap_or_default();
    let mut parts = signature.chunks(PART);
    let mut is = |bytes: &[u8]| parts.next().is_some_and(|found| found == part(bytes));
    let fits = is(claim.before.as_bytes());
    if !is(claim.thought.as_bytes()) {
        return SealVerdict::Forged;
    }
    let follows = newest.is_none_or(|newest| is(newest.as_bytes()));
    if fits && follows {
        SealVerdict::Valid
    } else {
        SealVerdict::Moved
    }
}

fn part(bytes: &[u8]) -> Vec<u8> {
    let mac = blake3::keyed_hash(KEY, bytes);
    mac.as_bytes().iter().copied().take(PART).collect()
}
