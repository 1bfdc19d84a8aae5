//! The dialects that a request may be in, by its path or its credential, and the error if no
//! upstream takes any of them.

use http::{HeaderMap, StatusCode};
use serde_json::json;
use trimtab::provider::Provider;
use trimtab_model::Dialect;

/// The header that carries the key in Messages.
pub(crate) const API_KEY: &str = "x-api-key";

/// The dialects that a request may be in: one if its path tells, else those of the provider that
/// its credential belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpokenDialects(&'static [Dialect]);

impl SpokenDialects {
    /// The possible dialects of a client, by the headers of its request.
    pub(crate) fn by_client(headers: &HeaderMap) -> Self {
        let has = |name: &str| headers.contains_key(name);
        if has(API_KEY) || has("anthropic-version") {
            return Provider::Anthropic.into();
        }
        // Azure carries the key of its OpenAI models in `api-key`.
        if has("authorization") || has("api-key") {
            return Provider::OpenAi.into();
        }
        // A credential of a provider that we do not know: only an upstream for everything.
        if has("x-goog-api-key") {
            return Self(&[]);
        }
        // Without a credential there is no key that could reach the wrong provider.
        Self(&Dialect::ALL)
    }

    /// The dialects; empty if the credential belongs to an unknown provider.
    pub(crate) fn dialects(self) -> &'static [Dialect] {
        self.0
    }

    /// The dialect that determines the form of an error.
    pub(crate) fn first(self) -> Dialect {
        self.0.first().copied().unwrap_or(Dialect::Chat)
    }

    fn names(self) -> String {
        let names: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        names.join(" or ")
    }
}

impl From<Provider> for SpokenDialects {
    fn from(provider: Provider) -> Self {
        Self(provider.dialects())
    }
}

impl From<Dialect> for SpokenDialects {
    fn from(dialect: Dialect) -> Self {
        Self(match dialect {
            Dialect::Chat => &[Dialect::Chat],
            Dialect::Responses => &[Dialect::Responses],
            Dialect::Messages => &[Dialect::Messages],
        })
    }
}

/// Why a request has no upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// No upstream has a matching prefix.
    Path,
    /// No upstream takes its dialect.
    Dialect,
    /// The upstream is a provider's official address, and the key belongs to another provider.
    Key(Provider),
}

impl NoRoute {
    /// The status. Clients show it and do not retry.
    pub(crate) const STATUS: StatusCode = StatusCode::MISDIRECTED_REQUEST;

    /// The error in the form of the dialect. `path` is shown without its query, which may contain a
    /// key.
    pub(crate) fn error(self, spoken: SpokenDialects, path: &str) -> serde_json::Value {
        let message = self.message(spoken, path.split('?').next().unwrap_or_default());
        if spoken == SpokenDialects::from(Dialect::Messages) {
            let error = json!({"type": "invalid_request_error", "message": message});
            return json!({"type": "error", "error": error});
        }
        json!({"error": {
            "message": message,
            "type": "invalid_request_error",
            "param": null,
            "code": "no_upstream",
        }})
    }

    fn message(self, spoken: SpokenDialects, path: &str) -> String {
        let flag = match spoken.0 {
            [dialect] => format!("{}=URL", flag_name(*dialect)),
            _ => "URL".to_owned(),
        };
        let set = format!("hint: set one with --upstream {flag} or in proxy.upstreams");
        match self {
            Self::Path => format!("no upstream is set for the path {path}\n{set}"),
            Self::Dialect if spoken.0.is_empty() => {
                format!("no upstream takes the credential of this request for {path}\n{set}")
            }
            Self::Dialect => format!(
                "no upstream takes {}, so the request for {path} is not sent anywhere\n{set}",
                spoken.names()
            ),
            Self::Key(provider) => format!(
                "the key in the request for {path} is not one for {}, so it is not sent there\n\
                 hint: give the client the key of that provider, or set another upstream",
                provider.url()
            ),
        }
    }
}

/// The name of a dialect in settings and flags.
fn flag_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Chat => "chat",
        Dialect::Responses => "responses",
        Dialect::Messages => "messages",
    }
}
