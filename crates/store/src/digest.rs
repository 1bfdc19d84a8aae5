//! BLAKE3 digests of outputs and of the frames in which they are read.
//!
//! BLAKE3 is a tree hash. The digest of a frame is the tree node that covers it, so a single frame
//! can be verified against the digest of the whole output, which is the ordinary BLAKE3 of its
//! bytes.

use blake3::Hasher;
use blake3::hazmat::{HasherExt, Mode, merge_subtrees_non_root, merge_subtrees_root};

/// The BLAKE3 digest of a whole output.
pub(crate) type Digest = [u8; 32];
/// An inner node of the tree.
pub(crate) type DigestNode = [u8; 32];

/// The digest of `bytes`.
pub(crate) fn of(bytes: &[u8]) -> Digest {
    blake3::hash(bytes).into()
}

/// The digest of `bytes` and the node that covers them at the beginning of an output, in one pass.
/// `bytes` must be at most one frame, and not empty.
pub(crate) fn of_first_frame(bytes: &[u8]) -> (Digest, DigestNode) {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    (hasher.finalize().into(), hasher.finalize_non_root())
}

/// The node that covers `bytes`, which begin at `offset` of an output.
///
/// `offset` must be a multiple of the frame size, and `bytes` at most one frame.
pub(crate) fn node(bytes: &[u8], offset: u64) -> DigestNode {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(offset);
    hasher.update(bytes).finalize_non_root()
}

/// The parent of `nodes`, which all cover the same power of two of bytes, except that the last may
/// cover less. One node is its own parent.
pub(crate) fn join(nodes: &[DigestNode]) -> DigestNode {
    match halves(nodes) {
        Some((left, right)) => merge_subtrees_non_root(&join(left), &join(right), Mode::Hash),
        None => nodes.first().copied().unwrap_or_default(),
    }
}

/// The digest of an output covered by `nodes`; there must be at least two.
pub(crate) fn join_root(nodes: &[DigestNode]) -> Digest {
    match halves(nodes) {
        Some((left, right)) => merge_subtrees_root(&join(left), &join(right), Mode::Hash).into(),
        None => nodes.first().copied().unwrap_or_default(),
    }
}

/// BLAKE3 trees are left-complete: the left half covers the largest power of two that leaves a
/// rest.
fn halves(nodes: &[DigestNode]) -> Option<(&[DigestNode], &[DigestNode])> {
    if nodes.len() < 2 {
        return None;
    }
    nodes.split_at_checked(nodes.len().next_power_of_two() / 2)
}

/// Eight bytes that detect accidental damage to a row. They have no key, so they do not protect
/// against an attacker.
pub(crate) fn seal(fields: &[&[u8]]) -> [u8; 8] {
    let mut hasher = Hasher::new();
    for field in fields {
        // The length separates the fields: a byte that moves from one field to the next changes the
        // seal.
        hasher.update(&(field.len() as u64).to_le_bytes());
        hasher.update(field);
    }
    let mut seal = [0; 8];
    hasher.finalize_xof().fill(&mut seal);
    seal
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: usize = 4096;

    fn nodes(bytes: &[u8]) -> Vec<DigestNode> {
        let frames = bytes.chunks(FRAME).enumerate();
        frames
            .map(|(i, frame)| node(frame, (i * FRAME) as u64))
            .collect()
    }

    #[test]
    fn joined_nodes_are_the_digest_of_the_whole() {
        let bytes: Vec<u8> = (0..40 * FRAME)
            .map(|i| (i * i % 251).to_le_bytes()[0])
            .collect();
        for len in [
            FRAME + 1,
            2 * FRAME,
            3 * FRAME - 1,
            7 * FRAME,
            33 * FRAME + 5,
            40 * FRAME,
        ] {
            let bytes = &bytes[..len];
            assert_eq!(join_root(&nodes(bytes)), of(bytes), "{len}");
        }
    }

    #[test]
    fn nodes_joined_in_two_steps_are_the_same() {
        let bytes = vec![3; 37 * FRAME + 17];
        let spans: Vec<DigestNode> = nodes(&bytes).chunks(8).map(join).collect();
        assert_eq!(join_root(&spans), of(&bytes));
    }

    #[test]
    fn seal_depends_on_field_boundaries() {
        assert_ne!(seal(&[b"ab", b"c"]), seal(&[b"a", b"bc"]));
    }
}
