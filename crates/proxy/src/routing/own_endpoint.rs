//! The paths that Trimtab answers itself.

/// Says that we are here.
const HEALTH: [&str; 3] = ["/healthz", "/livez", "/readyz"];
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
    Status,
    Compress,
    Retrieve,
}

impl OwnEndpoint {
    /// The endpoint of ours that `path` is.
    pub(crate) fn of_path(path: &str) -> Option<Self> {
        match path {
            path if HEALTH.contains(&path) => Some(Self::Health),
            STATUS => Some(Self::Status),
            COMPRESS => Some(Self::Compress),
            path if path.starts_with(RETRIEVE) => Some(Self::Retrieve),
            _ => None,
        }
    }
}
