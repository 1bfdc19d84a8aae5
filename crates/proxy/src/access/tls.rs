//! TLS on incoming connections.
//!
//! Certificate and key are read again on a reload (`SIGHUP`). Files that cannot be used leave the old
//! ones in force.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use super::stream::InboundStream;
use crate::config::TlsFiles;

/// The largest accepted certificate or key file.
const LARGEST_FILE: u64 = 1 << 20;
/// The protocols that are offered to clients, the preferred one first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Why certificate and key cannot be used.
#[derive(Debug)]
pub struct TlsProblem(String);

impl fmt::Display for TlsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hint = "hint: tls.certificate and tls.key name PEM files that belong together";
        write!(f, "{}\n{hint}", self.0)
    }
}

impl std::error::Error for TlsProblem {}

impl TlsFiles {
    /// Reads and validates both files.
    pub fn check(&self) -> Result<(), TlsProblem> {
        load(self).map(drop)
    }
}

/// Certificate and key as they were last read; none for plain HTTP.
#[derive(Default)]
pub(crate) struct InboundTls(RwLock<Option<TlsAcceptor>>);

impl InboundTls {
    /// Reads the files that the settings name.
    pub(crate) fn new(files: Option<&TlsFiles>) -> Result<Self, TlsProblem> {
        let tls = Self::default();
        tls.read(files)?;
        Ok(tls)
    }

    /// Reads the given files. If they are invalid, the old ones stay in force.
    pub(crate) fn read(&self, files: Option<&TlsFiles>) -> Result<(), TlsProblem> {
        let acceptor = files.map(load).transpose()?.map(TlsAcceptor::from);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    /// The TLS acceptor for new connections.
    pub(crate) fn acceptor(&self) -> Option<TlsAcceptor> {
        let acceptor = self.0.read().unwrap_or_else(PoisonError::into_inner);
        acceptor.clone()
    }
}

/// The notice about invalid files.
pub(crate) fn unusable_files_notice(problem: &TlsProblem) -> String {
    format!("the old certificate stays in force: {problem}")
}

fn load(files: &TlsFiles) -> Result<Arc<ServerConfig>, TlsProblem> {
    let problem = |path: &Path, why: String| TlsProblem(format!("{}: {why}", path.display()));
    let (at, key_at) = (files.certificate.as_path(), files.key.as_path());
    let chain = CertificateDer::pem_slice_iter(&read(at)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| problem(at, format!("not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(problem(at, "it holds no certificate".to_owned()));
    }
    let key = PrivateKeyDer::from_pem_slice(&read(key_at)?);
    // The parser's error is left out, because it may quote the key.
    let key = key.map_err(|_| problem(key_at, "it holds no private key in PEM".to_owned()))?;
    let mut config = configured(chain, key).map_err(|error| problem(at, error.to_string()))?;
    config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}

fn configured(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
}

fn read(path: &Path) -> Result<Vec<u8>, TlsProblem> {
    let problem = |why: &dyn fmt::Display| TlsProblem(format!("{}: {why}", path.display()));
    let found = std::fs::metadata(path).map_err(|error| problem(&error))?;
    // A pipe would block, and a device may never end.
    if !found.is_file() || found.len() > LARGEST_FILE {
        return Err(problem(&"it is no file of a usual size"));
    }
    std::fs::read(path).map_err(|error| problem(&error))
}

/// Performs the TLS handshake if there is an acceptor. None if it fails or takes longer than
/// `time`.
pub(crate) async fn accept_tls<S>(
    stream: S,
    acceptor: Option<TlsAcceptor>,
    time: Duration,
) -> Option<InboundStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(acceptor) = acceptor else {
        return Some(InboundStream::Plain(stream));
    };
    let shaken = tokio::time::timeout(time, acceptor.accept(stream)).await;
    let stream = shaken.ok()?.ok()?;
    Some(InboundStream::Tls(Box::new(stream)))
}
