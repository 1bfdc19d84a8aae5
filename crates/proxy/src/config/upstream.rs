//! Settings of upstreams, of the summariser, and rules for single models.

use http::Uri;
use http::uri::PathAndQuery;
use serde::{Deserialize, Serialize};
use trimtab::provider::Provider;
use trimtab_model::Dialect;

use super::{ProxyMode, Secret};

/// A server to which requests are forwarded. Only the settings and the request's path, dialect and
/// model choose it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpstreamConfig {
    /// Its name in logs and reports.
    pub name: String,
    /// Scheme, host, port, and a path that is put before the request's path.
    pub url: String,
    /// Requests whose path has this prefix go here, without the prefix.
    #[serde(default)]
    pub prefix: String,
    /// The accepted dialects; all if empty.
    #[serde(default)]
    pub dialects: Vec<Dialect>,
    /// Globs of the served models; all if empty.
    #[serde(default)]
    pub models: Vec<String>,
    /// The preset for requests to this server.
    #[serde(default)]
    pub preset: Option<String>,
    /// The mode for requests to this server.
    #[serde(default)]
    pub mode: Option<ProxyMode>,
}

impl UpstreamConfig {
    /// A server for all requests.
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

    /// The official addresses of all known providers.
    pub(super) fn providers() -> Vec<Self> {
        Provider::ALL.into_iter().map(Self::of_provider).collect()
    }

    /// The official address of a provider.
    pub fn of_provider(provider: Provider) -> Self {
        Self::new(provider.name(), provider.url()).for_dialects(provider.dialects().iter().copied())
    }

    /// True if it accepts requests of `dialect`.
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
/// A base may end with a version, as in `http://host/v1`. The version of the path is then not
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

/// A rule for some models.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelRule {
    /// A glob that must match the whole name of the model.
    pub model: String,
    /// The window in tokens, instead of the catalogue's.
    #[serde(default)]
    pub window: Option<u64>,
    /// The longest answer in tokens. This much room is reserved, or less if the request asks for
    /// less.
    #[serde(default)]
    pub max_output: Option<u64>,
    /// The preset.
    #[serde(default)]
    pub preset: Option<String>,
    /// The mode.
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

/// A separate model for summaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SummariserConfig {
    /// Scheme, host, port and base path, as for an upstream.
    pub url: String,
    /// The dialect it speaks.
    pub dialect: Dialect,
    /// The model to ask for.
    pub model: String,
    /// The key to send, in the dialect's own header.
    #[serde(default)]
    pub key: Option<Secret>,
}
