//! Connections to other machines: trusted certificate authorities, and the egress proxy.
//!
//! The settings are always available; the feature `connect` makes connections with them.

#[cfg(feature = "connect")]
mod connector;
#[cfg(feature = "connect")]
mod egress_proxy;
#[cfg(feature = "connect")]
mod outbound;

use std::fmt;
use std::path::PathBuf;

#[cfg(feature = "connect")]
pub use connector::{Connector, HttpVersions};
#[cfg(feature = "connect")]
pub use egress_proxy::innermost_cause;
#[cfg(feature = "connect")]
pub use outbound::{NetworkError, OutboundNetwork};

use crate::redact::redact_address;

/// The network settings.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Network {
    /// A file with additional certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// The egress proxy; that of the environment if unset.
    pub proxy: Option<String>,
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Network")
            .field("ca_file", &self.ca_file)
            .field("proxy", &self.proxy.as_deref().map(redact_address))
            .finish()
    }
}
