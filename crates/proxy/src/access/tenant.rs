//! Tenants: the owners of sessions.
//!
//! A tenant is a keyed digest of what identifies a request: the name of its token, the user that
//! the operator's header names, or its credentials. The key is a secret of this installation,
//! kept in the store: a digest says nothing about the credential, and nobody else can make one.
//! A session that a header names is only ever looked up within the tenant.

/// How many characters of a digest make a name: 96 bits.
const NAME: usize = 24;

/// The keys of this installation, one for each purpose.
#[derive(Clone)]
pub(crate) struct TenantKeys {
    tenants: [u8; 32],
    sessions: [u8; 32],
    fingerprints: [u8; 192],
}

impl TenantKeys {
    /// The keys that belong to the secret of a store.
    pub(crate) fn derive(secret: &[u8]) -> Self {
        let mut fingerprints = [0; 192];
        blake3::Hasher::new_derive_key("trimtab proxy 2026 prints")
            .update(secret)
            .finalize_xof()
            .fill(&mut fingerprints);
        Self {
            tenants: blake3::derive_key("trimtab proxy 2026 tenants", secret),
            sessions: blake3::derive_key("trimtab proxy 2026 sessions", secret),
            fingerprints,
        }
    }

    /// The tenant with this identity.
    pub(crate) fn tenant(&self, presented: &PresentedIdentity<'_>) -> Tenant {
        let mut hasher = blake3::Hasher::new_keyed(&self.tenants);
        // No header name contains a colon, so these two cannot be confused with a credential.
        let token = presented.token.map(|name| (":token", name.as_bytes()));
        let user = presented.user.map(|user| (":user", user));
        for (name, value) in token.into_iter().chain(user) {
            add(&mut hasher, name.as_bytes());
            add(&mut hasher, value);
        }
        for (name, value) in &presented.credentials {
            add(&mut hasher, name.as_bytes());
            add(&mut hasher, value);
        }
        Tenant(short(&hasher))
    }

    /// A name derived from `parts`, within a tenant.
    pub(crate) fn name(&self, tenant: &Tenant, parts: &[&[u8]]) -> String {
        let mut hasher = blake3::Hasher::new_keyed(&self.sessions);
        add(&mut hasher, tenant.as_str().as_bytes());
        for part in parts {
            add(&mut hasher, part);
        }
        short(&hasher)
    }

    /// A fixed pseudo-random number between 0 and 1 for `name`.
    pub(crate) fn share_of_name(&self, name: &str) -> f64 {
        let hash = blake3::keyed_hash(&self.sessions, name.as_bytes());
        // 24 bits are exact in a float, and fine enough for a share of sessions.
        let [first, second, third, ..] = *hash.as_bytes();
        f64::from(u32::from_le_bytes([first, second, third, 0])) / f64::from(1 << 24)
    }

    /// The key of message fingerprints.
    pub(crate) fn fingerprint_key(&self) -> &[u8; 192] {
        &self.fingerprints
    }
}

/// Adds a part with its length, so that no two lists of parts give the same bytes.
fn add(hasher: &mut blake3::Hasher, part: &[u8]) {
    hasher
        .update(&(part.len() as u64).to_le_bytes())
        .update(part);
}

fn short(hasher: &blake3::Hasher) -> String {
    format!("{:.NAME$}", hasher.finalize().to_hex().as_str())
}

/// What identifies the sender of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PresentedIdentity<'a> {
    /// The name of its token.
    pub(crate) token: Option<&'a str>,
    /// The user in the configured header.
    pub(crate) user: Option<&'a [u8]>,
    /// Its credentials, with the names of their headers; none where something else identifies it.
    pub(crate) credentials: Vec<(&'a str, &'a [u8])>,
}

/// The owner of sessions.
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

    fn presenting(name: &'static str, value: &'static str) -> PresentedIdentity<'static> {
        PresentedIdentity {
            credentials: vec![(name, value.as_bytes())],
            ..PresentedIdentity::default()
        }
    }

    #[test]
    fn tenant_depends_on_credential_and_secret() {
        let keys = TenantKeys::derive(b"secret");
        let one = keys.tenant(&presenting("x-api-key", "sk-1"));
        let again = TenantKeys::derive(b"secret");
        assert_eq!(one, again.tenant(&presenting("x-api-key", "sk-1")));
        assert_ne!(one, keys.tenant(&presenting("x-api-key", "sk-2")));
        assert_ne!(one, keys.tenant(&presenting("authorization", "sk-1")));
        assert_ne!(one, keys.tenant(&PresentedIdentity::default()));
        assert!(!one.as_str().contains("sk-1"));
        let other = TenantKeys::derive(b"another");
        assert_ne!(one, other.tenant(&presenting("x-api-key", "sk-1")));
    }

    #[test]
    fn token_and_user_narrow_the_tenant() {
        let keys = TenantKeys::derive(b"secret");
        let of = |token, user: Option<&'static str>, key| {
            keys.tenant(&PresentedIdentity {
                token,
                user: user.map(str::as_bytes),
                ..presenting("x-api-key", key)
            })
        };
        let plain = of(None, None, "k");
        let ann = of(Some("ann"), None, "k");
        let bob = of(None, Some("bob"), "k");
        assert!(plain != ann && plain != bob && ann != bob);
        assert_ne!(bob, of(None, Some("bob"), "other"));
    }

    #[test]
    fn names_of_other_parts_are_other_names() {
        let keys = TenantKeys::derive(b"secret");
        let tenant = keys.tenant(&PresentedIdentity::default());
        let name = |parts: &[&[u8]]| keys.name(&tenant, parts);
        assert_ne!(name(&[b"ab", b"c"]), name(&[b"a", b"bc"]));
        assert!((0.0..1.0).contains(&keys.share_of_name("x")));
    }
}
