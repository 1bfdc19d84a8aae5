//! Which path is what.

use http::Method;
use trimtab_model::Dialect;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedRoute {
    Answer(Dialect),
    CountTokens,
    Models,
    Unknown,
}

impl RequestedRoute {
    /// What `method` on `path` asks for; the `/v1` may be missing.
    pub(super) fn of(method: &Method, path: &str) -> Self {
        let path = path.strip_prefix("/v1").unwrap_or(path);
        match (method.as_str(), path) {
            ("POST", "/chat/completions") => Self::Answer(Dialect::Chat),
            ("POST", "/responses") => Self::Answer(Dialect::Responses),
            ("POST", "/messages") => Self::Answer(Dialect::Messages),
            ("POST", "/messages/count_tokens") => Self::CountTokens,
            ("GET", "/models") => Self::Models,
            _ => Self::Unknown,
        }
    }

    /// The dialect of the request's body.
    pub(super) fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Answer(dialect) => Some(dialect),
            Self::CountTokens => Some(Dialect::Messages),
            Self::Models | Self::Unknown => None,
        }
    }
}
