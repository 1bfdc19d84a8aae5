//! Conversations with tool rounds, as clients lead them.

use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use trimtab_model::{Dialect, Role};
use trimtab_testkit::script::{Script, ScriptedReply};
use trimtab_testkit::upstream::{ReplySource, RequestOutcome, UpstreamOptions};

use crate::client::{Talk, events, gathered, scripted, start};

fn rounds() -> UpstreamOptions {
    scripted(&json!([
        {"reasoning": "first I look", "text": "looking",
         "calls": [{"name": "read", "arguments": {"path": "a.txt"}},
                   {"name": "read", "arguments": {"path": "b.txt"}}]},
        {"calls": [{"name": "read", "arguments": {"path": "c.txt"}, "id": "chosen"}]},
        {"text": "all three say hello"}
    ]))
}

async fn talk_to_the_end(dialect: Dialect, stream: bool) -> Vec<Value> {
    let (upstream, client) = start(UpstreamOptions {
        sign: true,
        ..rounds()
    })
    .await;
    let mut talk = Talk::new(dialect, "read the files");
    if stream {
        talk = talk.streaming();
    }
    let mut answers = Vec::new();
    for output in ["hello", "hello again", "", ""] {
        let got = client.post(dialect, &talk.body).await;
        assert_eq!(got.status, 200, "{}", String::from_utf8_lossy(&got.body));
        let answer = if stream {
            gathered(dialect, &got)
        } else {
            got.json()
        };
        talk.take(&answer, output);
        answers.push(answer);
        if talk.list().last().unwrap()["role"] == "assistant" {
            talk.user("and now?");
        }
        if dialect == Dialect::Responses && talk.list().last().unwrap()["type"] == "message" {
            talk.user("and now?");
        }
    }
    assert_eq!(upstream.violations(), Vec::<String>::new());
    let requests = upstream.requests();
    let outcomes: Vec<RequestOutcome> = requests.iter().map(|request| request.outcome).collect();
    assert_eq!(outcomes, [RequestOutcome::Answered; 4]);
    let tokens: Vec<u64> = requests.iter().map(|request| request.tokens).collect();
    assert!(tokens.is_sorted() && tokens[0] > 0, "{tokens:?}");
    assert_eq!(requests[3].first_user, "read the files");
    assert_eq!(requests[3].tools, ["read"]);
    let roles: Vec<Role> = requests[1].read_messages().iter().map(|m| m.role).collect();
    let expected = match dialect {
        Dialect::Messages => vec![Role::System, Role::User, Role::Assistant, Role::Tool],
        _ => vec![
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Tool,
        ],
    };
    assert_eq!(roles, expected);
    upstream.shutdown().await;
    answers
}

#[tokio::test]
async fn tool_rounds_work_in_every_dialect() {
    for dialect in Dialect::ALL {
        let whole = talk_to_the_end(dialect, false).await;
        assert!(whole[2].to_string().contains("all three say hello"));
        assert!(whole[1].to_string().contains("chosen"));
        assert!(
            whole[3].to_string().contains("done"),
            "the script has run out"
        );
        let streamed = talk_to_the_end(dialect, true).await;
        let field = |answer: &Value, path: &str| answer.pointer(path).cloned();
        let path = match dialect {
            Dialect::Chat => "/choices/0/message/tool_calls",
            Dialect::Responses => "/output",
            Dialect::Messages => "/content",
        };
        assert_eq!(
            field(&whole[0], path),
            field(&streamed[0], path),
            "{dialect}"
        );
    }
}

