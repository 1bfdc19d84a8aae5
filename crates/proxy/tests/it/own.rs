//! The proxy's own endpoints.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use trimtab_model::Dialect;

use crate::fake::{Reply, Upstream, get, post};
use crate::managed::{echo, windowed};
use crate::talk::{Talk, answer, lines, path};
use crate::{config, proxy};

#[tokio::test]
async fn compress_returns_a_window_without_a_model_call() {
    let upstream = Upstream::start(|_, _| Reply::json(500, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(Dialect::Chat, "what is in it?");
    let output = lines(20_000);
    talk.round("c1", &output);
    let body = json!({"model": "house-model", "messages": talk.entries}).to_string();
    let key = [("authorization", "Bearer k")];
    let got = post(&base, "/v1/compress", &key, body.clone()).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let found: Value = serde_json::from_str(&got.text()).unwrap();
    assert!(found["tokens_after"].as_u64() < found["tokens_before"].as_u64());
    assert!(found["compression_ratio"].as_f64().unwrap() < 0.5);
    assert_eq!(
        found["messages"].as_array().unwrap().len(),
        talk.entries.len()
    );
    let reference = found["ccr_hashes"][0].as_str().unwrap().to_owned();

    let path = format!("/v1/retrieve/{reference}");
    let got = get(&base, &path, &key).await;
    let whole: Value = serde_json::from_str(&got.text()).unwrap();
    assert_eq!(whole["original_content"], output);
    let got = get(&base, &format!("{path}?query=line+4321"), &key).await;
    assert!(
        got.text().contains("line 4321: the value is"),
        "{}",
        got.text()
    );
    let got = post(&base, &path, &key, r#"{"query": "line 77:"}"#).await;
    assert!(got.text().contains("line 77: the value is"));
    // A broken search does not return everything.
    for body in [r#"{"query": "#, r#"{"query": 5}"#, "line 77:"] {
        assert_eq!(post(&base, &path, &key, body).await.status, 400, "{body}");
    }
    // Nobody else's, and nothing that is not there.
    assert_eq!(
        get(&base, &path, &[("authorization", "Bearer other")])
            .await
            .status,
        404
    );
    assert_eq!(get(&base, "/v1/retrieve/nonsense", &key).await.status, 404);
    let named = [
        ("authorization", "Bearer other"),
        ("x-trimtab-session", found["session"].as_str().unwrap()),
    ];
    assert_eq!(get(&base, &path, &named).await.status, 404);
    assert!(upstream.seen().is_empty());
    assert_eq!(
        post(&base, "/v1/compress", &key, "nonsense").await.status,
        400
    );
    assert_eq!(get(&base, "/v1/compress", &key).await.status, 405);
}

#[tokio::test]
async fn compress_returns_unchanged_messages_byte_for_byte() {
    let upstream = Upstream::start(|_, _| Reply::json(500, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    // A parser would write the numbers in another way, and the escape too.
    let messages = r#"[{"role": "user", "content": "caf\u00e9", "at": 1.50, "after": 1E3}]"#;
    let body = format!(r#"{{"model": "house-model", "messages": {messages}}}"#);
    for key in ["", "k"] {
        let key = format!("Bearer {key}");
        let got = post(
            &base,
            "/v1/compress",
            &[("authorization", &key)],
            body.clone(),
        )
        .await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert!(got.text().contains(messages), "{}", got.text());
    }
}

/// A gateway sends only rows that it may change: no system row and no answers.
#[tokio::test]
async fn compress_gives_one_row_for_each_row_without_answers() {
    let upstream = Upstream::start(|_, _| Reply::json(500, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    let output = |at: usize| json!({"role": "tool", "tool_call_id": at.to_string(), "content": lines(9_000 + at)});
    let mut rows = vec![json!({"role": "user", "content": "what is in it?"})];
    rows.extend((0..4).map(output));
    rows.push(json!({"role": "tool", "tool_call_id": "x", "content": "short"}));
    let key = [("authorization", "Bearer k")];
    let compress = async |rows: &[Value]| -> Value {
        let body = json!({"model": "house-model", "messages": rows}).to_string();
        let got = post(&base, "/v1/compress", &key, body).await;
        assert_eq!(got.status, 200, "{}", got.text());
        serde_json::from_str(&got.text()).unwrap()
    };
    let found = compress(&rows).await;
    let sent = found["messages"].as_array().unwrap();
    assert_eq!(sent.len(), rows.len());
    for (at, (came, sent)) in rows.iter().zip(sent).enumerate() {
        assert_eq!(
            (&came["role"], &came["tool_call_id"]),
            (&sent["role"], &sent["tool_call_id"])
        );
        let is_short = sent["content"].as_str().unwrap().len() < 20_000;
        assert!(is_short, "row {at}");
    }
    assert_eq!((&sent[0], &sent[5]), (&rows[0], &rows[5]));
    let hashes = found["ccr_hashes"].as_array().unwrap();
    assert_eq!(hashes.len(), 4);
    let hash = hashes[2].as_str().unwrap();
    assert!(
        hash.len() <= 24 && hash.bytes().all(|digit| digit.is_ascii_hexdigit()),
        "{hash}"
    );
    assert!(sent[3]["content"].as_str().unwrap().contains(hash));
    let got = get(&base, &format!("/v1/retrieve/{hash}"), &key).await;
    let whole: Value = serde_json::from_str(&got.text()).unwrap();
    assert_eq!(whole["original_content"], rows[3]["content"]);

    // More rows leave those before as they were, so a prompt cache stays good.
    rows.push(output(7));
    let again = compress(&rows).await;
    assert_eq!(&again["messages"].as_array().unwrap()[..6], &sent[..]);
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn status_counts_requests_and_actions() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let (_running, base) = proxy(config(&upstream.url())).await;
    get(
        &base,
        "/v1/models",
        &[("authorization", "Bearer secret-key")],
    )
    .await;
    let got = get(&base, "/trimtab/status", &[]).await;
    let status: Value = serde_json::from_str(&got.text()).unwrap();
    assert_eq!(status["requests"], 1);
    assert!(!got.text().contains("secret-key"));
}

#[tokio::test]
async fn records_contain_no_keys() {
    let upstream = Upstream::start(|_, _| Reply::json(200, "{}")).await;
    let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let kept = std::sync::Arc::clone(&lines);
    let store = std::sync::Arc::new(trimtab_store::MemoryStore::new());
    let running = trimtab_proxy::Proxy::new(config(&upstream.url()), store)
        .log(move |record| {
            let json = serde_json::to_string(record).unwrap();
            kept.lock().unwrap().push(json);
        })
        .run()
        .await
        .unwrap();
    let base = format!("http://{}", running.address());
    let headers = [
        ("authorization", "Bearer secret-key"),
        ("x-api-key", "secret-key"),
    ];
    post(
        &base,
        "/v1/messages?key=secret-key",
        &headers,
        r#"{"messages":[{"role":"user","content":"q"}]}"#,
    )
    .await;
    running.shutdown().await;
    let lines = lines.lock().unwrap();
    assert_eq!(lines.len(), 1);
    for field in [r#""path":"/v1/messages""#, r#""status":200"#] {
        assert!(lines[0].contains(field), "{}", lines[0]);
    }
    assert!(!lines[0].contains("secret-key"), "{}", lines[0]);
}

#[tokio::test]
async fn root_path_describes_the_proxy_unless_the_upstream_answers() {
    let nothing = Upstream::start(|_, _| Reply::json(404, r#"{"error":"not found"}"#)).await;
    let (_running, base) = proxy(config(&nothing.url())).await;
    let got = get(&base, "/", &[]).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.header("content-type").starts_with("text/plain"));
    assert!(got.text().contains(env!("CARGO_PKG_VERSION")));
    assert!(got.text().contains(&format!("ANTHROPIC_BASE_URL={base}\n")));
    assert_eq!(get(&base, "/other", &[]).await.status, 404);
    assert_eq!(post(&base, "/", &[], "{}").await.status, 404);
    let server = Upstream::start(|_, _| Reply::json(200, "it is running")).await;
    let (_running, base) = proxy(config(&server.url())).await;
    assert_eq!(get(&base, "/", &[]).await.text(), "it is running");
}

#[tokio::test]
async fn parts_of_removed_rounds_are_retrieved() {
    let upstream = echo(Dialect::Messages).await;
    let (_running, base) = proxy(windowed(config(&upstream.url()), 20_000)).await;
    let mut talk = Talk::new(Dialect::Messages, "read all files");
    let picture = "iVBORw0KGgoAAAANSUhEUgAA";
    talk.entries.extend([
        json!({"role": "assistant", "content": [
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "query", "server_name": "s",
                "input": {"sql": "SELECT 41"}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": false,
                "content": [{"type": "text", "text": "row 42"}]},
            {"type": "text", "text": "done"}]}),
        json!({"role": "user", "content": "go on"}),
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "d1", "name": "read", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "d1", "content": [
            {"type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "page 43"}},
            {"type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": picture}}]}]}),
    ]);
    for round in 0..16 {
        talk.round(&format!("c{round}"), &lines(150));
    }
    let key = [("x-api-key", "k")];
    post(&base, path(Dialect::Messages), &key, talk.body()).await;
    let sent = upstream.seen().last().unwrap().text();
    for gone in ["SELECT 41", "row 42", "page 43", picture] {
        assert!(!sent.contains(gone), "{gone} is still in the window");
    }
    let (mut texts, mut stored) = (String::new(), String::new());
    let words = sent.split(|c: char| !c.is_ascii_alphanumeric());
    let ids: BTreeSet<&str> = words.filter(|word| word.len() == 16).collect();
    for id in ids {
        let got = get(&base, &format!("/v1/retrieve/{id}"), &key).await;
        if got.status == 200 {
            texts.push_str(&got.text());
            let path = format!("/v1/retrieve/{id}?form=stored");
            stored.push_str(&get(&base, &path, &key).await.text());
        }
    }
    let unknown = get(&base, "/v1/retrieve/x?form=whole", &key).await;
    assert_eq!(unknown.status, 400);
    assert!(unknown.text().contains("form=stored"), "{}", unknown.text());
    for gone in ["SELECT 41", "row 42", "page 43"] {
        assert!(texts.contains(gone), "{gone} is lost");
    }
    assert!(stored.contains(picture), "the picture is lost");
    assert!(
        !texts.contains(picture),
        "a model cannot read a picture as text"
    );
}

#[tokio::test]
async fn absurd_usage_of_an_upstream_breaks_no_answer_and_no_figure() {
    let told = answer(Dialect::Chat, "done", u64::MAX);
    let sent = told.clone();
    let upstream = Upstream::start(move |_, _| Reply::json(200, sent.clone())).await;
    let (running, base) = proxy(config(&upstream.url())).await;
    let mut talk = Talk::new(Dialect::Chat, "what is in it?");
    for round in 0..4 {
        talk.round(&format!("c{round}"), &lines(3_000));
        let key = [("authorization", "Bearer k")];
        let got = post(&base, path(Dialect::Chat), &key, talk.body()).await;
        assert_eq!(got.status, 200);
        assert_eq!(got.text(), told);
        talk.says("done");
    }
    let report = running.report();
    assert_eq!(report.requests, 4);
    assert!(report.tokens_before < u64::MAX / 1_000, "{report:?}");
}
