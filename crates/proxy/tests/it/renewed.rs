//! A conversation continues when the client's access token is renewed. Keys, and tokens behind a
//! gateway, stay apart.

use std::collections::BTreeSet;

use serde_json::Value;
use trimtab_model::Dialect;
use trimtab_proxy::{NamedToken, Secret, TokenRole};

use crate::fake::{Got, Reply, Upstream, get, post};
use crate::talk::{Talk, answer, lines, path};
use crate::{config, proxy};

const OLD: &str = "Bearer sk-ant-oat01-old";
const NEW: &str = "Bearer sk-ant-oat01-new";
const OLD_JWT: &str = "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJvbGQifQ.c2ln";
const NEW_JWT: &str = "Bearer eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJuZXcifQ.c2ln";
const ANN: &str = "0f8fad5bd9cb469fa16570867728950e";
const BOB: &str = "7c9e6679f42b4c0ab2f0a1d5e8c3b614";

async fn echo(dialect: Dialect) -> Upstream {
    Upstream::start(move |_, _| Reply::json(200, answer(dialect, "much", 500))).await
}

fn long(dialect: Dialect) -> Talk {
    let mut talk = Talk::new(dialect, "what is in the file?");
    talk.round("c1", &lines(5_000)).says("much").user("go on");
    talk
}

async fn ask(base: &str, headers: &[(&str, &str)], talk: &Talk) -> Got {
    let mut all = vec![("session-id", "s1")];
    all.extend(headers);
    post(base, path(talk.dialect), &all, talk.body()).await
}

fn session(got: &Got) -> &str {
    got.header("x-trimtab-session")
}

/// The messages that were sent.
fn list(upstream: &Upstream, dialect: Dialect, at: usize) -> Vec<Value> {
    let name = if dialect == Dialect::Responses {
        "input"
    } else {
        "messages"
    };
    upstream.seen()[at].json()[name].as_array().unwrap().clone()
}

/// The first ref that a request shows.
fn shown_ref(upstream: &Upstream, at: usize) -> String {
    let text = upstream.seen()[at].text();
    let at = text.find("ref_id").unwrap() + "ref_id".len();
    text[at..]
        .chars()
        .skip_while(|letter| !letter.is_ascii_alphanumeric())
        .take_while(char::is_ascii_alphanumeric)
        .collect()
}

#[tokio::test]
async fn renewed_token_continues_the_conversation_with_its_refs() {
    for dialect in Dialect::ALL {
        for (old, new) in [(OLD, NEW), (OLD_JWT, NEW_JWT)] {
            let upstream = echo(dialect).await;
            let (_running, base) = proxy(config(&upstream.url())).await;
            let (old, new) = ([("authorization", old)], [("authorization", new)]);
            let mut talk = long(dialect);
            let before = ask(&base, &old, &talk).await;
            // Nothing has to be sent under the new token before it may read.
            let read = format!("/v1/retrieve/{}", shown_ref(&upstream, 0));
            let got = get(&base, &read, &new).await;
            assert_eq!(got.status, 200, "{dialect}: {}", got.text());
            talk.says("more").user("and on");
            let after = ask(&base, &new, &talk).await;
            assert_eq!(session(&before), session(&after), "{dialect}");
            let (one, other) = (list(&upstream, dialect, 0), list(&upstream, dialect, 1));
            assert_eq!(one[..], other[..one.len()], "{dialect}");
        }
    }
}

#[tokio::test]
async fn named_token_continues_under_any_credential() {
    let dialect = Dialect::Messages;
    let upstream = echo(dialect).await;
    let mut settings = config(&upstream.url());
    settings.tokens = [("ann", ANN), ("bob", BOB)]
        .map(|(name, token)| NamedToken {
            name: name.to_owned(),
            role: TokenRole::Use,
            token: Some(Secret::new(token)),
            sha256: None,
        })
        .to_vec();
    let (_running, base) = proxy(settings).await;
    let talk = long(dialect);
    let of = |token: &'static str, key: &'static str| {
        // Behind a gateway, which adds its headers.
        let by = ("x-forwarded-for", "10.0.0.1");
        [("x-trimtab-token", token), ("authorization", key), by]
    };
    let first = ask(&base, &of(ANN, OLD), &talk).await;
    for (token, key, is_same) in [(ANN, NEW, true), (ANN, "Bearer k", true), (BOB, OLD, false)] {
        let got = ask(&base, &of(token, key), &talk).await;
        assert_eq!(session(&got) == session(&first), is_same, "{token} {key}");
    }
}

#[tokio::test]
async fn keys_and_tokens_behind_a_gateway_never_share_conversations() {
    let dialect = Dialect::Messages;
    let upstream = echo(dialect).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let talk = long(dialect);
    let mut seen = Vec::new();
    for key in ["Bearer sk-ant-api03-one", "Bearer sk-ant-api03-two", OLD] {
        let got = ask(&base, &[("authorization", key)], &talk).await;
        seen.push(session(&got).to_owned());
    }
    for key in [OLD, NEW] {
        for sign in ["via", "x-forwarded-for", "x-user-id"] {
            let got = ask(&base, &[("authorization", key), (sign, "1")], &talk).await;
            seen.push(session(&got).to_owned());
        }
    }
    let found: BTreeSet<&String> = seen.iter().collect();
    // Two keys, the local user, and the two tokens: each is itself behind every gateway.
    assert_eq!(found.len(), 5, "{seen:?}");
}
