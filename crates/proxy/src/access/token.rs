//! The tokens of this proxy, and which one a request carries.

use std::borrow::Cow;
use std::sync::Arc;

use data_encoding::{BASE64, HEXLOWER_PERMISSIVE};
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};
use sha2::{Digest, Sha256};

use crate::config::{ProxyConfig, TokenRole};
use crate::transport::headers;

/// The name of the token in the setting `token`.
const DEFAULT: &str = "default";
const BEARER: &[u8] = b"Bearer ";
const BASIC: &[u8] = b"Basic ";

/// The tokens of this proxy.
pub(crate) struct TokenTable(Vec<KnownToken>);

struct KnownToken {
    digest: TokenDigest,
    admitted: AdmittedToken,
}

/// A token that a request carried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AdmittedToken {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// What it allows.
    pub(super) role: TokenRole,
}

impl AdmittedToken {
    /// True if it has a name of its own, and so identifies one user.
    pub(super) fn is_named(&self) -> bool {
        &*self.name != DEFAULT
    }
}

/// A digest of a token, compared in constant time.
#[derive(Clone, Copy, PartialEq, Eq)]
struct TokenDigest(blake3::Hash);

impl TokenDigest {
    fn of_token(token: &[u8]) -> Self {
        Self::of_sha256(&Sha256::digest(token))
    }

    /// A comparison of `blake3::Hash` takes constant time; one of bytes does not.
    fn of_sha256(sha256: &[u8]) -> Self {
        Self(blake3::hash(sha256))
    }
}

impl TokenTable {
    /// The tokens of settings that were checked.
    pub(crate) fn new(config: &ProxyConfig) -> Self {
        let default = config.token.iter().map(|token| KnownToken {
            digest: TokenDigest::of_token(token.reveal().as_bytes()),
            admitted: AdmittedToken {
                // The single token of simple setups may do everything.
                name: Arc::from(DEFAULT),
                role: TokenRole::Admin,
            },
        });
        let named = config.tokens.iter().filter_map(|token| {
            let digest = match (&token.token, &token.sha256) {
                (Some(token), _) => TokenDigest::of_token(token.reveal().as_bytes()),
                (None, Some(hex)) => {
                    let sha256 = HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).ok()?;
                    TokenDigest::of_sha256(&sha256)
                }
                // `ProxyConfig::check` rejects a token with neither.
                (None, None) => return None,
            };
            let admitted = AdmittedToken {
                name: Arc::from(token.name.as_str()),
                role: token.role,
            };
            Some(KnownToken { digest, admitted })
        });
        Self(default.chain(named).collect())
    }

    /// True if every request must carry one.
    pub(super) fn is_required(&self) -> bool {
        !self.0.is_empty()
    }

    /// The valid token in these headers, with the header that has it. In `Authorization`, which otherwise holds a provider's key, it
    /// counts only on our own endpoints.
    pub(super) fn carried(
        &self,
        headers: &HeaderMap,
        is_own: bool,
    ) -> Option<(AdmittedToken, HeaderName)> {
        let by_header = headers
            .get(headers::TOKEN)
            .map(|value| (Cow::Borrowed(value.as_bytes()), headers::TOKEN));
        // Browsers can log in, but cannot be told to send a header of ours. On all other paths
        // `Authorization` belongs to the provider.
        let by_login = headers
            .get(AUTHORIZATION)
            .filter(|_| is_own)
            .and_then(|value| in_authorization(value.as_bytes()))
            .map(|token| (token, AUTHORIZATION));
        let (presented, header) = by_header.or(by_login)?;
        Some((self.find(&presented)?, header))
    }

    /// Compares with every token, so that the duration reveals nothing about them.
    fn find(&self, presented: &[u8]) -> Option<AdmittedToken> {
        let digest = TokenDigest::of_token(presented);
        let mut found = None;
        for known in &self.0 {
            if known.digest == digest {
                found = Some(known.admitted.clone());
            }
        }
        found
    }
}

/// The token in the header `Authorization`: a bearer token, or the password of a browser.
fn in_authorization(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    if let Some(token) = value.strip_prefix(BEARER) {
        return Some(Cow::Borrowed(token));
    }
    let login = BASE64.decode(value.strip_prefix(BASIC)?).ok()?;
    // The user name before the colon is ignored; a password may contain further colons.
    let colon = login.iter().position(|byte| *byte == b':')?;
    login
        .get(colon + 1..)
        .map(|password| Cow::Owned(password.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{NamedToken, Secret};
    use http::HeaderValue;

    const ONE: &str = "0f8fad5bd9cb469fa16570867728950e";
    const OTHER: &str = "7c9e6679f42b4c0ab2f0a1d5e8c3b614";

    fn table() -> TokenTable {
        let sha256 = data_encoding::HEXUPPER.encode(&Sha256::digest(OTHER));
        TokenTable::new(&ProxyConfig {
            token: Some(Secret::new(ONE)),
            tokens: vec![NamedToken {
                name: "ann".to_owned(),
                role: TokenRole::Use,
                token: None,
                sha256: Some(sha256),
            }],
            ..ProxyConfig::default()
        })
    }

    fn carried(name: HeaderName, value: &str, is_own: bool) -> Option<(AdmittedToken, HeaderName)> {
        let value = HeaderValue::from_str(value).unwrap();
        table().carried(&HeaderMap::from_iter([(name, value)]), is_own)
    }

    #[test]
    fn tokens_are_found_by_themselves_and_by_digest() {
        let name = |value: &str| {
            let found = carried(headers::TOKEN, value, false);
            found.map(|(token, _)| token.name.to_string())
        };
        assert_eq!(name(ONE).as_deref(), Some(DEFAULT));
        assert_eq!(name(OTHER).as_deref(), Some("ann"));
        assert_eq!((name("x"), name("")), (None, None));
    }

    #[test]
    fn provider_keys_are_no_tokens() {
        let bearer = format!("Bearer {ONE}");
        assert_eq!(carried(AUTHORIZATION, &bearer, false), None);
        let own = carried(AUTHORIZATION, &bearer, true);
        assert!(own.is_some());
    }

    #[test]
    fn password_of_a_browser_is_a_token_on_own_endpoints() {
        let login = |password: &str| {
            let login = BASE64.encode(format!("anyone:{password}").as_bytes());
            format!("Basic {login}")
        };
        let own = carried(AUTHORIZATION, &login(ONE), true);
        assert!(own.is_some());
        assert_eq!(carried(AUTHORIZATION, &login("x"), true), None);
        assert_eq!(carried(AUTHORIZATION, &login(ONE), false), None);
    }
}
