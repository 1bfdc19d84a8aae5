//! Settings of upstreams, of the summariser, and rules for single models.

use http::Uri;
use http::uri::PathAndQuery;
use serde::{Deserialize, Serialize};
use trimtab::provider::Provider;
use trimtab_model::Dialect;

use super::{ProxyMode, Secret};

/// A server that requests are sent on to. Never chosen by anything but settings and path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
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
    pub mode: Option<ProxyMode>,
}

impl UpstreamConfig {
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
        Provider::ALL.into_iter().map(Self::of_provider).collect()
    }

    /// A provider's own address.
    pub fn of_provider(provider: Provider) -> Self {
        Self::new(provider.name(), provider.url()).for_dialects(provider.dialects().iter().copied())
    }

    /// True if requests of `dialect` go here.
    pub fn takes(&self, dialect: Dialect) -> bool {
        self.dialects.is_empty() || self.dialects.contains(&dialect)
    }

    /// The address of `path`, which may have a query, at this server.
    pub fn address(&self, path: &str) -> Option<Uri> {
        address(&self.url, path)
    }
}

/// The address of `path`, which may have a query, under the address `base`.
///
/// A base may end with a version, as in `http://host/v1`: then that of the path is not
/// repeated.
pub(crate) fn address(base: &str, path: &str) -> Option<Uri> {
    let uri: Uri = base.parse().ok()?;
    let under = uri.path().trim_end_matches('/');
    // A prefix may be the whole path of the request, so nothing or only a query may be left.
    let path = if path.starts_with('/') { path } else { "/" };
    let path = without_version(under, path);
    let path = format!("{under}{path}").parse::<PathAndQuery>().ok()?;
    Uri::builder()
        .scheme(uri.scheme()?.clone())
        .authority(uri.authority()?.clone())
        .path_and_query(path)
        .build()
        .ok()
}

/// `path` without the version that it begins with, if `base` ends with one.
fn without_version<'p>(base: &str, path: &'p str) -> &'p str {
    let last = base.rsplit('/').next().unwrap_or_default();
    let number = last.strip_prefix('v').unwrap_or_default();
    if !number.starts_with(|first: char| first.is_ascii_digit()) {
        return path;
    }
    // Clients of all three dialects begin their paths with v1.
    let versions = [last, "v1"].into_iter();
    let mut rests = versions.filter_map(|version| {
        let rest = path.strip_prefix('/')?.strip_prefix(version)?;
        rest.starts_with('/').then_some(rest)
    });
    rests.next().unwrap_or(path)
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
    pub mode: Option<ProxyMode>,
}

impl ModelRule {
    /// A rule for every model, which changes nothing yet.
    pub fn for_all() -> Self {
        Self {
            model: "*".to_owned(),
            window: None,
            max_output: None,
            preset: None,
            mode: None,
        }
    }
}

/// Another model for summaries than the client's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummariserConfig {
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
