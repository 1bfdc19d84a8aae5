//! Private certificate authorities, egress proxies, and the passwords in addresses.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use http::Method;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use trimtab_cli::proxy::http::HttpClient;

use crate::recorder::{EgressProxy, Heard, answer, serve};
use crate::repository::{Repository, ended};
use crate::run::{PATIENCE, Served};

/// A server with a certificate that a private authority signed.
struct Private {
    address: SocketAddr,
    heard: Heard,
    /// The certificate of the authority, as PEM.
    authority: String,
}

/// The name that the certificate is for, besides that of this machine. Nobody has it.
const NAME: &str = "model.invalid";

impl Private {
    fn start() -> Self {
        let own_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&own_key).unwrap();
        let issuer = Issuer::new(params, own_key);
        let key = KeyPair::generate().unwrap();
        let names = vec!["localhost".to_owned(), NAME.to_owned()];
        let leaf = CertificateParams::new(names).unwrap();
        let leaf = leaf.signed_by(&key, &issuer).unwrap();
        let config = tls(leaf.der().clone(), key.serialize_der());
        let heard = Heard::default();
        let ours = heard.clone();
        let address = serve(move |stream| {
            let tls = ServerConnection::new(Arc::clone(&config)).unwrap();
            answer(StreamOwned::new(tls, stream), &ours);
        });
        Self {
            address,
            heard,
            authority: authority.pem(),
        }
    }

    /// Its address by the name of this machine.
    fn url(&self) -> String {
        format!("https://localhost:{}", self.address.port())
    }
}

fn tls(certificate: CertificateDer<'static>, key: Vec<u8>) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key));
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    Arc::new(config.unwrap())
}

