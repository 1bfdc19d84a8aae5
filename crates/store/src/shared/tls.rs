//! TLS to the database and to object stores.

use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Error, Result};

/// Encrypts connections to PostgreSQL. Trusts the certificates of the system, those of
/// `SSL_CERT_FILE`, and those of `PGSSLROOTCERT`.
pub(super) fn connector() -> Result<MakeRustlsConnect> {
    let mut roots = rustls::RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if let Some(path) = std::env::var_os("PGSSLROOTCERT") {
        let bad = |error| Error::Unreachable {
            what: format!("PGSSLROOTCERT ({})", path.display()),
            why: format!("{error}"),
        };
        for certificate in CertificateDer::pem_file_iter(&path).map_err(bad)? {
            roots
                .add(certificate.map_err(bad)?)
                .map_err(Error::database)?;
        }
    }
    let config = rustls::ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(Error::database)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

/// Makes our cryptography the default of the process, for the HTTP client of object stores.
pub(super) fn install_provider() {
    // A process that chose another one keeps it.
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap_or(());
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}
