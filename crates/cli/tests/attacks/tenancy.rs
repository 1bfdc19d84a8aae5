//! No tenant can read what another tenant stored.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use serde_json::json;
use trimtab_model::Dialect;

use crate::access::{OTHER_TOKEN, TOKEN, get, model, retrieved, serve, stored_ref, value};
use crate::run::say;
use crate::talk::with_output;

/// What is said of a ref that nobody has.
async fn miss(url: &str, headers: &[(&str, &str)]) -> (u16, String) {
    retrieved(url, "0123456789abcdef", headers).await
}

#[tokio::test(flavor = "multi_thread")]
async fn gateway_headers_define_tenants() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    for name in [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "ocp-apim-subscription-key",
        "x-litellm-api-key",
        "x-litellm-key",
        "x-functions-key",
        "cf-aig-authorization",
        "x-portkey-api-key",
        "helicone-auth",
        "cookie",
    ] {
        let (one, other) = ([(name, "of-a")], [(name, "of-b")]);
        let id = stored_ref(&served.url, &one).await.unwrap();
        assert_eq!(retrieved(&served.url, &id, &one).await.0, 200, "{name}");
        let missed = miss(&served.url, &other).await;
        assert_eq!(missed.0, 404);
        for stranger in [&other[..], &[], &[("x-api-key", "of-c")]] {
            assert_eq!(
                retrieved(&served.url, &id, stranger).await,
                missed,
                "{name}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_credential_shares_nothing() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    for name in [
        "x-company-auth",
        "x-user-id",
        "x-forwarded-for",
        "via",
        "x-session-token",
    ] {
        let one = [(name, "of-a")];
        assert_eq!(stored_ref(&served.url, &one).await, None, "{name}");
    }
    // A key that stands where nobody looks does not make its owner the local user.
    let local = stored_ref(&served.url, &[]).await.unwrap();
    let status = retrieved(&served.url, &local, &[("x-company-auth", "of-a")])
        .await
        .0;
    assert_eq!(status, 404);
    let named = "[proxy.tenancy]\ncredential_headers = [\"x-company-auth\"]\n";
    let served = serve(&upstream, named, &[]);
    let (one, other) = ([("x-company-auth", "of-a")], [("x-company-auth", "of-b")]);
    let id = stored_ref(&served.url, &one).await.unwrap();
    assert_eq!(retrieved(&served.url, &id, &one).await.0, 200);
    assert_eq!(retrieved(&served.url, &id, &other).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn local_user_without_a_key_is_managed() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let id = stored_ref(&served.url, &[]).await.unwrap();
    // Every call has a connection of its own.
    assert_eq!(retrieved(&served.url, &id, &[]).await.0, 200);
    assert_eq!(
        retrieved(&served.url, &id, &[("x-api-key", "k")]).await.0,
        404
    );
}

/// The start of a command that runs as another user of this machine; none where that cannot be.
fn as_other_user(program: &str) -> Option<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--clear-groups", program]);
    let is_root = Command::new("id").arg("-u").output();
    let is_root = is_root.is_ok_and(|output| output.stdout == b"0\n");
    let mut trial = Command::new("setpriv");
    let can = trial.args(["--reuid=65534", "--clear-groups", program, "--version"]);
    if is_root && can.output().is_ok_and(|output| output.status.success()) {
        return Some(command);
    }
    say(&format!("SKIPPED: this needs root, setpriv and {program}"));
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn other_user_of_this_machine_is_not_the_local_user() {
    let Some(mut other) = as_other_user("curl") else {
        return;
    };
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let id = stored_ref(&served.url, &[]).await.unwrap();
    let path = format!("{}/v1/retrieve/{id}", served.url);
    let asked = |command: &mut Command| {
        let shown = ["-s", "-o", "/dev/null", "-w", "%{http_code}", &path];
        let output = command.args(shown).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(asked(&mut Command::new("curl")), "200");
    assert_eq!(asked(&mut other), "404");
}

#[tokio::test(flavor = "multi_thread")]
async fn closed_connection_of_another_user_is_not_the_local_user() {
    let Some(mut other) = as_other_user("bash") else {
        return;
    };
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let body = with_output(Dialect::Chat, 4_000);
    let body = json!({"model": "gpt-4o", "messages": body["messages"]}).to_string();
    let request = format!(
        "POST /v1/compress HTTP/1.1\r\nhost: localhost\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), request).unwrap();
    let all = PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(file.path(), all).unwrap();
    let port = served.url.rsplit(':').next().unwrap();
    // Each closes its connection while the request still waits to be read.
    let script = format!(
        "for at in $(seq 200); do cat {} >/dev/tcp/127.0.0.1/{port}; done",
        file.path().display()
    );
    let done = other.args(["-c", &script]).status().unwrap();
    assert!(done.success());
    // All of them are before this one in the queue.
    assert_eq!(get(&served.url, "/healthz", &[]).await.status, 200);
    tokio::time::sleep(Duration::from_secs(2)).await;
    let listed = get(&served.url, "/trimtab/status", &[]).await;
    let figures = value(&listed);
    assert_eq!(figures["sessions"], 0, "{figures}");
    assert!(stored_ref(&served.url, &[]).await.is_some());
    let figures = value(&get(&served.url, "/trimtab/status", &[]).await);
    assert_eq!(figures["sessions"], 1, "{figures}");
}

#[tokio::test(flavor = "multi_thread")]
async fn user_header_separates_users_of_one_key() {
    let upstream = model().await;
    let served = serve(
        &upstream,
        "[proxy.tenancy]\nuser_header = \"x-user\"\n",
        &[],
    );
    let of = |user: &'static str, key: &'static str| [("x-api-key", key), ("x-user", user)];
    let id = stored_ref(&served.url, &of("ann", "k")).await.unwrap();
    assert_eq!(retrieved(&served.url, &id, &of("ann", "k")).await.0, 200);
    // It narrows, and never widens.
    for stranger in [of("bob", "k"), of("ann", "other")] {
        assert_eq!(
            retrieved(&served.url, &id, &stranger).await.0,
            404,
            "{stranger:?}"
        );
    }
    assert_eq!(
        retrieved(&served.url, &id, &[("x-api-key", "k")]).await.0,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn token_is_part_of_the_tenant() {
    let upstream = model().await;
    let settings = format!(
        "[[proxy.tokens]]\nname = \"ann\"\ntoken = \"{TOKEN}\"\n\
         [[proxy.tokens]]\nname = \"bob\"\ntoken = \"{OTHER_TOKEN}\"\n"
    );
    let served = serve(&upstream, &settings, &[]);
    let of = |token: &'static str| [("x-api-key", "k"), ("x-trimtab-token", token)];
    let id = stored_ref(&served.url, &of(TOKEN)).await.unwrap();
    assert_eq!(retrieved(&served.url, &id, &of(TOKEN)).await.0, 200);
    assert_eq!(retrieved(&served.url, &id, &of(OTHER_TOKEN)).await.0, 404);
    // A named token is its user, with any key and with none.
    let renewed = [("x-api-key", "another"), ("x-trimtab-token", TOKEN)];
    assert_eq!(retrieved(&served.url, &id, &renewed).await.0, 200);
    let alone = [("x-trimtab-token", TOKEN)];
    let id = stored_ref(&served.url, &alone).await.unwrap();
    assert_eq!(retrieved(&served.url, &id, &alone).await.0, 200);
    let other = [("x-trimtab-token", OTHER_TOKEN)];
    assert_eq!(retrieved(&served.url, &id, &other).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_token_with_an_unknown_credential_shares_nothing() {
    let upstream = model().await;
    let served = serve(&upstream, &format!("[proxy]\ntoken = \"{TOKEN}\"\n"), &[]);
    let token = ("x-trimtab-token", TOKEN);
    assert!(stored_ref(&served.url, &[token]).await.is_some());
    for name in ["x-company-auth", "x-forwarded-for"] {
        let stored = stored_ref(&served.url, &[token, (name, "of-a")]).await;
        assert_eq!(stored, None, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ref_is_found_by_the_clients_session_name() {
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    for name in ["mine", "a name / with signs"] {
        let of = |key: &'static str, session| [("x-api-key", key), ("x-trimtab-session", session)];
        let id = stored_ref(&served.url, &of("k", name)).await.unwrap();
        assert_eq!(
            retrieved(&served.url, &id, &of("k", name)).await.0,
            200,
            "{name}"
        );
        assert_eq!(
            retrieved(&served.url, &id, &[("x-api-key", "k")]).await.0,
            200
        );
        let missed = miss(&served.url, &of("k", name)).await;
        assert_eq!(missed.0, 404);
        assert_eq!(retrieved(&served.url, &id, &of("k", "other")).await, missed);
        assert_eq!(
            retrieved(&served.url, &id, &of("stranger", name)).await,
            missed
        );
    }
    assert_eq!(get(&served.url, "/healthz", &[]).await.status, 200);
}
