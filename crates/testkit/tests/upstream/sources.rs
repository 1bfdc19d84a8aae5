//! Where replies come from.

use serde_json::json;
use trimtab_model::{Dialect, Usage};
use trimtab_testkit::script::{Script, ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{ReplySource, UpstreamOptions};

use crate::client::{Client, Talk, scripted, start};

async fn said(client: &Client, talk: &Talk) -> String {
    let got = client.post(talk.dialect, &talk.body).await;
    got.said(talk.dialect).text
}

fn script(texts: &[&str]) -> Script {
    Script::new(texts.iter().map(|text| ScriptedReply::text(*text)))
}

#[tokio::test]
async fn conversations_are_told_by_their_first_words() {
    let scripts = [("apples".to_owned(), script(&["red", "green"]))];
    let source = ReplySource::by_first_user(scripts, script(&["what?"]));
    let (_upstream, client) = start(UpstreamOptions::new(source)).await;
    let talk = |text: &str| Talk::new(Dialect::Chat, text).streaming();
    let apples = talk("tell me of apples");
    assert_eq!(said(&client, &apples).await, "red");
    assert_eq!(said(&client, &talk("and pears")).await, "what?");
    assert_eq!(
        said(&client, &talk("and plums")).await,
        "what?",
        "each for itself"
    );
    assert_eq!(said(&client, &apples).await, "green");
    assert_eq!(said(&client, &talk("and pears")).await, "done");
}

#[tokio::test]
async fn conversations_are_told_by_a_header() {
    let scripts = [("one".to_owned(), script(&["1", "2"]))];
    let source = ReplySource::by_header("X-Session", scripts, script(&["other"]));
    let (_upstream, mut client) = start(UpstreamOptions::new(source)).await;
    let talk = Talk::new(Dialect::Messages, "go").streaming();
    client.headers.push(("x-session", "one".to_owned()));
    assert_eq!(said(&client, &talk).await, "1");
    client.headers[1].1 = "two".to_owned();
    assert_eq!(said(&client, &talk).await, "other");
    client.headers[1].1 = "one".to_owned();
    assert_eq!(said(&client, &talk).await, "2");
}

#[tokio::test]
async fn a_closure_sees_the_request() {
    let source = ReplySource::with(|request| {
        ScriptedReply::text(format!(
            "{} messages, last {:?}",
            request.messages, request.last
        ))
    });
    let (_upstream, client) = start(UpstreamOptions::new(source)).await;
    let talk = Talk::new(Dialect::Responses, "go").streaming();
    assert_eq!(said(&client, &talk).await, "2 messages, last \"go\"");
}

#[tokio::test]
async fn the_same_place_has_the_same_ids_in_every_run() {
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let (_upstream, client) = start(scripted(&json!([{"calls": [{"name": "read"}]}]))).await;
        let talk = Talk::new(Dialect::Chat, "go");
        bodies.push(client.post(Dialect::Chat, &talk.body).await.json());
    }
    assert_eq!(bodies[0], bodies[1]);
}

#[tokio::test]
async fn usage_can_be_scripted() {
    let usage = json!({"input": 5, "cache_read": 6, "cache_creation": 0, "output": 8});
    for dialect in Dialect::ALL {
        let (_upstream, client) = start(scripted(&json!([{"text": "t", "usage": usage}]))).await;
        let got = client
            .post(dialect, &Talk::new(dialect, "go").streaming().body)
            .await;
        let expected: Usage = serde_json::from_value(usage.clone()).unwrap();
        assert_eq!(got.said(dialect).usage, expected, "{dialect}");
    }
}

#[tokio::test]
async fn a_spoiled_reply_is_given_again() {
    let fault = ScriptedFault::Status {
        code: 529,
        retry_after: None,
    };
    let script = Script::new([
        ScriptedReply::text("one").with_fault(fault),
        ScriptedReply::text("two"),
    ]);
    let (upstream, client) = start(UpstreamOptions::new(ReplySource::script(script))).await;
    let talk = Talk::new(Dialect::Messages, "go").streaming();
    assert_eq!(client.post(Dialect::Messages, &talk.body).await.status, 529);
    assert_eq!(said(&client, &talk).await, "one");
    assert_eq!(said(&client, &talk).await, "two");
    let faults: Vec<_> = upstream.requests().iter().map(|r| r.fault).collect();
    assert_eq!(faults, [Some(fault), None, None]);
}

#[tokio::test]
async fn bodies_are_only_kept_when_wanted() {
    let (upstream, client) = start(UpstreamOptions {
        keep_bodies: false,
        ..UpstreamOptions::default()
    })
    .await;
    client
        .post(Dialect::Chat, &Talk::new(Dialect::Chat, "go").body)
        .await;
    let request = upstream.requests()[0].clone();
    assert!(request.body.is_empty() && request.body_bytes > 0);
    upstream.clear_requests();
    assert!(upstream.requests().is_empty());
}
