//! The audit log records who did what, but no conversation text.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::access::{OTHER_TOKEN, TOKEN, get, model, post, serve, value};
use crate::run::{PATIENCE, Served};
use crate::store_secret::eventually;

/// A proxy with two tokens that writes to `audit.jsonl` in its folder.
fn settings(file: &Path) -> String {
    format!(
        "[proxy.audit]\nfile = \"{}\"\n\
         [[proxy.tokens]]\nname = \"ann\"\ntoken = \"{TOKEN}\"\n\
         [[proxy.tokens]]\nname = \"root\"\nrole = \"admin\"\ntoken = \"{OTHER_TOKEN}\"\n",
        file.display()
    )
}

/// The lines of the log, once there are as many as wanted.
async fn lines(file: &Path, wanted: usize) -> Vec<Value> {
    let until = std::time::Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        let lines: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        if lines.len() >= wanted {
            return lines;
        }
        assert!(std::time::Instant::now() < until, "{wanted} lines: {text}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

async fn ask(served: &Served, headers: &[(&str, &str)]) -> u16 {
    let body = json!({"model": "m-1", "max_tokens": 5,
        "messages": [{"role": "user", "content": "the-secret-text"}]});
    let mut all = vec![
        ("x-api-key", "the-secret-key"),
        ("anthropic-version", "2023-06-01"),
    ];
    all.extend(headers);
    let answer = post(
        &served.url,
        "/v1/messages?key=the-secret-query",
        &all,
        &body,
    )
    .await;
    answer.status.as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_has_a_line_per_request_start_reload_and_stop() {
    let upstream = model().await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("audit.jsonl");
    let served = serve(&upstream, &settings(&file), &[]);
    let ann = ("x-trimtab-token", TOKEN);
    assert_eq!(ask(&served, &[ann, ("x-request-id", "req-1")]).await, 200);
    assert_eq!(
        ask(&served, &[("x-trimtab-token", "the-wrong-token")]).await,
        401
    );
    let root = [("x-trimtab-token", OTHER_TOKEN)];
    assert_eq!(get(&served.url, "/trimtab/status", &root).await.status, 200);
    served.signal("HUP");
    served.wait_for("settings reloaded");
    let lines = lines(&file, 5).await;
    let of = |name: &str, value: &str| {
        let found = lines.iter().find(|line| line[name] == value);
        found.unwrap_or_else(|| panic!("no {name} = {value}: {lines:?}"))
    };
    let asked = of("request_id", "req-1");
    assert_eq!(asked["token"], "ann");
    assert_eq!(asked["method"], "POST");
    assert_eq!(asked["path"], "/v1/messages");
    assert_eq!(asked["dialect"], "messages");
    assert_eq!(asked["model"], "m-1");
    assert_eq!(asked["action"], "passed");
    assert_eq!(asked["reason"], "small");
    assert_eq!(asked["status"], 200);
    assert_eq!(asked["refs_redeemed"], 0);
    assert!(asked["time_ms"].as_u64() > Some(0));
    assert!(asked["bytes_in"].as_u64() > Some(50) && asked["bytes_out"].as_u64() > Some(20));
    assert!(asked["peer"].as_str().unwrap().starts_with("127.0.0.1:"));
    assert!(asked["tenant"].as_str().unwrap().len() >= 16);
    let refused = of("reason", "token");
    assert_eq!(
        (&refused["status"], &refused["token"]),
        (&json!(401), &json!(""))
    );
    let looked = of("path", "/trimtab/status");
    assert_eq!(
        (&looked["token"], &looked["action"]),
        (&json!("root"), &json!("answered"))
    );
    of("action", "start");
    of("action", "reload");
    let whole = fs::read_to_string(&file).unwrap();
    for secret in ["the-secret", TOKEN, OTHER_TOKEN, "the-wrong-token"] {
        assert!(!whole.contains(secret), "{secret}: {whole}");
    }
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn audit_log_is_private_and_can_be_rotated() {
    use std::os::unix::fs::PermissionsExt;
    let upstream = model().await;
    let folder = tempfile::tempdir().unwrap();
    let (file, old) = (folder.path().join("a.jsonl"), folder.path().join("a.1"));
    let served = serve(&upstream, &settings(&file), &[]);
    let ann = ("x-trimtab-token", TOKEN);
    ask(&served, &[ann, ("x-request-id", "before")]).await;
    lines(&file, 2).await;
    let mode = fs::metadata(&file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    fs::rename(&file, &old).unwrap();
    served.signal("HUP");
    served.wait_for("settings reloaded");
    ask(&served, &[ann, ("x-request-id", "after")]).await;
    let lines = lines(&file, 2).await;
    assert!(lines.iter().any(|line| line["request_id"] == "after"));
    assert!(!fs::read_to_string(&old).unwrap().contains("\"after\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn unwritable_audit_log_does_not_stop_requests() {
    let upstream = model().await;
    let folder = tempfile::tempdir().unwrap();
    let served = serve(&upstream, &settings(folder.path()), &[]);
    served.wait_for("the audit log");
    let ann = ("x-trimtab-token", TOKEN);
    for _ in 0..5 {
        assert_eq!(ask(&served, &[ann]).await, 200);
    }
    let root = [("x-trimtab-token", OTHER_TOKEN)];
    // The log has a thread of its own.
    eventually("all lines are counted as lost", async || {
        let status = get(&served.url, "/trimtab/status", &root).await;
        value(&status)["audit_lost"].as_u64() >= Some(5)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn request_ids_are_unique_and_returned() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let told = async |id: &str| {
        let answer = get(&served.url, "/healthz", &[("x-request-id", id)]).await;
        answer.header("x-trimtab-request-id").to_owned()
    };
    assert_eq!(told("abc-1.2:3").await, "abc-1.2:3");
    let long = "x".repeat(300);
    for bad in ["a b", "{\"a\":1}", &long] {
        let id = told(bad).await;
        assert!(id.starts_with("tt-") && id.len() == 35, "{id}");
    }
    let body = json!({"model": "m", "messages": []});
    let answer = post(
        &served.url,
        "/v1/messages",
        &[("x-request-id", "seen-1")],
        &body,
    )
    .await;
    assert_eq!(answer.header("x-trimtab-request-id"), "seen-1");
    assert!(
        served
            .wait_for("/v1/messages")
            .contains("\"request_id\":\"seen-1\"")
    );
}
