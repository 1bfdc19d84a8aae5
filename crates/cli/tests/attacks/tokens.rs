//! Tokens: strength, roles and secrecy.

use serde_json::{Value, json};

use crate::access::{OTHER_TOKEN, TOKEN, get, model, post, serve, text, value, write_settings};
use crate::run::{finished, texts};

/// Two users: one may use the proxy, one may look at it, too.
fn users() -> String {
    format!(
        "[[proxy.tokens]]\nname = \"ann\"\ntoken = \"{TOKEN}\"\n\
         [[proxy.tokens]]\nname = \"root\"\nrole = \"admin\"\ntoken = \"{OTHER_TOKEN}\"\n"
    )
}

#[test]
fn weak_tokens_are_rejected_at_startup() {
    for token in [
        "t",
        "opensesame",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        let one = format!("[proxy]\ntoken = \"{token}\"\n");
        let named = format!("[[proxy.tokens]]\nname = \"a\"\ntoken = \"{token}\"\n");
        for settings in [one, named] {
            let folder = tempfile::tempdir().unwrap();
            write_settings(folder.path(), &settings);
            let output = finished(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
            let (_, stderr) = texts(&output);
            assert_eq!(output.status.code(), Some(2), "{settings}: {stderr}");
            assert!(stderr.contains("128 bits"), "{stderr}");
            assert!(stderr.contains("hint: `trimtab config token`"), "{stderr}");
            assert!(token.len() < 2 || !stderr.contains(token), "{stderr}");
        }
    }
}

#[test]
fn invalid_token_settings_are_named() {
    let both = format!("name = \"a\"\ntoken = \"{TOKEN}\"\nsha256 = \"{TOKEN}{TOKEN}\"");
    let cases = [
        ("name = \"a\"", "either token or sha256"),
        (both.as_str(), "either token or sha256"),
        ("name = \"a\"\nsha256 = \"abc\"", "64 hexadecimal digits"),
        ("name = \"default\"\nsha256 = \"\"", "no other token has"),
        ("name = \"a b\"\nsha256 = \"\"", "1 to 64 letters"),
        ("name = \"a\"\nrole = \"king\"", "king"),
    ];
    for (entry, named) in cases {
        let folder = tempfile::tempdir().unwrap();
        write_settings(folder.path(), &format!("[[proxy.tokens]]\n{entry}\n"));
        let output = finished(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        let (_, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(2), "{entry}: {stderr}");
        assert!(stderr.contains(named), "{entry}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_decide_what_a_token_allows() {
    let upstream = model().await;
    let served = serve(&upstream, &users(), &[]);
    let (ann, root) = (("x-trimtab-token", TOKEN), ("x-trimtab-token", OTHER_TOKEN));
    let status = async |path: &str, headers: &[(&str, &str)]| {
        get(&served.url, path, headers).await.status.as_u16()
    };
    assert_eq!(status("/trimtab/status", &[ann]).await, 403);
    assert_eq!(status("/trimtab/status", &[root]).await, 200);
    for token in [ann, root] {
        assert_eq!(status("/v1/retrieve/none", &[token]).await, 404);
    }
    for path in [
        "/trimtab/status",
        "/v1/retrieve/none",
        "/v1/compress",
        "/v1/models",
    ] {
        assert_eq!(status(path, &[]).await, 401, "{path}");
    }
    assert!(upstream.requests().is_empty());
    let health = get(&served.url, "/healthz", &[]).await;
    assert_eq!(value(&health), json!({"status": "ok"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn access_errors_have_the_form_of_the_dialect() {
    let upstream = model().await;
    let served = serve(&upstream, &users(), &[]);
    let wrong = [("x-trimtab-token", "wrong")];
    let body = json!({"messages": []});
    let answer = post(&served.url, "/v1/messages", &wrong, &body).await;
    assert_eq!(answer.status, 401);
    let said = value(&answer);
    assert_eq!(said["type"], "error");
    assert_eq!(said["error"]["type"], "authentication_error");
    for path in ["/v1/chat/completions", "/v1/responses"] {
        let answer = post(&served.url, path, &wrong, &body).await;
        assert_eq!(answer.status, 401);
        let said = value(&answer);
        assert_eq!(said["error"]["code"], "invalid_api_key", "{said}");
        assert!(
            said["error"]["message"]
                .as_str()
                .unwrap()
                .contains("x-trimtab-token")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn token_is_never_forwarded_or_shown() {
    let upstream = model().await;
    let served = serve(&upstream, &users(), &["--json"]);
    let headers = [
        ("x-trimtab-token", TOKEN),
        ("x-api-key", "k"),
        ("anthropic-version", "2023-06-01"),
    ];
    let body =
        json!({"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "q"}]});
    let answer = post(&served.url, "/v1/messages", &headers, &body).await;
    assert_eq!(answer.status, 200, "{}", text(&answer));
    let requests = upstream.requests();
    assert_eq!(requests.len(), 1);
    assert!(!format!("{:?}", requests[0].headers).contains(TOKEN));
    let bearer = format!("Bearer {OTHER_TOKEN}");
    let status = get(
        &served.url,
        "/trimtab/status",
        &[("authorization", &bearer)],
    )
    .await;
    assert_eq!(status.status, 200);
    assert!(!text(&status).contains(OTHER_TOKEN));
    served.signal("TERM");
    let (_, stdout) = served.end();
    let lines: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[0]["token"], "ann");
    assert!(
        !stdout.contains(TOKEN) && !stdout.contains(OTHER_TOKEN),
        "{stdout}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_token_is_accepted_by_its_digest() {
    let folder = tempfile::tempdir().unwrap();
    let (stdout, _) = texts(&finished(
        folder.path(),
        &["config", "token", "ann", "--json"],
    ));
    let made: Value = serde_json::from_str(&stdout).unwrap();
    let (token, sha256) = (
        made["token"].as_str().unwrap(),
        made["sha256"].as_str().unwrap(),
    );
    let settings =
        format!("[[proxy.tokens]]\nname = \"ann\"\nrole = \"admin\"\nsha256 = \"{sha256}\"\n");
    let upstream = model().await;
    let served = serve(&upstream, &settings, &[]);
    for (presented, status) in [(token, 200), (sha256, 401), ("", 401)] {
        let headers = [("x-trimtab-token", presented)];
        let answer = get(&served.url, "/trimtab/status", &headers).await;
        assert_eq!(answer.status.as_u16(), status);
    }
    let (plain, told) = texts(&finished(folder.path(), &["config", "token"]));
    assert_eq!(plain.trim().len(), 64);
    assert!(
        told.contains("[[proxy.tokens]]") && !told.contains(plain.trim()),
        "{told}"
    );
}
