//! A key reaches only its own provider.

use http::Method;
use serde_json::Value;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};

use crate::recorder::Recorder;
use crate::repository::{Ended, Repository, ended};
use crate::run::{PATIENCE, Served, program};

const ANTHROPIC: &str = "sk-ant-of-anthropic";
const OPENAI: &str = "sk-proj-of-openai";

/// The paths of the three dialects, with the name that a flag gives each.
const DIALECTS: [(&str, &str); 3] = [
    ("chat", "/v1/chat/completions"),
    ("responses", "/v1/responses"),
    ("messages", "/v1/messages"),
];

/// The header with the key that a client of a dialect sends.
fn credential(dialect: &str) -> (&'static str, String) {
    match dialect {
        "messages" => ("x-api-key", ANTHROPIC.to_owned()),
        _ => ("authorization", format!("Bearer {OPENAI}")),
    }
}

async fn send(served: &Served, method: Method, path: &str, header: (&str, &str)) -> HttpAnswer {
    let url = format!("{}{path}", served.url);
    HttpClient::default()
        .send(method, &url, &[header], b"{}".to_vec(), PATIENCE)
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn request_goes_only_to_an_upstream_of_its_dialect() {
    for (only, _) in DIALECTS {
        let server = Recorder::start();
        let served = Served::start(&["--upstream", &format!("{only}={}", server.url)]);
        for (dialect, path) in DIALECTS {
            let (name, key) = credential(dialect);
            let answer = send(&served, Method::POST, path, (name, &key)).await;
            let arrived = server.heard().contains(&format!("POST {path} "));
            assert_eq!(arrived, dialect == only, "{dialect} with {only} only");
            if dialect == only {
                assert_eq!(answer.status, 200);
                continue;
            }
            assert_eq!(answer.status, 421);
            let error: Value = serde_json::from_slice(&answer.body).unwrap();
            let message = error["error"]["message"].as_str().unwrap();
            let flag = format!("--upstream {dialect}=URL");
            assert!(
                message.contains(path) && message.contains(&flag),
                "{message}"
            );
            assert_eq!(error["error"]["type"], "invalid_request_error");
            let of_messages = error["type"] == "error";
            assert_eq!(of_messages, dialect == "messages", "{error}");
        }
        let foreign = if only == "messages" {
            OPENAI
        } else {
            ANTHROPIC
        };
        assert!(!server.heard().contains(foreign));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn path_without_a_dialect_is_routed_by_credential() {
    let (messages, others) = (Recorder::start(), Recorder::start());
    let served = Served::start(&[
        "--upstream",
        &format!("messages={}", messages.url),
        "--upstream",
        &format!("responses={}", others.url),
    ]);
    for path in ["/v1/models", "/v1/files", "/v1/threads/t/messages"] {
        let (name, key) = credential("messages");
        send(&served, Method::GET, path, (name, &key)).await;
        let (name, key) = credential("chat");
        send(&served, Method::GET, path, (name, &key)).await;
        // One of a provider that nobody set an upstream for.
        let google = ("x-goog-api-key", "of-google");
        let refused = send(&served, Method::GET, path, google).await;
        assert_eq!(refused.status, 421);
    }
    let (messages, others) = (messages.heard(), others.heard());
    assert!(messages.contains(ANTHROPIC) && !messages.contains(OPENAI));
    assert!(others.contains(OPENAI) && !others.contains(ANTHROPIC));
    assert!(!messages.contains("of-google") && !others.contains("of-google"));
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_not_sent_to_another_provider() {
    let served = Served::start(&[]);
    for (path, (name, key)) in [
        ("/v1/messages", credential("chat")),
        ("/v1/chat/completions", credential("messages")),
        ("/v1/responses", credential("messages")),
    ] {
        let answer = send(&served, Method::POST, path, (name, &key)).await;
        assert_eq!(answer.status, 421, "{path}");
        let text = String::from_utf8_lossy(&answer.body);
        assert!(text.contains("is not one for https://api."), "{text}");
        assert!(!text.contains(&key), "{text}");
    }
}

#[test]
fn proxy_prints_destinations_and_client_settings_at_startup() {
    let server = Recorder::start();
    let served = Served::start(&["--upstream", &format!("chat={}", server.url)]);
    let told = served.wait_for("go to ");
    let expected = format!("Chat Completions go to {}, set by --upstream", server.url);
    assert!(told.contains(&expected), "{told}");
    // The next line is for the only clients that it serves.
    let pointing = served.wait_for("_BASE_URL=");
    assert!(pointing.contains("OPENAI_BASE_URL="), "{pointing}");
}

#[tokio::test(flavor = "multi_thread")]
async fn version_in_a_base_url_is_not_repeated() {
    let server = Recorder::start();
    let address = format!("{}/v1", server.url);
    let served = Served::start(&["--upstream", &address]);
    for (_, path) in DIALECTS {
        let answer = send(&served, Method::POST, path, ("x-api-key", "k")).await;
        assert_eq!(answer.status, 200);
        assert!(
            server.heard().contains(&format!("POST {path} HTTP")),
            "{path}"
        );
    }
    let clone = Repository::with("");
    let doctor = ["doctor", "--listen", "127.0.0.1:0", "--upstream", &address];
    assert_eq!(clone.run(&doctor).code, Some(0));
    assert!(server.heard().contains("GET /v1/models HTTP"));
}

/// A client that sends its key to every address in its environment.
const CLIENT: &str = r#"#!/bin/bash
for variable in OPENAI_BASE_URL OPENAI_API_BASE; do
  address=${!variable#http://}
  host=${address%%/*}
  exec 3<>"/dev/tcp/${host%:*}/${host##*:}"
  printf 'POST /%s/chat/completions HTTP/1.1\r\nhost: %s\r\nauthorization: Bearer %s\r\nx-from: %s\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}' "${address#*/}" "$host" "$OPENAI_API_KEY" "$variable" >&3
  cat <&3
done
"#;

#[test]
fn wrapped_client_keeps_its_destination() {
    for set in ["OPENAI_BASE_URL", "OPENAI_API_BASE"] {
        let server = Recorder::start();
        let clone = Repository::with("");
        let client = program(&clone.path(), "aider", CLIENT);
        let mut command = clone.command(&["wrap", &client]);
        command
            .env(set, format!("{}/v1", server.url))
            .env("OPENAI_API_KEY", OPENAI);
        let done = ended(command);
        assert_eq!(done.code, Some(0), "{}", done.all());
        // Both of its requests came by way of the proxy, which says so in the answer.
        assert_eq!(
            done.stdout.matches("x-trimtab-action: ").count(),
            2,
            "{}",
            done.all()
        );
        let heard = server.heard();
        assert_eq!(
            heard.matches("POST /v1/chat/completions HTTP").count(),
            2,
            "{heard}"
        );
        assert_eq!(heard.matches(OPENAI).count(), 2);
        let told = format!("go to {}/v1, set by {set}", server.url);
        assert!(done.stderr.contains(&told), "{}", done.stderr);
    }
}

/// Asks a model at `address` in `dialect`, with the keys of both providers at hand.
fn chat(dialect: &str, address: &str) -> Ended {
    let clone = Repository::with("");
    let mut command = clone.command(&["chat", "--model", "m", "--window", "9000"]);
    command
        .args(["--dialect", dialect, "--base-url", address])
        .args(["--print", "hello"])
        .env("ANTHROPIC_API_KEY", ANTHROPIC)
        .env("OPENAI_API_KEY", OPENAI);
    ended(command)
}

#[test]
fn chat_sends_a_key_only_in_the_dialect_of_its_provider() {
    for (dialect, mine, foreign) in [
        ("chat", OPENAI, ANTHROPIC),
        ("responses", OPENAI, ANTHROPIC),
        ("messages", ANTHROPIC, OPENAI),
    ] {
        let server = Recorder::start();
        chat(dialect, &server.url);
        let heard = server.heard();
        assert!(
            heard.contains(mine) && !heard.contains(foreign),
            "{dialect}: {heard}"
        );
    }
}

#[test]
fn chat_sends_no_key_to_the_address_of_another_provider() {
    for (dialect, address) in [
        ("chat", "https://api.anthropic.com/v1"),
        ("messages", "https://api.openai.com"),
    ] {
        let done = chat(dialect, address);
        assert_eq!(done.code, Some(2), "{}", done.all());
        assert!(
            done.stderr.contains("so it is not sent there"),
            "{}",
            done.stderr
        );
    }
}

#[test]
fn doctor_sends_a_key_only_to_an_upstream_of_its_dialect() {
    for (flag, expected) in [("messages=", ANTHROPIC), ("chat=", OPENAI), ("", "")] {
        let server = Recorder::start();
        let clone = Repository::with("");
        let upstream = format!("{flag}{}", server.url);
        let mut command =
            clone.command(&["doctor", "--listen", "127.0.0.1:0", "--upstream", &upstream]);
        command
            .env("ANTHROPIC_API_KEY", ANTHROPIC)
            .env("OPENAI_API_KEY", OPENAI);
        ended(command);
        let heard = server.heard();
        assert!(heard.contains("GET /v1/models"));
        for key in [ANTHROPIC, OPENAI] {
            assert_eq!(heard.contains(key), key == expected, "{flag}");
        }
    }
}
