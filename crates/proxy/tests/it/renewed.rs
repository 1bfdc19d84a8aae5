//! A conversation continues after the client's access token is renewed, and only then.

use serde_json::Value;
use trimtab_model::Dialect;

use crate::fake::{Got, Reply, Upstream, get, post};
use crate::talk::{Talk, answer, lines, path};
use crate::{config, proxy};

const OLD: &str = "Bearer sk-ant-oat01-old";
const NEW: &str = "Bearer sk-ant-oat01-new";

async fn echo(dialect: Dialect) -> Upstream {
    Upstream::start(move |_, _| Reply::json(200, answer(dialect, "much", 500))).await
}

fn long(dialect: Dialect) -> Talk {
    let mut talk = Talk::new(dialect, "what is in the file?");
    talk.round("c1", &lines(5_000)).says("much").user("go on");
    talk
}

async fn ask(base: &str, token: &str, session: &str, talk: &Talk) -> Got {
    let headers = [("authorization", token), ("session-id", session)];
    post(base, path(talk.dialect), &headers, talk.body()).await
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

#[tokio::test]
async fn renewed_token_gets_the_same_bytes() {
    for dialect in Dialect::ALL {
        let upstream = echo(dialect).await;
        let (_running, base) = proxy(config(&upstream.url())).await;
        let mut talk = long(dialect);
        let before = ask(&base, OLD, "s1", &talk).await;
        talk.says("more").user("and on");
        let after = ask(&base, NEW, "s1", &talk).await;
        let (one, other) = (list(&upstream, dialect, 0), list(&upstream, dialect, 1));
        assert_eq!(one[..], other[..one.len()], "{dialect}");
        // It is a copy: what the old token does is nothing to the new one.
        let session = |got: &Got| got.header("x-trimtab-session").to_owned();
        assert_ne!(session(&before), session(&after));
        let again = ask(&base, NEW, "s1", &talk).await;
        assert_eq!(session(&again), session(&after));
        // Its refs are its own.
        let text = upstream.seen()[1].text();
        let at = text.find("ref_id").unwrap() + "ref_id".len();
        let shown: String = text[at..]
            .chars()
            .skip_while(|letter| !letter.is_ascii_alphanumeric())
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        let of = session(&after);
        let headers = [("authorization", NEW), ("x-trimtab-session", of.as_str())];
        let got = get(&base, &format!("/v1/retrieve/{shown}"), &headers).await;
        assert_eq!(got.status, 200, "{dialect}: {}", got.text());
    }
}

#[tokio::test]
async fn renewed_token_must_present_the_whole_conversation() {
    let dialect = Dialect::Messages;
    let upstream = echo(dialect).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let talk = long(dialect);
    ask(&base, OLD, "s1", &talk).await;
    // All but one word; the same, but under another name; too little of it.
    let mut other = long(dialect);
    other.entries[0]["content"] = "what is in the folder?".into();
    let mut part = long(dialect);
    part.entries.truncate(3);
    for (session, talk) in [("s1", &other), ("s2", &talk), ("s1", &part)] {
        ask(&base, NEW, session, talk).await;
        let sent = upstream.seen().len() - 1;
        // Refs that differ are other refs.
        assert_ne!(
            list(&upstream, dialect, 0)[2],
            list(&upstream, dialect, sent)[2]
        );
    }
}

#[tokio::test]
async fn api_keys_never_share_conversations() {
    let dialect = Dialect::Messages;
    let upstream = echo(dialect).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let talk = long(dialect);
    for key in ["Bearer sk-ant-api03-one", "Bearer sk-ant-api03-two", OLD] {
        ask(&base, key, "s1", &talk).await;
    }
    let sent: Vec<Value> = (0..3)
        .map(|at| list(&upstream, dialect, at)[2].clone())
        .collect();
    assert!(sent[0] != sent[1] && sent[1] != sent[2] && sent[0] != sent[2]);
}
