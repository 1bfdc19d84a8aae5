//! Makes connections according to the settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Uri};
use hyper_util::client::proxy::matcher::Matcher;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use thiserror::Error;

use super::Network;
use super::connector::{Connector, HttpVersions};
use super::egress_proxy::{EgressProxies, ProxiedConnector};
use crate::redact::redact_address;

/// Why network settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// The file has no usable certificate authorities.
    #[error(
        "the certificate authorities in {} cannot be used: {why}\n\
         hint: network.ca_file or SSL_CERT_FILE names a PEM file with one or more certificates",
        path.display()
    )]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The address of the egress proxy cannot be used.
    #[error(
        "network.proxy = {address} cannot be used\n\
         hint: give it as http://host:port or http://user:password@host:port"
    )]
    Proxy {
        /// Its address, without a password.
        address: String,
    },
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {0}")]
    Tls(String),
}

/// Makes all connections of this process: directly or through the egress proxy, with TLS if the
/// address requires it.
///
/// This machine itself is always reached directly.
#[derive(Clone)]
pub struct OutboundNetwork {
    tls: Result<ClientConfig, NetworkError>,
    proxies: EgressProxies,
}

impl OutboundNetwork {
    /// Applies these settings.
    pub fn new(network: &Network) -> Result<Self, NetworkError> {
        let proxies = match &network.proxy {
            Some(address) => only_proxy(address)?,
            None => Matcher::from_env(),
        };
        Ok(Self {
            tls: Ok(tls(network.ca_file.as_deref())?),
            proxies: EgressProxies::new(proxies),
        })
    }

    /// A connector whose connections take at most `wait`, including TLS.
    pub fn connector(&self, wait: Duration, versions: HttpVersions) -> Connector {
        let route = ProxiedConnector::new(wait, self.proxies.clone());
        Connector::new(route, self.tls.clone(), versions, wait)
    }

    /// The credentials that a proxy needs with a request for `to`. A tunnel sends them by itself.
    pub fn credentials(&self, to: &Uri) -> Option<HeaderValue> {
        self.proxies.credentials(to)
    }

    /// The address of the egress proxy for `to`, without its password.
    pub fn proxy_for(&self, to: &Uri) -> Option<String> {
        let proxy = self.proxies.proxy_for(to)?;
        Some(redact_address(&proxy.uri().to_string()))
    }
}

impl Default for OutboundNetwork {
    /// With the built-in authorities and the proxies of the environment.
    fn default() -> Self {
        Self {
            tls: tls(None),
            proxies: EgressProxies::new(Matcher::from_env()),
        }
    }
}

impl std::fmt::Debug for OutboundNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutboundNetwork").finish_non_exhaustive()
    }
}

/// One proxy for all addresses except those that `NO_PROXY` names.
fn only_proxy(address: &str) -> Result<Matcher, NetworkError> {
    let uri: Option<Uri> = address.parse().ok();
    let is_good = uri.is_some_and(|uri| {
        // The connection to the proxy itself has no TLS here; TLS to the server goes through its
        // tunnel.
        uri.scheme_str() == Some("http") && uri.host().is_some_and(|host| !host.is_empty())
    });
    if !is_good {
        return Err(NetworkError::Proxy {
            address: redact_address(address),
        });
    }
    // A configured proxy replaces those of the environment, but not the exceptions.
    let variable = |name| std::env::var(name).ok();
    let none = variable("NO_PROXY").or_else(|| variable("no_proxy"));
    let proxies = Matcher::builder().all(address).no(none.unwrap_or_default());
    Ok(proxies.build())
}

/// TLS that trusts the built-in authorities and those in `ca_file`.
fn tls(ca_file: Option<&Path>) -> Result<ClientConfig, NetworkError> {
    let built_in = webpki_roots::TLS_SERVER_ROOTS.iter().cloned();
    let mut roots: RootCertStore = built_in.collect();
    if let Some(path) = ca_file {
        let bad = |why: String| NetworkError::CaFile {
            path: path.to_owned(),
            why,
        };
        let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
        let certificates: Vec<CertificateDer<'_>> = read.map_err(|error| bad(error.to_string()))?;
        // A bundle of the system may contain some that are too old to be parsed.
        let (added, _) = roots.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(bad("there is no certificate in it".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| NetworkError::Tls(error.to_string()))?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
