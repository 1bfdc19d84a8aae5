//! TLS on incoming connections.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::Full;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::access::{model, write_settings};
use crate::run::{PATIENCE, Served, finished, say, texts};

/// How a certificate is made that is not one of an authority.
const OPENSSL: &str = "[req]
distinguished_name = name
x509_extensions = extensions
prompt = no
[name]
CN = localhost
[extensions]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost, IP:127.0.0.1
";

/// Writes a new certificate and its key, and gives the certificate; none without `openssl`.
fn write_certificate(folder: &Path) -> Option<CertificateDer<'static>> {
    fs::write(folder.join("openssl.conf"), OPENSSL).unwrap();
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-nodes",
            "-days",
            "2",
            "-config",
            "openssl.conf",
        ])
        .args(["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(folder)
        .output();
    let is_made = made.is_ok_and(|output| output.status.success());
    if !is_made {
        say("SKIPPED: this needs openssl to make a certificate");
        return None;
    }
    let certificate = CertificateDer::from_pem_file(folder.join("certificate.pem"));
    Some(certificate.unwrap())
}

/// A folder with settings that name a certificate and a key in it.
fn folder() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    let settings = format!(
        "[proxy.tls]\ncertificate = \"{place}/certificate.pem\"\nkey = \"{place}/key.pem\"\n"
    );
    write_settings(folder.path(), &settings);
    folder
}

/// The version and status of an answer to a client that trusts `certificate` alone; none if
/// it does not trust the proxy.
async fn asked(url: &str, certificate: &CertificateDer<'static>) -> Option<(Version, u16)> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_all_versions()
        .build();
    let client: Client<_, Full<Bytes>> = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(format!("{url}/healthz"))
        .body(Full::default())
        .unwrap();
    let answer = client.request(request).await.ok()?;
    Some((answer.version(), answer.status().as_u16()))
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_listener_refuses_plain_http() {
    let upstream = model().await;
    let folder = folder();
    let Some(certificate) = write_certificate(folder.path()) else {
        return;
    };
    let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
    assert!(served.url.starts_with("https://"), "{}", served.url);
    assert_eq!(
        asked(&served.url, &certificate).await,
        Some((Version::HTTP_2, 200))
    );
    let other = tempfile::tempdir().unwrap();
    let stranger = write_certificate(other.path()).unwrap();
    assert_eq!(asked(&served.url, &stranger).await, None);
    // Whoever speaks plain HTTP gets no answer of that kind.
    let address = served.url.strip_prefix("https://").unwrap();
    let mut plain = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n");
    plain.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::time::timeout(PATIENCE, plain.read_to_end(&mut answer)).await;
    drop(read.unwrap());
    assert!(!answer.starts_with(b"HTTP/"));
}

#[tokio::test(flavor = "multi_thread")]
async fn new_certificate_is_loaded_and_invalid_one_is_not() {
    let upstream = model().await;
    let folder = folder();
    let place = folder.path().to_owned();
    let Some(first) = write_certificate(&place) else {
        return;
    };
    let served = Served::start_in(folder, &["--upstream", &upstream.url()]);
    assert!(asked(&served.url, &first).await.is_some());
    let second = write_certificate(&place).unwrap();
    served.signal("HUP");
    served.wait_for("settings reloaded");
    assert!(asked(&served.url, &second).await.is_some());
    assert!(asked(&served.url, &first).await.is_none());
    fs::write(place.join("certificate.pem"), "nonsense").unwrap();
    served.signal("HUP");
    let told = served.wait_for("the old certificate stays in force");
    assert!(told.contains("certificate.pem"), "{told}");
    assert!(asked(&served.url, &second).await.is_some());
}

#[test]
fn unusable_tls_files_are_named_in_the_error() {
    let start = |folder: &Path| {
        let output = finished(folder, &["serve", "--listen", "127.0.0.1:0"]);
        let (_, stderr) = texts(&output);
        assert_ne!(output.status.code(), Some(0), "{stderr}");
        assert!(stderr.contains("hint: "), "{stderr}");
        stderr
    };
    let folder = folder();
    assert!(start(folder.path()).contains("certificate.pem"));
    if write_certificate(folder.path()).is_none() {
        return;
    }
    let other = tempfile::tempdir().unwrap();
    write_certificate(other.path()).unwrap();
    fs::copy(other.path().join("key.pem"), folder.path().join("key.pem")).unwrap();
    assert!(start(folder.path()).contains("certificate.pem"));
    fs::write(folder.path().join("key.pem"), "the-secret-key").unwrap();
    let stderr = start(folder.path());
    assert!(
        stderr.contains("key.pem") && !stderr.contains("the-secret-key"),
        "{stderr}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn network_address_without_tls_gives_a_warning() {
    let upstream = model().await;
    let folder = tempfile::tempdir().unwrap();
    let token = crate::access::TOKEN;
    write_settings(folder.path(), &format!("[proxy]\ntoken = \"{token}\"\n"));
    let args = ["--upstream", &upstream.url(), "--listen", "0.0.0.0:0"];
    let mut command = crate::run::trimtab(folder.path(), &["serve"]);
    let mut child = command.args(args).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = child.stderr.take().unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(stderr));
    let warned = lines
        .map_while(Result::ok)
        .any(|line| line.contains("without encryption"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(warned);
}
