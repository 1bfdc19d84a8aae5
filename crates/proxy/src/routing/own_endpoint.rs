//! The paths that the proxy answers itself. All others belong to an upstream.

/// Confirms that the proxy is running.
const HEALTH: [&str; 3] = ["/healthz", "/livez", READY];
/// Whether the proxy accepts requests.
pub(crate) const READY: &str = "/readyz";
/// Counters for Prometheus.
pub(crate) const METRICS: &str = "/metrics";
/// The dashboard, its files and its data.
pub(crate) const DASHBOARD: &str = "/dashboard";
/// Figures of all requests so far.
pub(crate) const STATUS: &str = "/trimtab/status";
/// Takes a conversation and returns its window.
pub(crate) const COMPRESS: &str = "/v1/compress";
/// Takes a ref and returns the output.
pub(crate) const RETRIEVE: &str = "/v1/retrieve/";

/// One of our own endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OwnEndpoint {
    Health,
    Metrics,
    Dashboard,
    Status,
    Compress,
    Retrieve,
}

impl OwnEndpoint {
    /// The endpoint at `path`, if it is one of ours.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path {
            path if HEALTH.contains(&path) => Some(Self::Health),
            METRICS => Some(Self::Metrics),
            STATUS => Some(Self::Status),
            COMPRESS => Some(Self::Compress),
            path if is_below(path, DASHBOARD) => Some(Self::Dashboard),
            path if path.starts_with(RETRIEVE) => Some(Self::Retrieve),
            _ => None,
        }
    }
}

/// True for a folder itself and everything in it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
