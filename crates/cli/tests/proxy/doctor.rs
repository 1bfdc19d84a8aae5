//! `trimtab doctor`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::Value;
use trimtab_testkit::upstream::{Upstream, UpstreamOptions};

use crate::model::{SHORT, options};
use crate::run::{finished, texts, trimtab};

async fn keyed(key: &str) -> Upstream {
    let options = UpstreamOptions {
        key: Some(key.to_owned()),
        ..options(None, SHORT)
    };
    Upstream::start(options).await.unwrap()
}

/// The state and the message of a check.
fn found(report: &Value, name: &str) -> (String, String) {
    let checks = report["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["name"].as_str().unwrap().starts_with(name));
    let check = check.unwrap_or_else(|| panic!("no check {name} in {report}"));
    let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
    (text("state"), text("message"))
}

#[tokio::test(flavor = "multi_thread")]
async fn healthy_configuration_passes_all_checks() {
    let upstream = keyed("sk-very-secret").await;
    let folder = tempfile::tempdir().unwrap();
    let at = format!("chat={}", upstream.url());
    let args = [
        "doctor",
        "--json",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &at,
    ];
    let mut command = trimtab(folder.path(), &args);
    let output = command
        .env("OPENAI_API_KEY", "sk-very-secret")
        .output()
        .unwrap();
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(0), "{stdout}{stderr}");
    assert!(!stdout.contains("secret") && !stderr.contains("secret"));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["ok"], true);
    for name in ["settings", "store", "room", "catalogue", "port", "upstream"] {
        assert_eq!(found(&report, name).0, "ok", "{report}");
    }
    assert!(
        found(&report, "upstream")
            .1
            .contains("accepts the key in OPENAI_API_KEY")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_key_and_taken_port_are_problems() {
    let upstream = keyed("sk-right").await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let at = format!("messages={}", upstream.url());
    let args = ["doctor", "--json", "--listen", &address, "--upstream", &at];
    let mut command = trimtab(folder.path(), &args);
    let output = command
        .env("ANTHROPIC_API_KEY", "sk-wrong-key")
        .output()
        .unwrap();
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}{stderr}");
    assert!(!stdout.contains("sk-wrong") && !stderr.contains("sk-wrong"));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(found(&report, "upstream").0, "problem");
    assert!(
        found(&report, "upstream")
            .1
            .contains("rejects the key in ANTHROPIC_API_KEY")
    );
    assert_eq!(found(&report, "port").0, "problem");
}

#[test]
fn unreachable_upstream_is_a_problem() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = format!("http://{gone}");
    let args = ["doctor", "--listen", "127.0.0.1:0", "--upstream", &at];
    let output = finished(folder.path(), &args);
    let (stdout, _) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stdout}");
    let line = stdout.lines().find(|line| line.contains(&at)).unwrap();
    assert!(line.starts_with("problem"), "{line}");
    assert!(stdout.contains("hint: check the address"), "{stdout}");
}

#[test]
fn file_server_as_upstream_is_a_warning() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}", server.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = server.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
        let page = "<h1>Error response</h1>";
        let head = "HTTP/1.1 404 File not found\r\nserver: SimpleHTTP/0.6\r\n\
                    content-type: text/html\r\ncontent-length";
        write!(stream, "{head}: {}\r\n\r\n{page}", page.len()).unwrap();
    });
    let folder = tempfile::tempdir().unwrap();
    let args = ["doctor", "--listen", "127.0.0.1:0", "--upstream", &at];
    let (stdout, stderr) = texts(&finished(folder.path(), &args));
    answering.join().unwrap();
    let line = stdout.lines().find(|line| line.contains(&at));
    let line = line.unwrap_or_else(|| panic!("{stdout}{stderr}"));
    assert!(line.starts_with("warning"), "{line}");
    assert!(
        line.contains("404") && line.contains("SimpleHTTP"),
        "{line}"
    );
}

#[test]
fn invalid_settings_and_file_as_store_are_problems() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("trimtab.toml"), "[proxy]\nlisten = \n").unwrap();
    let output = finished(folder.path(), &["doctor", "--offline"]);
    let (stdout, _) = texts(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stdout.starts_with("problem") && stdout.contains("trimtab.toml: line 2"),
        "{stdout}"
    );
    fs::write(folder.path().join("trimtab.toml"), "").unwrap();
    fs::write(folder.path().join("store"), "not a folder").unwrap();
    let args = [
        "doctor",
        "--offline",
        "--json",
        "--store",
        "store",
        "--listen",
        "127.0.0.1:0",
    ];
    let (stdout, stderr) = texts(&finished(folder.path(), &args));
    let report: Value =
        serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}{stderr}"));
    assert_eq!(found(&report, "store").0, "problem", "{report}");
}

#[test]
fn damaged_output_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    // Large and hardly compressible, so that it is a file of its own.
    let mut state = 1_u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{state:016x}\n")
    };
    let text: String = (0..250_000).map(|_| next()).collect();
    fs::write(folder.path().join("log"), text).unwrap();
    let put = ["output", "put", "--store", "kept", "--session", "s", "log"];
    assert!(finished(folder.path(), &put).status.success());
    let args = [
        "doctor",
        "--offline",
        "--json",
        "--store",
        "kept",
        "--listen",
        "127.0.0.1:0",
    ];
    let report = |args: &[&str]| -> Value {
        serde_json::from_str(&texts(&finished(folder.path(), args)).0).unwrap()
    };
    assert_eq!(found(&report(&args), "stored outputs").0, "ok");
    let blob = largest_file(&folder.path().join("kept"));
    let mut bytes = fs::read(&blob).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&blob, bytes).unwrap();
    assert_eq!(found(&report(&args), "stored outputs").0, "problem");
}

fn largest_file(folder: &std::path::Path) -> std::path::PathBuf {
    let mut folders = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((fs::metadata(&path).unwrap().len(), path));
            }
        }
    }
    // The index is not meant, nor the room that is kept for bad times.
    let is_blob = |path: &std::path::Path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name != "reserve" && !name.starts_with("trimtab.db"))
    };
    let blobs = files.into_iter().filter(|(_, path)| is_blob(path));
    blobs.max().unwrap().1
}