/// A client of `trimtab wrap` that sends one request.
const CLIENT: &str = r#"
url=${ANTHROPIC_BASE_URL#http://}
exec 3<>"/dev/tcp/${url%:*}/${url##*:}"
printf 'POST /v1/messages HTTP/1.1\r\nhost: %s\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}' "$url" >&3
cat <&3
"#;

/// How many verbs ask a model by themselves.
const VERBS: usize = 4;

/// Every verb that asks a model, with the first line of what it sends, for a model at `url`.
fn verbs(clone: &Repository, url: &str) -> Vec<(Command, &'static str)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let talk = root.join("examples/fix-failing-test.json");
    let talk = talk.display().to_string();
    let dialect = format!("chat={url}");
    let chat = [
        "chat",
        "--model",
        "m",
        "--window",
        "9000",
        "--base-url",
        url,
        "--print",
        "hello",
    ];
    let doctor = ["doctor", "--listen", "127.0.0.1:0", "--upstream", &dialect];
    let wrap = ["wrap", "--upstream", url, "bash", "-c", CLIENT];
    let mut compact = clone.command(&["compact", "--model", "chat:m", &talk, "-o", "-"]);
    compact.env("OPENAI_BASE_URL", url);
    vec![
        (clone.command(&chat), "POST /v1/chat/completions"),
        (clone.command(&doctor), "GET /v1/models"),
        (clone.command(&wrap), "POST /v1/messages"),
        (compact, "POST /v1/chat/completions"),
    ]
}

#[test]
fn every_verb_trusts_a_configured_private_authority() {
    for variable in ["TRIMTAB_NETWORK_CA_FILE", "SSL_CERT_FILE"] {
        let clone = Repository::with("");
        for verb in 0..VERBS {
            let server = Private::start();
            let authority = clone.path().join("authority.pem");
            fs::write(&authority, &server.authority).unwrap();
            let (mut command, line) = verbs(&clone, &server.url()).swap_remove(verb);
            command.env(variable, &authority);
            let done = ended(command);
            let heard = server.heard.text();
            assert!(heard.contains(line), "{line} {variable}: {}", done.all());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_trusts_a_configured_private_authority() {
    let server = Private::start();
    let folder = tempfile::tempdir().unwrap();
    let authority = folder.path().join("authority.pem");
    fs::write(&authority, &server.authority).unwrap();
    let set = format!("network.ca_file={}", authority.display());
    let url = server.url();
    for (args, status) in [
        (vec!["--upstream", &url], 502),
        (vec!["--upstream", &url, "--set", &set], 200),
    ] {
        let served = Served::start(&args);
        let path = format!("{}/v1/messages", served.url);
        let sent = HttpClient::default()
            .send(Method::POST, &path, &[], b"{}".to_vec(), PATIENCE)
            .await
            .unwrap();
        assert_eq!(sent.status, status, "{:?}", sent.body);
    }
    assert_eq!(server.heard.text().matches("POST /v1/messages").count(), 1);
}

#[test]
fn unreadable_authority_file_is_reported() {
    let clone = Repository::with("");
    fs::write(clone.path().join("empty.pem"), "nothing\n").unwrap();
    for file in ["empty.pem", "missing.pem"] {
        let set = format!("network.ca_file={file}");
        let done = clone.run(&["serve", "--listen", "127.0.0.1:0", "--set", &set]);
        assert_eq!(done.code, Some(2), "{}", done.all());
        assert!(
            done.stderr.contains(file) && done.stderr.contains("hint:"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn every_verb_uses_the_egress_proxy() {
    for variable in ["TRIMTAB_NETWORK_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
        let clone = Repository::with("");
        let url = format!("https://{NAME}");
        for verb in 0..VERBS {
            let server = Private::start();
            let proxy = EgressProxy::start(server.address);
            let authority = clone.path().join("authority.pem");
            fs::write(&authority, &server.authority).unwrap();
            let (mut command, line) = verbs(&clone, &url).swap_remove(verb);
            command
                .env("SSL_CERT_FILE", &authority)
                .env(variable, format!("http://me:hunter2@{}", proxy.address));
            let done = ended(command);
            let heard = proxy.heard();
            assert!(
                heard.contains(&format!("CONNECT {NAME}:443 ")),
                "{line}: {}",
                done.all()
            );
            // me:hunter2
            assert!(heard.contains("Basic bWU6aHVudGVyMg=="), "{heard}");
            assert!(server.heard.text().contains(line), "{line}: {}", done.all());
            assert!(!done.all().contains("hunter2"), "{}", done.all());
        }
    }
}

#[test]
fn no_verb_shows_the_password_of_an_address() {
    const URL: &str = "http://user:hunter2@127.0.0.1:9";
    let clone = Repository::with("");
    fs::write(clone.path().join("talk.json"), "[]").unwrap();
    let upstreams = format!("proxy.upstreams=[{{name='u', url='{URL}'}}]");
    let summariser = format!("proxy.summariser={{url='{URL}', dialect='chat', model='m'}}");
    let not_http = format!("network.proxy={}", URL.replace("http:", "https:"));
    let no_scheme = "network.proxy=user:hunter2@127.0.0.1:9";
    let egress = format!("network.proxy={URL}");
    let wrong = format!("proxy.models={URL}");
    let named = format!("chat={URL}");
    let unknown = format!("nothing={URL}");
    let chat = |base| {
        vec![
            "chat",
            "--model",
            "m",
            "--window",
            "9000",
            "--print",
            "x",
            "--base-url",
            base,
        ]
    };
    let doctor = |set| {
        vec![
            "doctor",
            "--listen",
            "127.0.0.1:0",
            "--upstream",
            "http://h.invalid",
            "--set",
            set,
        ]
    };
    let mut runs = vec![
        vec!["serve", "--upstream", URL],
        vec!["serve", "--upstream", &unknown],
        vec!["serve", "--set", &upstreams],
        vec!["serve", "--set", &summariser],
        vec!["serve", "--set", &not_http],
        vec!["serve", "--set", no_scheme],
        vec!["serve", "--set", &wrong],
        vec!["doctor", "--offline", "--upstream", &named],
        vec!["wrap", "--upstream", URL, "true"],
        vec!["config", "show", "--set", &upstreams],
        vec!["config", "show", "--set", &summariser, "--json"],
        vec!["config", "show", "--set", &egress],
        vec!["config", "show", "--set", no_scheme, "--json"],
        vec!["output", "list", "--session", "s", "--store", URL],
        vec!["inspect", URL],
        vec!["replay", URL],
        vec!["models", "update", URL],
        vec!["models", "show", URL],
        doctor(&egress),
        chat(URL),
        chat("user:hunter2@127.0.0.1:9"),
        chat("ftp://user:hunter2@127.0.0.1:9"),
    ];
    runs.push(vec!["compact", "talk.json", "-o", "-", "--model", "gpt-4o"]);
    for args in runs {
        let mut command = clone.command(&args);
        // Whoever reads the environment finds one there, too.
        command
            .env("OPENAI_BASE_URL", URL)
            .env("ANTHROPIC_BASE_URL", URL)
            .env("HTTPS_PROXY", URL);
        let done = ended(command);
        assert!(done.code.is_some(), "{args:?} did not end");
        assert!(!done.all().contains("hunter2"), "{args:?}: {}", done.all());
    }
}
