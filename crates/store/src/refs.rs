//! Generates the ids of refs.

use std::io;
use std::path::Path;

use data_encoding::{Encoding, Specification};

use crate::digest::Digest;
use crate::{Error, Result};

/// The size of an id before encoding: 80 bits cannot be guessed.
const ID_BYTES: usize = 10;
/// The length of an id: base32 has 5 bits per character.
const ID_CHARS: usize = 16;
/// The context string of the derived key. Part of the format: another text would change every ref.
const PURPOSE: &str = "trimtab store, ref ids, version 1";

/// The secret of a session. Refs made with it are invalid in any other session.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct SessionSecret([u8; 32]);

impl SessionSecret {
    /// A random secret.
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = [0; 32];
        random(&mut bytes)?;
        Ok(Self(bytes))
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The id of the output of `call` with `digest`. The same session, call and bytes give the same
    /// id, so that a restart sends the same window.
    pub(crate) fn ref_id(&self, call: &str, digest: &Digest) -> String {
        let key = blake3::derive_key(PURPOSE, &self.0);
        let mut hasher = blake3::Hasher::new_keyed(&key);
        // The length separates the call from the digest.
        hasher.update(&(call.len() as u64).to_le_bytes());
        hasher.update(call.as_bytes());
        hasher.update(digest);
        let mut id = [0; ID_BYTES];
        hasher.finalize_xof().fill(&mut id);
        base32().encode(&id)
    }
}

/// True if `id` has the form of a ref's id.
pub(crate) fn well_formed(id: &str) -> bool {
    id.len() == ID_CHARS && id.bytes().all(|b| matches!(b, b'a'..=b'z' | b'2'..=b'7'))
}

/// Fills `bytes` with randomness of the operating system.
pub(crate) fn random(bytes: &mut [u8]) -> Result<()> {
    let filled = getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()));
    filled.map_err(|error| Error::io("get random bytes from", Path::new("the system"), error))
}

/// Base32 in lower case without padding.
fn base32() -> Encoding {
    let mut specification = Specification::new();
    specification
        .symbols
        .push_str("abcdefghijklmnopqrstuvwxyz234567");
    // The specification is valid, so the fallback is never used.
    specification
        .encoding()
        .unwrap_or(data_encoding::BASE32_NOPAD)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest;

    #[test]
    fn same_session_call_and_bytes_give_the_same_id() {
        let secret = SessionSecret::from_bytes([7; 32]);
        let digest = digest::of(b"bytes");
        let id = secret.ref_id("c1", &digest);
        assert!(well_formed(&id), "{id}");
        assert_eq!(id, secret.ref_id("c1", &digest));
        assert_ne!(id, secret.ref_id("c2", &digest));
        assert_ne!(id, secret.ref_id("c1", &digest::of(b"other bytes")));
        assert_ne!(id, SessionSecret::from_bytes([8; 32]).ref_id("c1", &digest));
    }

    #[test]
    fn ids_of_other_forms_are_not_well_formed() {
        for id in [
            "",
            "../../etc/passwd",
            "ABCDEFGHIJKLMNOP",
            "abcdefghijklmno1",
            "a\0cdefghijklmnop",
        ] {
            assert!(!well_formed(id), "{id:?}");
        }
    }

    #[test]
    fn secrets_differ() {
        assert_ne!(
            SessionSecret::random().unwrap().0,
            SessionSecret::random().unwrap().0
        );
    }
}
