//! The address of a model server, with its key.

use std::fmt;

use http::Uri;
use thiserror::Error;
use trimtab::provider::Provider;
use trimtab::redact::redact_address;
use trimtab_model::Dialect;

/// An API key. It never appears in `Debug` output or in errors.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// A key, with surrounding white space removed.
    pub fn new(key: impl AsRef<str>) -> Self {
        Self(key.as_ref().trim().to_owned())
    }

    /// The key in the environment variable `name`, if that is set and not empty.
    pub fn from_env(name: &str) -> Option<Self> {
        let key = std::env::var(name).ok().map(Self::new)?;
        (!key.0.is_empty()).then_some(key)
    }

    pub(super) fn secret(&self) -> &str {
        &self.0
    }

    /// `text` without the key, because some servers echo it.
    pub(super) fn redact(&self, text: &str) -> String {
        if self.0.is_empty() {
            text.to_owned()
        } else {
            text.replace(&self.0, "[key]")
        }
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The address of a model server.
///
/// ```
/// use trimtab_agent::model::{Endpoint, ApiKey};
///
/// let endpoint = Endpoint::new("https://models.example/v1")?.key(ApiKey::new("secret"));
/// assert!(!format!("{endpoint:?}").contains("secret"));
/// assert!(Endpoint::new("not a url").is_err());
/// # Ok::<_, trimtab_agent::model::BadBaseUrl>(())
/// ```
#[derive(Clone)]
pub struct Endpoint {
    base: Uri,
    key: Option<ApiKey>,
    headers: Vec<(String, String)>,
}

/// An invalid base URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("bad base URL `{base}`: {why}\nhint: give it as https://host/v1")]
pub struct BadBaseUrl {
    /// The given URL, without a password.
    pub base: String,
    /// The fault.
    pub why: String,
}

impl Endpoint {
    /// The endpoint under a base URL such as `https://api.openai.com/v1`.
    pub fn new(base: &str) -> Result<Self, BadBaseUrl> {
        let bad = |why: &str| BadBaseUrl {
            base: redact_address(base),
            why: why.to_owned(),
        };
        let uri: Uri = base
            .trim()
            .parse()
            .map_err(|error: http::uri::InvalidUri| bad(&error.to_string()))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            Some(_) => return Err(bad("only http and https are spoken")),
            None => return Err(bad("it has no scheme")),
        }
        if uri.host().is_none_or(str::is_empty) {
            return Err(bad("it has no host"));
        }
        Ok(Self {
            base: uri,
            key: None,
            headers: Vec::new(),
        })
    }

    /// The provider's address for `dialect`, or the one in the environment, with its key:
    /// `OPENAI_BASE_URL` and `OPENAI_API_KEY`, or `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`.
    pub fn from_env(dialect: Dialect) -> Result<Self, BadBaseUrl> {
        let provider = Provider::of_dialect(dialect);
        let set = std::env::var(provider.base_variable()).ok();
        // An empty variable counts as unset, as in most programs.
        let base = set.filter(|base| !base.trim().is_empty());
        let mut endpoint = Self::new(base.as_deref().unwrap_or(provider.url()))?;
        endpoint.key = ApiKey::from_env(provider.key_variable());
        Ok(endpoint)
    }

    /// Sets the key.
    #[must_use]
    pub fn key(mut self, key: ApiKey) -> Self {
        self.key = Some(key);
        self
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The base URL without a password.
    pub fn base(&self) -> String {
        let scheme = self.base.scheme_str().unwrap_or("http");
        let host = self.base.host().unwrap_or_default();
        let port = self.base.port().map(|port| format!(":{port}"));
        let path = self.base.path().trim_end_matches('/');
        format!("{scheme}://{host}{}{path}", port.unwrap_or_default())
    }

    pub(super) fn secret(&self) -> Option<&ApiKey> {
        self.key.as_ref()
    }

    pub(super) fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// True for the provider whose newest models reject `max_tokens`.
    pub(super) fn is_openai(&self) -> bool {
        let host = self.base.host().unwrap_or_default();
        host.ends_with("openai.com") || host.ends_with("openai.azure.com")
    }

    /// The URL for requests of `dialect`. The base may be given without a version, with one, or
    /// with the full path.
    pub(super) fn url(&self, dialect: Dialect) -> String {
        let base = self.base();
        let path = self.base.path().trim_end_matches('/');
        let name = match dialect {
            Dialect::Chat => "chat/completions",
            Dialect::Responses => "responses",
            Dialect::Messages => "messages",
        };
        let query = self.base.query().map(|query| format!("?{query}"));
        let query = query.unwrap_or_default();
        let last = path.rsplit('/').next().unwrap_or_default();
        let versioned = last
            .strip_prefix('v')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if path.ends_with(name) {
            format!("{base}{query}")
        // Gateways for the OpenAI dialects often have a path prefix instead of a version.
        } else if versioned || (dialect != Dialect::Messages && !path.is_empty()) {
            format!("{base}/{name}{query}")
        } else {
            format!("{base}/v1/{name}{query}")
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base", &self.base())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_url_parses_in_all_spellings() {
        let chat = "http://h:1/v1/chat/completions";
        let messages = "https://h/v1/messages";
        for (dialect, base, url) in [
            (Dialect::Chat, "http://h:1", chat),
            (Dialect::Chat, "http://h:1/", chat),
            (Dialect::Chat, "http://h:1/v1", chat),
            (Dialect::Chat, "http://h:1/v1/", chat),
            (Dialect::Chat, chat, chat),
            (
                Dialect::Chat,
                "https://h/v1beta/openai",
                "https://h/v1beta/openai/chat/completions",
            ),
            (Dialect::Responses, "https://h/v1", "https://h/v1/responses"),
            (Dialect::Messages, "https://h", messages),
            (Dialect::Messages, "https://h/v1", messages),
            (Dialect::Messages, "https://h/x", "https://h/x/v1/messages"),
            (
                Dialect::Responses,
                "https://h/openai/v1?api-version=1",
                "https://h/openai/v1/responses?api-version=1",
            ),
        ] {
            let endpoint = Endpoint::new(base).unwrap();
            assert_eq!(endpoint.url(dialect), url, "{base}");
        }
    }

    #[test]
    fn bad_base_url_is_named() {
        for base in ["", "localhost:80", "ftp://h", "http://", "/v1"] {
            let error = Endpoint::new(base).unwrap_err().to_string();
            assert!(error.contains(&format!("`{base}`")), "{error}");
        }
    }

    #[test]
    fn key_is_never_printed() {
        let endpoint = Endpoint::new("https://user:pass@h/v1").unwrap();
        let endpoint = endpoint.key(ApiKey::new(" sk-123\n"));
        let shown = format!("{endpoint:?}");
        assert!(
            !shown.contains("sk-123") && !shown.contains("pass"),
            "{shown}"
        );
        assert!(!endpoint.base().contains("pass"));
        let said = endpoint.secret().unwrap().redact("bad key: sk-123!");
        assert_eq!(said, "bad key: [key]!");
    }
}
