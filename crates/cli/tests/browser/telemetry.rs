//! Traces and metrics, as a collector receives them.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::run::{PATIENCE, Served};
use crate::stage::{chat, plain_upstream};

/// What a collector received: path, headers and body of each request.
struct ReceivedExport {
    path: String,
    headers: BTreeMap<String, String>,
    body: Value,
}

/// A collector that takes everything, at an address.
fn collector() -> (String, Receiver<ReceivedExport>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (sender, received) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let sender = sender.clone();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream);
                while let Some(export) = read_export(&mut reader) {
                    drop(sender.send(export));
                    let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
                    reader.get_mut().write_all(answer.as_bytes()).unwrap();
                }
            });
        }
    });
    (address, received)
}

fn read_export(reader: &mut impl BufRead) -> Option<ReceivedExport> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else {
            break;
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedExport {
        path,
        headers,
        body: serde_json::from_slice(&body).ok()?,
    })
}

/// The attributes of a span, by name.
fn attributes(span: &Value) -> BTreeMap<String, String> {
    let list = span["attributes"].as_array().unwrap().iter();
    let value = |value: &Value| value.as_object().unwrap().values().next().unwrap().clone();
    list.map(|one| {
        let text = value(&one["value"]);
        let text = text
            .as_str()
            .map_or_else(|| text.to_string(), str::to_owned);
        (one["key"].as_str().unwrap().to_owned(), text)
    })
    .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn collector_receives_spans_and_sums_of_a_call() {
    let (endpoint, received) = collector();
    let upstream = plain_upstream().await;
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-collector-key=abc"),
    ];
    let served = Served::start_with(folder, &["--upstream", &upstream.url()], &variables);
    let secret = "the secret words of the user ".repeat(1_000);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let parent = format!("00-{trace}-00f067aa0ba902b7-01");
    let messages = [json!({"role": "user", "content": secret})];
    chat(&served.url, &messages, &[("traceparent", &parent)]).await;
    let traces = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(traces.path, "/v1/traces");
    assert_eq!(traces.headers["x-collector-key"], "abc");
    let spans = &traces.body["resourceSpans"][0]["scopeSpans"][0]["spans"];
    let call = &spans[0];
    assert_eq!(call["name"], "chat gpt-4o");
    assert_eq!(call["traceId"], trace);
    assert_eq!(call["parentSpanId"], "00f067aa0ba902b7");
    let about = attributes(call);
    assert_eq!(about["gen_ai.operation.name"], "chat");
    assert_eq!(about["gen_ai.request.model"], "gpt-4o");
    assert!(about["gen_ai.usage.input_tokens"].parse::<u64>().unwrap() > 1_000);
    assert!(about.contains_key("gen_ai.usage.cache_write.input_tokens"));
    assert_eq!(spans[1]["name"], "trimtab.plan");
    assert_eq!(spans[1]["parentSpanId"], call["spanId"]);
    let metrics = received.recv_timeout(PATIENCE).unwrap();
    assert_eq!(metrics.path, "/v1/metrics");
    let list = &metrics.body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
    let names: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(
        names.contains(&"gen_ai.client.inference.usage.input_tokens"),
        "{names:?}"
    );
    for metric in list.as_array().unwrap() {
        let points = [&metric["sum"], &metric["histogram"]].map(|kind| &kind["dataPoints"][0]);
        let point = points.into_iter().find(|point| point.is_object()).unwrap();
        let about = attributes(point);
        assert_eq!(about["gen_ai.request.model"], "gpt-4o", "{metric}");
        let is_usage = metric["sum"].is_object();
        assert_eq!(
            about.contains_key("gen_ai.token.modality"),
            is_usage,
            "{metric}"
        );
        if !is_usage {
            assert_eq!(metric["name"], "gen_ai.client.inference.duration");
            assert_eq!(point["count"], "1");
            let (bounds, counts) = (&point["explicitBounds"], &point["bucketCounts"]);
            let length = |list: &Value| list.as_array().unwrap().len();
            assert_eq!(length(bounds) + 1, length(counts));
        }
    }
    // Neither what was said nor a key is in them.
    let everything = format!("{}{}", traces.body, metrics.body);
    assert!(!everything.contains("secret words") && !everything.contains("Bearer"));
}

#[tokio::test(flavor = "multi_thread")]
async fn collector_that_is_down_does_not_hold_up_calls() {
    let upstream = plain_upstream().await;
    let folder = tempfile::tempdir().unwrap();
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")];
    let served = Served::start_with(folder, &["--upstream", &upstream.url()], &variables);
    let messages = [json!({"role": "user", "content": "words ".repeat(2_000)})];
    for _ in 0..3 {
        assert!(chat(&served.url, &messages, &[]).await.status.is_success());
    }
    served.wait_for("cannot be sent to the collector");
}
