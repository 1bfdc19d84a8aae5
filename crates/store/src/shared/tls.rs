//! TLS to the database and to object stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Error, Result};

/// How much of the certificate of a database is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CertificateCheck {
    /// Nothing: the connection is encrypted, but the server may be another one.
    Nothing,
    /// That a trusted authority issued it.
    Issuer,
    /// Also that it was issued for this host.
    IssuerAndName,
}

/// Which database servers are trusted.
#[derive(Clone, Debug)]
pub(super) struct ServerTrust {
    pub(super) check: CertificateCheck,
    /// The file of trusted certificates; none for those of the system.
    pub(super) root: Option<PathBuf>,
}

impl ServerTrust {
    /// Encrypts connections to PostgreSQL.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let check = ServerCertificateCheck {
            check: self.check,
            trusted: self.trusted()?,
            roots: self.roots(&provider)?,
            provider: Arc::clone(&provider),
        };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(Error::database)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(check))
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(config))
    }

    /// The certificates of the file.
    fn trusted(&self) -> Result<Vec<CertificateDer<'static>>> {
        let Some(path) = self.needed_root() else {
            return Ok(Vec::new());
        };
        let bad = |error| unreadable(path, &error);
        let certificates = CertificateDer::pem_file_iter(path).map_err(bad)?;
        certificates.map(|one| one.map_err(bad)).collect()
    }

    fn roots(&self, provider: &Arc<CryptoProvider>) -> Result<Option<Arc<WebPkiServerVerifier>>> {
        if self.check == CertificateCheck::Nothing {
            return Ok(None);
        }
        let certificates = match self.needed_root() {
            Some(_) => self.trusted()?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        let provider = Arc::clone(provider);
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| {
            let place = self.root.as_deref().unwrap_or(Path::new("the system"));
            unreadable(place, &error)
        })?;
        Ok(Some(verifier))
    }

    /// The file of trusted certificates, if it is used.
    fn needed_root(&self) -> Option<&Path> {
        let root = self.root.as_deref();
        root.filter(|_| self.check != CertificateCheck::Nothing)
    }
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Error {
    Error::Unreachable {
        what: "the database".to_owned(),
        why: format!(
            "cannot read trusted certificates from {}: {why}",
            path.display()
        ),
    }
}

/// Checks the certificate of a server as [`CertificateCheck`] says.
#[derive(Debug)]
struct ServerCertificateCheck {
    check: CertificateCheck,
    trusted: Vec<CertificateDer<'static>>,
    /// None if nothing is checked.
    roots: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerCertificateCheck {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(roots) = &self.roots else {
            return Ok(ServerCertVerified::assertion());
        };
        // A self-signed certificate has no issuer, so the file contains the certificate itself.
        if self.trusted.iter().any(|trusted| trusted == end_entity) {
            if self.check == CertificateCheck::IssuerAndName {
                let certificate = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&certificate, server_name)?;
            }
            return Ok(ServerCertVerified::assertion());
        }
        let found =
            roots.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match found {
            // The name is checked last, so the issuer is trusted.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.check == CertificateCheck::Issuer => Ok(ServerCertVerified::assertion()),
            found => found,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

/// Makes our cryptography the default of the process, for the HTTP client of object stores.
pub(super) fn install_provider() {
    // A process that chose another one keeps it.
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap_or(());
}
