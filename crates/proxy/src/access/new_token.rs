//! Making tokens.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// A new token of 256 random bits, and its digest for the settings.
///
/// ```
/// # use trimtab_proxy::NewToken;
/// let new = NewToken::make()?;
/// assert_eq!(new.token.len(), 64);
/// assert_ne!(new.token, new.sha256);
/// # Ok::<_, std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct NewToken {
    /// The token, for the client.
    pub token: String,
    /// Its SHA-256, for the settings.
    pub sha256: String,
}

impl NewToken {
    /// Creates a token.
    pub fn make() -> std::io::Result<Self> {
        let mut random = [0; 32];
        let filled = getrandom::fill(&mut random);
        filled.map_err(|error| std::io::Error::other(error.to_string()))?;
        let token = HEXLOWER.encode(&random);
        let sha256 = HEXLOWER.encode(&Sha256::digest(&token));
        Ok(Self { token, sha256 })
    }
}
