//! Whose sessions they are.
//!
//! A tenant is a keyed digest of the credential that a request presents. The key is a secret
//! of this installation, kept in the store: a digest says nothing about the credential, and
//! nobody else can make one. What a header says about a session is only ever looked up within
//! its tenant.

use http::HeaderMap;

/// The headers in which clients present a credential.
const CREDENTIALS: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];
/// How many characters of a digest make a name: 96 bits.
const NAME: usize = 24;

/// The keys of this installation, one for each purpose.
#[derive(Clone)]
pub(crate) struct Keys {
    tenants: [u8; 32],
    sessions: [u8; 32],
    prints: [u8; 192],
}

impl Keys {
    /// The keys that belong to the secret of a store.
    pub(crate) fn derive(secret: &[u8]) -> Self {
        let mut prints = [0; 192];
        blake3::Hasher::new_derive_key("trimtab proxy 2026 prints")
            .update(secret)
            .finalize_xof()
            .fill(&mut prints);
        Self {
            tenants: blake3::derive_key("trimtab proxy 2026 tenants", secret),
            sessions: blake3::derive_key("trimtab proxy 2026 sessions", secret),
            prints,
        }
    }

    /// The tenant of the credential in these headers.
    pub(crate) fn tenant(&self, headers: &HeaderMap) -> Tenant {
        let mut hasher = blake3::Hasher::new_keyed(&self.tenants);
        for name in CREDENTIALS {
            for value in headers.get_all(name) {
                add(&mut hasher, name.as_bytes());
                add(&mut hasher, value.as_bytes());
            }
        }
        Tenant(short(&hasher))
    }

    /// A name for what `parts` say, within a tenant.
    pub(crate) fn name(&self, tenant: &Tenant, parts: &[&[u8]]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.sessions);
        add(&mut hasher, tenant.0.as_bytes());
        for part in parts {
            add(&mut hasher, part);
        }
        short(&hasher)
    }

    /// A name for what `parts` say, whoever says it.
    pub(crate) fn common_name(&self, parts: &[&[u8]]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.sessions);
        // No tenant has an empty name.
        add(&mut hasher, b"");
        for part in parts {
            add(&mut hasher, part);
        }
        short(&hasher)
    }

    /// A number between 0 and 1 that belongs to `name`.
    pub(crate) fn share(&self, name: &str) -> f64 {
        let hash = blake3::keyed_hash(&self.sessions, name.as_bytes());
        let [first, second, third, ..] = *hash.as_bytes();
        f64::from(u32::from_le_bytes([first, second, third, 0])) / f64::from(1 << 24)
    }

    /// The key of message prints.
    pub(crate) fn prints(&self) -> &[u8; 192] {
        &self.prints
    }
}

/// Adds a part so that no two lists of parts give the same bytes.
fn add(hasher: &mut blake3::Hasher, part: &[u8]) {
    hasher
        .update(&(part.len() as u64).to_le_bytes())
        .update(part);
}

fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex().chars().take(NAME).collect()
}

/// Whose sessions they are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tenant(String);

impl Tenant {
    /// Its name.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn presenting(name: &'static str, value: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_static(value));
        headers
    }

    #[test]
    fn a_tenant_is_its_credential() {
        let keys = Keys::derive(b"secret");
        let one = keys.tenant(&presenting("x-api-key", "sk-1"));
        assert_eq!(
            one,
            Keys::derive(b"secret").tenant(&presenting("x-api-key", "sk-1"))
        );
        assert_ne!(one, keys.tenant(&presenting("x-api-key", "sk-2")));
        assert_ne!(one, keys.tenant(&presenting("authorization", "sk-1")));
        assert_ne!(one, keys.tenant(&HeaderMap::new()));
        assert!(!one.as_str().contains("sk-1"));
        let other = Keys::derive(b"another");
        assert_ne!(one, other.tenant(&presenting("x-api-key", "sk-1")));
    }

    #[test]
    fn names_of_other_parts_are_other_names() {
        let keys = Keys::derive(b"secret");
        let tenant = keys.tenant(&HeaderMap::new());
        let name = |parts: &[&[u8]]| keys.name(&tenant, parts);
        assert_ne!(name(&[b"ab", b"c"]), name(&[b"a", b"bc"]));
        assert!((0.0..1.0).contains(&keys.share("x")));
    }
}
