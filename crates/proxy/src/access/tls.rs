//! TLS on incoming connections.
//!
//! Certificate and key are read again when their files change and on a reload. Files that
//! cannot be used leave the old ones in force.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use super::stream::InboundStream;
use crate::config::TlsFiles;
use crate::resources::notices::Notices;

/// The interval at which the files are checked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
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
pub(crate) struct InboundTls(RwLock<Option<LoadedTls>>);

struct LoadedTls {
    acceptor: TlsAcceptor,
    files: TlsFiles,
    changed: FileTimes,
}

/// The modification times of both files.
type FileTimes = [Option<SystemTime>; 2];

impl InboundTls {
    /// Reads the files that the settings name.
    pub(crate) fn new(files: Option<&TlsFiles>) -> Result<Self, TlsProblem> {
        let tls = Self::default();
        tls.read(files)?;
        Ok(tls)
    }

    /// Reads the given files. If they are invalid, the old ones stay in force.
    pub(crate) fn read(&self, files: Option<&TlsFiles>) -> Result<(), TlsProblem> {
        let loaded = match files {
            Some(files) => Some(LoadedTls {
                // The times are read before the files. A change in between is then seen as one more
                // change; the other way round it would be missed.
                changed: changed(files),
                acceptor: TlsAcceptor::from(load(files)?),
                files: files.clone(),
            }),
            None => None,
        };
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = loaded;
        Ok(())
    }

    /// The TLS acceptor for new connections.
    pub(crate) fn acceptor(&self) -> Option<TlsAcceptor> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        loaded.as_ref().map(|loaded| loaded.acceptor.clone())
    }

    /// The files in force, and their modification times when they were read.
    fn files(&self) -> Option<(TlsFiles, FileTimes)> {
        let loaded = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let loaded = loaded.as_ref()?;
        Some((loaded.files.clone(), loaded.changed))
    }
}

/// Reloads the files of `tls` when they change, until `tls` is dropped elsewhere.
pub(crate) async fn follow_files(tls: Arc<InboundTls>, notices: Notices) {
    let tls = Arc::downgrade(&tls);
    // The times of the last check, and those of the last files that could not be used.
    let mut seen = FileTimes::default();
    let mut failed = FileTimes::default();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let Some(tls) = tls.upgrade() else { return };
        let Some((files, in_force)) = tls.files() else {
            continue;
        };
        let looking = tokio::task::spawn_blocking(move || {
            let now = changed(&files);
            // The two files are replaced one after the other, so wait until they have not changed
            // between two looks. Files that failed are reported once, and tried when they change.
            let is_due = now != in_force && now == seen && now != failed;
            (now, is_due.then(|| tls.read(Some(&files))))
        });
        let Ok((now, read)) = looking.await else {
            continue;
        };
        seen = now;
        match read {
            Some(Ok(())) => notices.info("certificate and key were read again"),
            Some(Err(problem)) => {
                failed = now;
                notices.error(&unusable_files_notice(&problem));
            }
            None => {}
        }
    }
}

/// The notice about invalid files.
pub(crate) fn unusable_files_notice(problem: &TlsProblem) -> String {
    format!("the old certificate stays in force: {problem}")
}

fn changed(files: &TlsFiles) -> FileTimes {
    let time = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified());
    [&files.certificate, &files.key].map(|path| time(path).ok())
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