#[tokio::test]
async fn streams_have_the_events_of_their_provider_in_order() {
    let names = |dialect| async move {
        let (_upstream, client) = start(rounds()).await;
        let got = client
            .post(dialect, &Talk::new(dialect, "go").streaming().body)
            .await;
        assert!(got.header("content-type").starts_with("text/event-stream"));
        let said = got.said(dialect);
        assert!(
            said.ended && said.usage.output > 0 && said.usage.input > 0,
            "{said:?}"
        );
        assert_eq!((said.text.as_str(), said.calls.len()), ("looking", 2));
        assert_eq!(said.calls[1].arguments, r#"{"path":"b.txt"}"#);
        assert_eq!(said.reasoning, "first I look");
        let text = String::from_utf8(got.body.clone()).unwrap();
        let mut names: Vec<String> = events(&got)
            .iter()
            .map(|event| event["type"].as_str().unwrap_or_default().to_owned())
            .collect();
        names.dedup();
        (names, text)
    };
    let (messages, _) = names(Dialect::Messages).await;
    let part = [
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    ];
    let mut expected = vec!["message_start", part[0], "ping", part[1], part[2]];
    expected.extend(part.iter().cycle().take(9));
    expected.extend(["message_delta", "message_stop"]);
    assert_eq!(messages, expected);
    let (responses, _) = names(Dialect::Responses).await;
    assert_eq!(
        &responses[..3],
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added"
        ]
    );
    assert_eq!(responses.last().unwrap(), "response.completed");
    for name in [
        "response.output_text.delta",
        "response.function_call_arguments.done",
    ] {
        assert!(responses.iter().any(|have| have == name), "{name}");
    }
    let (_, chat) = names(Dialect::Chat).await;
    assert!(chat.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn sequence_numbers_are_dense() {
    let (_upstream, client) = start(rounds()).await;
    let body = Talk::new(Dialect::Responses, "go").streaming().body;
    let got = client.post(Dialect::Responses, &body).await;
    for (at, event) in events(&got).iter().enumerate() {
        assert_eq!(event["sequence_number"], at);
    }
}

#[tokio::test]
async fn the_answer_can_end_at_its_limit() {
    for (dialect, stop) in [
        (Dialect::Chat, "length"),
        (Dialect::Responses, "max_output_tokens"),
        (Dialect::Messages, "max_tokens"),
    ] {
        let (_upstream, client) = start(scripted(&json!([{"text": "t", "stop": "length"}]))).await;
        let got = client
            .post(dialect, &Talk::new(dialect, "go").streaming().body)
            .await;
        assert_eq!(got.said(dialect).stop, stop);
    }
}

#[tokio::test]
async fn a_compressed_request_is_read() {
    let (upstream, mut client) = start(UpstreamOptions::default()).await;
    let body = Talk::new(Dialect::Chat, "pack me").body.to_string();
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(body.as_bytes()).unwrap();
    let packed = encoder.finish().unwrap();
    client.headers.push(("content-encoding", "gzip".to_owned()));
    let got = client
        .send("POST", "/v1/chat/completions", packed.clone())
        .await
        .unwrap();
    assert_eq!(got.status, 200);
    let request = &upstream.requests()[0];
    assert_eq!(
        (request.body_bytes, request.sent_bytes),
        (body.len(), packed.len())
    );
    assert_eq!(request.first_user, "pack me");
    let got = client
        .send("POST", "/v1/chat/completions", "not packed")
        .await
        .unwrap();
    assert_eq!(got.status, 415);
}

#[tokio::test]
async fn models_counts_and_unknown_paths() {
    let (upstream, client) = start(UpstreamOptions::default()).await;
    let got = client.send("GET", "/v1/models", "").await.unwrap();
    assert_eq!(got.json()["data"][0]["id"], "scripted");
    let talk = Talk::new(Dialect::Messages, &"word ".repeat(400));
    let body = talk.body.to_string();
    let got = client
        .send("POST", "/v1/messages/count_tokens", body)
        .await
        .unwrap();
    assert!((500..600).contains(&got.json()["input_tokens"].as_u64().unwrap()));
    let got = client
        .send("POST", "/v1/messages/batches", "{}")
        .await
        .unwrap();
    assert_eq!(
        (got.status, &got.json()["error"]["type"]),
        (404, &json!("not_found_error"))
    );
    let got = client.send("POST", "/v1/embeddings", "{}").await.unwrap();
    assert_eq!(got.message(), "Invalid URL (POST /v1/embeddings)");
    let outcomes: Vec<RequestOutcome> = upstream.requests().iter().map(|r| r.outcome).collect();
    let lost = RequestOutcome::Refused(404);
    assert_eq!(
        outcomes,
        [RequestOutcome::Listed, RequestOutcome::Counted, lost, lost]
    );
}

#[tokio::test]
async fn http2_is_spoken_too() {
    let (_upstream, client) = start(rounds()).await;
    let client = client.http2();
    for dialect in Dialect::ALL {
        let got = client
            .post(dialect, &Talk::new(dialect, "go").streaming().body)
            .await;
        assert!(got.said(dialect).ended, "{dialect}");
    }
}

#[tokio::test]
async fn many_talk_at_once() {
    let source = ReplySource::by_header("x-session", [], Script::new([ScriptedReply::text("one")]));
    let (upstream, client) = start(UpstreamOptions::new(source)).await;
    let client = Arc::new(client);
    let ask = |number: usize| {
        let client = Arc::clone(&client);
        tokio::spawn(async move {
            let dialect = Dialect::ALL[number % 3];
            let talk = Talk::new(dialect, &"many words ".repeat(1000)).streaming();
            let got = client.post(dialect, &talk.body).await;
            got.said(dialect).text
        })
    };
    let asked: Vec<_> = (0..60).map(ask).collect();
    let mut ones = 0;
    for asked in asked {
        ones += usize::from(asked.await.unwrap() == "one");
    }
    assert_eq!(ones, 1, "a reply is given once in a conversation");
    let mut serials: Vec<usize> = upstream.requests().iter().map(|r| r.serial).collect();
    serials.sort_unstable();
    assert_eq!(serials, (0..60).collect::<Vec<_>>());
}

#[tokio::test]
async fn custom_call_of_responses_carries_its_text() {
    let (input, custom) = ("text(await tools.ls())", true);
    let call = json!({"name": "exec", "arguments": input, "custom": custom, "id": "c1"});
    let (_upstream, client) = start(scripted(&json!([{"calls": [call]}]))).await;
    let talk = Talk::new(Dialect::Responses, "list").streaming();
    let got = client.post(Dialect::Responses, &talk.body).await;
    let answer = gathered(Dialect::Responses, &got);
    let item = &answer["output"][0];
    assert_eq!(item["type"], "custom_tool_call");
    assert_eq!(item["input"], input);
    assert_eq!(item["call_id"], "c1");
}
