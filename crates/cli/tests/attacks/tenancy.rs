//! No tenant can read what another tenant stored.

use crate::access::{OTHER_TOKEN, TOKEN, get, model, retrieved, serve, stored_ref};
use crate::run::say;

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

#[tokio::test(flavor = "multi_thread")]
async fn other_user_of_this_machine_is_not_the_local_user() {
    let is_root = std::process::Command::new("id").arg("-u").output();
    let is_root = is_root.is_ok_and(|output| output.stdout == b"0\n");
    let as_other = ["setpriv", "--reuid=65534", "--clear-groups", "curl"];
    let can = std::process::Command::new(as_other[0])
        .args(&as_other[1..])
        .arg("--version")
        .output();
    if !is_root || !can.is_ok_and(|output| output.status.success()) {
        return say("SKIPPED: this needs root, setpriv and curl");
    }
    let upstream = model().await;
    let served = serve(&upstream, "", &[]);
    let id = stored_ref(&served.url, &[]).await.unwrap();
    let path = format!("{}/v1/retrieve/{id}", served.url);
    let asked = |program: &str, args: &[&str]| {
        let mut command = std::process::Command::new(program);
        command.args(args);
        let shown = ["-s", "-o", "/dev/null", "-w", "%{http_code}", &path];
        let output = command.args(shown).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(asked("curl", &[]), "200");
    assert_eq!(asked(as_other[0], &as_other[1..]), "404");
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
    // Without a key the token alone makes the tenant.
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
