//! The paths that the proxy answers itself. All others belong to an upstream.

/// Says that we are here.
const HEALTH: [&str; 3] = ["/healthz", "/livez", READY];
/// Says whether we take requests.
pub(crate) const READY: &str = "/readyz";
/// Counters for Prometheus.
pub(crate) const METRICS: &str = "/metrics";
/// The dashboard, its files and its data.
pub(crate) const DASHBOARD: &str = "/dashboard";
/// What was done so far.
pub(crate) const STATUS: &str = "/trimtab/status";
/// A conversation in, the window out.
pub(crate) const COMPRESS: &str = "/v1/compress";
/// A ref in, the output out.
pub(crate) const RETRIEVE: &str = "/v1/retrieve/";

/// An endpoint of our own.
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
    /// The endpoint of ours that `path` is.
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
