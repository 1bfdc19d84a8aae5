//! `trimtab wrap`.

use std::fs;
use std::process::Stdio;

use trimtab_model::Dialect;

use crate::model::upstream;
use crate::run::{finished, kill, program, texts, trimtab};
use crate::talk::with_output;

/// A client that sends what is in `body.json` and keeps the answer.
const CLIENT: &str = r#"#!/bin/bash
url=${ANTHROPIC_BASE_URL#http://}
body=$(cat body.json)
exec 3<>"/dev/tcp/${url%:*}/${url##*:}"
printf 'POST /v1/messages HTTP/1.1\r\nhost: %s\r\ncontent-type: application/json\r\nanthropic-version: 2023-06-01\r\nx-api-key: k\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s' "$url" "${#body}" "$body" >&3
cat <&3 > answer.txt
echo "said: $*"
exit 7
"#;

#[tokio::test(flavor = "multi_thread")]
async fn wrapped_client_keeps_its_exit_code() {
    let upstream = upstream(Some(60_000)).await;
    let folder = tempfile::tempdir().unwrap();
    let client = program(folder.path(), "claude", CLIENT);
    let body = with_output(Dialect::Messages, 5_000);
    fs::write(folder.path().join("body.json"), body.to_string()).unwrap();
    let args = [
        "wrap",
        "--upstream",
        &upstream.url(),
        &client,
        "--json",
        "-p",
        "a question",
    ];
    let output = finished(folder.path(), &args);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    // What follows the client is the client's, and so is standard output.
    assert_eq!(stdout, "said: --json -p a question\n");
    let answer = fs::read_to_string(folder.path().join("answer.txt")).unwrap();
    assert!(
        answer.contains("hello") && answer.contains("x-trimtab-action: edited"),
        "{answer}"
    );
    // Where requests went, and what was saved.
    let lines: Vec<&str> = stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{stderr}");
    assert!(lines[0].ends_with("set by --upstream"), "{stderr}");
    assert!(
        lines[1].starts_with("trimtab: 1 call, ") && stderr.contains("tokens saved"),
        "{stderr}"
    );
    assert!(stderr.contains('$'), "{stderr}");
    assert!(upstream.violations().is_empty());
}

#[test]
fn env_flag_sets_variables_of_any_command() {
    let folder = tempfile::tempdir().unwrap();
    let args = [
        "wrap",
        "--quiet",
        "--env",
        "MY_URL={url}/x",
        "sh",
        "-c",
        "echo $MY_URL $OPENAI_BASE_URL",
    ];
    let (stdout, stderr) = texts(&finished(folder.path(), &args));
    assert!(
        stdout.starts_with("http://127.0.0.1:") && stdout.ends_with("/x\n"),
        "{stdout}"
    );
    assert!(stderr.is_empty(), "{stderr}");
    let (stdout, _) = texts(&finished(
        folder.path(),
        &["wrap", "sh", "-c", "echo $OPENAI_BASE_URL"],
    ));
    assert!(stdout.ends_with("/v1\n"), "{stdout}");
}

#[test]
fn missing_client_exits_with_127() {
    let folder = tempfile::tempdir().unwrap();
    let output = finished(folder.path(), &["wrap", "no-such-client"]);
    assert_eq!(output.status.code(), Some(127));
    assert!(
        texts(&output)
            .1
            .contains("no-such-client: command not found")
    );
}

#[test]
fn signals_are_forwarded_to_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let script = "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut command = trimtab(folder.path(), &["wrap", "sh", "-c", script]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ready = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
    kill(child.id(), "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}
