//! Where requests go, and what holds for some models.

use serde::{Deserialize, Serialize};
use trimtab_model::Dialect;

use super::{Mode, Secret};

/// A server that requests are sent on to. Never chosen by anything but settings and path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// Its name in reports.
    pub name: String,
    /// Scheme, host, port and the path that ours are put behind.
    pub url: String,
    /// Requests whose path begins with this go here, without it.
    #[serde(default)]
    pub prefix: String,
    /// Requests of these dialects go here; all, if none is named.
    #[serde(default)]
    pub dialects: Vec<Dialect>,
    /// Requests for models that one of these globs matches go here; all, if none is named.
    #[serde(default)]
    pub models: Vec<String>,
    /// The preset for requests that go here.
    #[serde(default)]
    pub preset: Option<String>,
    /// What is done with requests that go here.
    #[serde(default)]
    pub mode: Option<Mode>,
}

impl Upstream {
    /// A server that takes everything.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            prefix: String::new(),
            dialects: Vec::new(),
            models: Vec::new(),
            preset: None,
            mode: None,
        }
    }

    /// The same for requests of `dialects` only.
    #[must_use]
    pub fn for_dialects(mut self, dialects: impl IntoIterator<Item = Dialect>) -> Self {
        self.dialects = dialects.into_iter().collect();
        self
    }

    /// The providers whose own clients speak the three dialects.
    pub(super) fn providers() -> Vec<Self> {
        vec![
            Self::new("anthropic", "https://api.anthropic.com").for_dialects([Dialect::Messages]),
            Self::new("openai", "https://api.openai.com")
                .for_dialects([Dialect::Chat, Dialect::Responses]),
        ]
    }
}

/// What holds for some models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRule {
    /// Matched against the model's whole name, as a glob.
    pub model: String,
    /// Its window in tokens, where the catalogue does not know better.
    #[serde(default)]
    pub window: Option<u64>,
    /// The longest answer in tokens: so much is kept free for it, or less where a request asks
    /// for less.
    #[serde(default)]
    pub max_output: Option<u64>,
    /// The preset for it.
    #[serde(default)]
    pub preset: Option<String>,
    /// What is done with requests for it.
    #[serde(default)]
    pub mode: Option<Mode>,
}

/// Another model for summaries than the client's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summariser {
    /// Scheme, host, port and path up to the dialect's own, as for an upstream.
    pub url: String,
    /// The dialect it speaks.
    pub dialect: Dialect,
    /// The model to ask for.
    pub model: String,
    /// The key to send, in the dialect's own header.
    #[serde(default)]
    pub key: Option<Secret>,
}
