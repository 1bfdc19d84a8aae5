//! TLS to the database, and credentials from the environment.

use std::path::Path;
use std::process::Output;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use tempfile::TempDir;
use trimtab::store::{SessionId, SharedOptions, Store};
use trimtab_testkit::servers::{ObjectServer, PostgresServer, PostgresSetup};

use crate::chat_place::{self, Place};
use crate::run::{texts, trimtab};

const PASSWORD: &str = "secret of the database";

/// A server with TLS, a user with a password, and the certificate of the authority.
struct EncryptedServer {
    server: PostgresServer,
    /// Holds `root.pem`, `other.pem` and `server.pem`.
    folder: TempDir,
}

/// A new authority: its certificate, and what signs with it.
fn authority() -> (String, Issuer<'static, KeyPair>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap().pem();
    (certificate, Issuer::new(params, key))
}

/// None if PostgreSQL is not installed, which is reported.
fn encrypted_server() -> Option<EncryptedServer> {
    let (root, issuer) = authority();
    let key = KeyPair::generate().unwrap();
    // The address is 127.0.0.1, which the certificate does not name.
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let server = PostgresServer::own(&PostgresSetup {
        settings: "ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n"
            .to_owned(),
        access: "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n".to_owned(),
        files: vec![
            ("server.pem", certificate.clone()),
            ("server.key", key.serialize_pem()),
        ],
    })?;
    let role = format!("CREATE ROLE ann LOGIN SUPERUSER PASSWORD '{PASSWORD}'");
    server.sql("postgres", &role).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("root.pem", root),
        ("other.pem", authority().0),
        ("server.pem", certificate),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Some(EncryptedServer { server, folder })
}

impl EncryptedServer {
    /// The URL of a new database under a host name, without user and password.
    fn database(&self, host: &str) -> String {
        let url = self.server.new_database().unwrap();
        url.replace("postgres@127.0.0.1", host)
    }

    fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }
}

/// Stores an output, with these variables.
fn put(folder: &Path, store: &str, variables: &[(&str, &str)]) -> Output {
    std::fs::write(folder.join("text"), "text").unwrap();
    let put = ["output", "put", "--session", "s", "--call", "c", "text"];
    let mut command = trimtab(folder, &[&put[..], &["--store", store]].concat());
    command.envs(variables.iter().copied()).output().unwrap()
}

#[test]
fn certificate_of_a_database_is_checked_as_sslmode_says() {
    let Some(encrypted) = encrypted_server() else {
        return;
    };
    let (root, other) = (encrypted.file("root.pem"), encrypted.file("other.pem"));
    let own = encrypted.file("server.pem");
    let (named, unnamed) = ("localhost", "127.0.0.1");
    let cases = [
        (named, "", "", true),
        (unnamed, "prefer", "", true),
        (unnamed, "require", "", true),
        (unnamed, "require", &other, false),
        (unnamed, "require", &root, true),
        (unnamed, "verify-ca", &root, true),
        (unnamed, "verify-full", &root, false),
        (named, "verify-full", &root, true),
        (named, "verify-full", &own, true),
        (unnamed, "verify-full", &own, false),
        (named, "verify-full", &other, false),
        (named, "verify-full", "", false),
        (named, "disable", "", false),
    ];
    for (host, mode, root, is_accepted) in cases {
        let what = format!("{host} sslmode={mode} root={root}");
        let mut url = encrypted.database(host);
        if !mode.is_empty() {
            url = format!("{url}?sslmode={mode}");
        }
        let variables = [
            ("PGUSER", "ann"),
            ("PGPASSWORD", PASSWORD),
            ("PGSSLROOTCERT", root),
        ];
        let done = put(encrypted.folder.path(), &url, &variables);
        let (_, error) = texts(&done);
        assert_eq!(done.status.success(), is_accepted, "{what}: {error}");
        assert!(!error.contains(PASSWORD), "{what}: {error}");
        if !is_accepted && mode != "disable" {
            assert!(error.contains("PGSSLROOTCERT"), "{what}: {error}");
        }
    }
    // The same from the URL and from variables.
    let url = format!("{}?sslrootcert={root}", encrypted.database(named));
    let variables = [
        ("PGUSER", "ann"),
        ("PGPASSWORD", PASSWORD),
        ("PGSSLMODE", "verify-full"),
    ];
    let done = put(encrypted.folder.path(), &url, &variables);
    assert!(done.status.success(), "{}", texts(&done).1);
}

#[test]
fn chat_uses_credentials_of_the_store_and_hides_them_from_commands() {
    let Some(encrypted) = encrypted_server() else {
        return;
    };
    let Some(objects) = ObjectServer::shared() else {
        return;
    };
    let database = encrypted.database("localhost");
    let bucket = objects.new_bucket().unwrap();
    let blobs = format!("s3://{bucket}/chat");
    let endpoint = format!("http://{}", objects.address());
    let place = Place::new();
    // Its output is large enough for the object store, so both servers are used.
    let looks = "env; tr '\\0' '\\n' < /proc/$PPID/environ; head -c 400000 /dev/urandom | base64";
    let call = json!({"name": "shell", "arguments": {"command": looks}});
    let model = place.script(&json!([{"calls": [call]}, {"text": "done"}]).to_string());
    let chat = [
        "--model",
        &model,
        "--print",
        "go on",
        "--json",
        "--allow-shell",
    ];
    let stores = ["--store", &database, "--blobs", &blobs];
    let secrets = [PASSWORD, "key of the bucket", "secret of the bucket"];
    let mut command = place.command(&[&chat[..], &stores].concat());
    command.envs([
        ("PGUSER", "ann"),
        ("PGPASSWORD", secrets[0]),
        ("AWS_ACCESS_KEY_ID", secrets[1]),
        ("AWS_SECRET_ACCESS_KEY", secrets[2]),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", &endpoint),
    ]);
    let done = chat_place::finish(command, "");
    assert_eq!(done.code, 0, "{}{}", done.stdout, done.stderr);
    let name = database.rsplit('/').next().unwrap();
    let stored = "SELECT count(*) FROM trimtab.blobs WHERE in_object_store";
    assert_eq!(encrypted.server.sql(name, stored).unwrap(), "1");
    let (id, session) = stored_output(&encrypted.server, name);
    let store = SharedOptions::new(format!(
        "{}?user=ann&password={}",
        database,
        PASSWORD.replace(' ', "%20")
    ));
    let store = store
        .blobs(ObjectServer::url(&bucket, objects.address()).replace("/trimtab?", "/chat?"))
        .open()
        .unwrap();
    let output = store.get(&SessionId::new(session).unwrap(), &id).unwrap();
    let output = String::from_utf8_lossy(&output);
    assert!(
        output.contains("PATH="),
        "the command printed its environment"
    );
    for secret in secrets {
        assert!(!output.contains(secret), "a command saw {secret}");
    }
}

/// The ref and the session of the only large output.
fn stored_output(server: &PostgresServer, database: &str) -> (String, String) {
    let select = "SELECT outputs.id || ' ' || convert_from(name, 'UTF8')
        FROM trimtab.outputs JOIN trimtab.sessions ON sessions.id = outputs.session
            JOIN trimtab.blobs ON blobs.id = outputs.whole WHERE in_object_store";
    let found = server.sql(database, select).unwrap();
    let (id, session) = found.split_once(' ').unwrap();
    (id.to_owned(), session.to_owned())
}
