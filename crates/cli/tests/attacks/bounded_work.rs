//! Expensive requests and answers: their cost is bounded.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;

use crate::is_long_run;
use crate::process::{cpu_ticks, peak_resident_bytes};
use crate::run::Served;
use crate::talk::{path, post, with_output};

/// How many calls an attack has: those of the short form took 28 s of processor time and 1.1 GB
/// when work was quadratic.
fn many_calls() -> usize {
    if is_long_run() { 50_000 } else { 10_000 }
}

/// Clock ticks of 10 ms that may be used after an answer was given.
const TICKS_BEHIND: u64 = 1_000;
/// An attack may take at most so many times the memory of a normal request of the same size.
const MEMORY_TIMES: u64 = 3;
/// A server that answers every request with the same bytes.
fn upstream(kind: &'static str, head: &'static str, repeated: String, times: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let repeated = Arc::new(repeated);
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let repeated = Arc::clone(&repeated);
            std::thread::spawn(move || answer(&stream, kind, head, &repeated, times));
        }
    });
    url
}

fn answer(mut stream: &TcpStream, kind: &str, head: &str, repeated: &str, times: usize) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    while read_request(&mut reader).is_some() {
        let length = head.len() + repeated.len() * times;
        let headers =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n");
        // A client that went away is not worth a failure here.
        let mut sent = stream.write_all(headers.as_bytes());
        sent = sent.and_then(|()| stream.write_all(head.as_bytes()));
        for _ in 0..times {
            sent = sent.and_then(|()| stream.write_all(repeated.as_bytes()));
        }
        if sent.is_err() {
            return;
        }
    }
}

/// Reads a request to its end; none if there is no more.
fn read_request(reader: &mut impl BufRead) -> Option<()> {
    read_message(reader).map(|_| ())
}

/// Reads the head of a request or an answer, and its body without keeping it: the head in small
/// letters, and the bytes of the body.
fn read_message(reader: &mut impl BufRead) -> Option<(String, u64)> {
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        head.push_str(&line.to_ascii_lowercase());
    }
    let length = head.lines().find_map(|line| {
        let length = line.strip_prefix("content-length:")?;
        length.trim().parse::<u64>().ok()
    });
    if let Some(length) = length {
        return Some((head, skip(reader, length)?));
    }
    let mut bytes = 0;
    while head.contains("chunked") {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let chunk = u64::from_str_radix(line.trim(), 16).ok()?;
        skip(reader, chunk + 2)?;
        bytes += chunk;
        if chunk == 0 {
            break;
        }
    }
    Some((head, bytes))
}

fn skip(reader: &mut impl BufRead, bytes: u64) -> Option<u64> {
    std::io::copy(&mut reader.take(bytes), &mut std::io::sink()).ok()
}

/// A server whose answers are short.
fn short_answers() -> String {
    let answer = r#"{"id":"m","type":"message","role":"assistant","model":"m","object":"response",
        "status":"completed","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn",
        "choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],
        "output":[],"usage":{"input_tokens":9,"output_tokens":1,"prompt_tokens":9,
        "completion_tokens":1}}"#;
    upstream("application/json", answer, String::new(), 0)
}

fn call(dialect: Dialect, id: &str) -> Value {
    match dialect {
        Dialect::Chat => json!({"id": id, "type": "function",
            "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}),
        Dialect::Messages => {
            json!({"type": "tool_use", "id": id, "name": "read", "input": {"path": "a"}})
        }
        Dialect::Responses => json!({"type": "function_call", "call_id": id, "name": "read",
            "arguments": "{\"path\":\"a\"}"}),
    }
}

fn output(dialect: Dialect, id: &str, text: &str) -> Value {
    match dialect {
        Dialect::Chat => json!({"role": "tool", "tool_call_id": id, "content": text}),
        Dialect::Messages => json!({"type": "tool_result", "tool_use_id": id, "content": text}),
        Dialect::Responses => {
            json!({"type": "function_call_output", "call_id": id, "output": text})
        }
    }
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

/// A conversation in which rounds of so many calls each are asked and answered.
fn conversation(dialect: Dialect, rounds: &[Vec<String>], text: &str) -> Value {
    let mut list = vec![said("user", "go")];
    for ids in rounds {
        let calls: Vec<Value> = ids.iter().map(|id| call(dialect, id)).collect();
        let outputs: Vec<Value> = ids.iter().map(|id| output(dialect, id, text)).collect();
        match dialect {
            Dialect::Chat => {
                list.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
                list.extend(outputs);
            }
            Dialect::Messages => {
                list.push(json!({"role": "assistant", "content": calls}));
                list.push(json!({"role": "user", "content": outputs}));
            }
            Dialect::Responses => {
                list.extend(calls);
                list.extend(outputs);
            }
        }
    }
    list.push(said("user", "go on"));
    match dialect {
        Dialect::Chat => json!({"model": "gpt-4o", "messages": list}),
        Dialect::Messages => {
            json!({"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": list})
        }
        Dialect::Responses => json!({"model": "gpt-4o", "store": false, "input": list}),
    }
}

/// One message with many calls, all of one id.
fn attack(dialect: Dialect) -> Value {
    let ids = vec!["x".to_owned(); many_calls()];
    conversation(dialect, &[ids], "lorem ipsum dolor sit amet")
}

/// A conversation of about so many bytes as agents have them.
fn normal(dialect: Dialect, bytes: usize) -> Value {
    let text = "a line of an output as it comes\n".repeat(64);
    let rounds: Vec<Vec<String>> = (0..bytes / (text.len() + 200))
        .map(|at| vec![format!("c{at}")])
        .collect();
    conversation(dialect, &rounds, &text)
}

/// Waits until the process does nothing any more; gives the ticks that it used meanwhile.
async fn quiet(process: u32) -> u64 {
    let before = cpu_ticks(process);
    let mut last = before;
    loop {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let now = cpu_ticks(process);
        if now <= last + 3 || now > before + TICKS_BEHIND {
            return now - before;
        }
        last = now;
    }
}

/// The most memory that a server takes for one request, and that it leaves no work behind.
async fn peak_of(upstream: &str, dialect: Dialect, preset: &str, body: &Value) -> u64 {
    let served = Served::start(&["--upstream", upstream]);
    let preset = [("x-trimtab-preset", preset)];
    let (other, small) = (said("user", "hello"), said("user", "hi"));
    let small = json!({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [small, other]});
    let (attacked, ()) = tokio::join!(post(&served.url, path(dialect), body, &preset), async {
        for _ in 0..20 {
            let answer = post(&served.url, path(Dialect::Messages), &small, &[]).await;
            assert_eq!(answer.status, 200);
        }
    });
    assert_eq!(attacked.status, 200);
    let behind = quiet(served.process_id()).await;
    assert!(
        behind <= TICKS_BEHIND,
        "{dialect} {preset:?}: work went on for {behind} ticks after the answer"
    );
    peak_resident_bytes(served.process_id())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_with_one_id_take_linear_work() {
    let upstream = short_answers();
    for dialect in Dialect::ALL {
        let body = attack(dialect);
        let bytes = body.to_string().len();
        let usual = peak_of(&upstream, dialect, "refs", &normal(dialect, bytes)).await;
        // In the short form ours, and the first that compacts with a summary.
        let presets = if is_long_run() { PRESETS.len() } else { 2 };
        for preset in PRESETS.iter().take(presets).map(|preset| preset.name) {
            let peak = peak_of(&upstream, dialect, preset, &body).await;
            assert!(
                peak <= MEMORY_TIMES * usual,
                "{dialect} {preset}: {peak} bytes of memory, {usual} for a normal request"
            );
        }
    }
}

/// Settings of the user in which planning has hardly any time.
fn hasty(plan_ms: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    write_settings(&folder, plan_ms);
    folder
}

fn write_settings(folder: &TempDir, plan_ms: u64) {
    let place = folder.path().join("config").join("trimtab");
    fs::create_dir_all(&place).unwrap();
    let text = format!("[proxy.limits]\nplan_ms = {plan_ms}\n");
    fs::write(place.join("config.toml"), text).unwrap();
}

/// Planning that was stopped leaves nothing behind that later requests could stumble over.
#[tokio::test(flavor = "multi_thread")]
async fn cancelled_planning_leaves_the_conversation_intact() {
    let upstream = short_answers();
    let args = ["--upstream", upstream.as_str()];
    let mut served = Served::start_in(hasty(2), &args);
    let dialect = Dialect::Messages;
    let body = normal(dialect, 3 << 20);
    for _ in 0..5 {
        let answer = post(&served.url, path(dialect), &body, &[]).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("x-trimtab-action"), "passed");
    }
    let behind = quiet(served.process_id()).await;
    assert!(behind <= TICKS_BEHIND, "{behind} ticks after the answer");
    // With enough time the same conversation is managed, in memory and from the store.
    for _ in 0..2 {
        let folder = served.killed();
        write_settings(&folder, 60_000);
        served = Served::start_in(folder, &args);
        for _ in 0..2 {
            let answer = post(&served.url, path(dialect), &body, &[]).await;
            assert_eq!(answer.status, 200);
            assert_eq!(answer.header("x-trimtab-action"), "edited");
        }
    }
}

/// Bytes of an answer that is longer than any model writes.
fn long_answer() -> usize {
    if is_long_run() { 298 << 20 } else { 64 << 20 }
}

/// Sends a request whose window shows a ref, so that its answer is looked into; gives the most
/// memory that the process took, and how many bytes the client got.
fn peak_and_bytes(upstream: &str) -> (u64, u64) {
    let served = Served::start(&["--upstream", upstream]);
    let dialect = Dialect::Messages;
    let body = with_output(dialect, 6_000).to_string();
    let address = served.url.strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let (path, length) = (path(dialect), body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {address}\r\nx-api-key: k\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let (head, got) = read_message(&mut BufReader::new(stream)).unwrap();
    assert!(head.contains("x-trimtab-action: edited"), "{head}");
    (peak_resident_bytes(served.process_id()), got)
}

/// Fails if an answer of `times` repetitions takes much more memory than one of half of them.
fn assert_bounded(kind: &'static str, head: &'static str, repeated: &str, times: usize) {
    let peak = |times: usize| {
        let length = head.len() + repeated.len() * times;
        let upstream = upstream(kind, head, repeated.to_owned(), times);
        let (peak, got) = peak_and_bytes(&upstream);
        assert_eq!(got, length as u64);
        peak
    };
    let (half, whole) = (peak(times / 2), peak(times));
    let more = whole.saturating_sub(half);
    let half_length = (repeated.len() * times / 2) as u64;
    assert!(
        more < half_length / 2,
        "{kind}: {more} bytes of memory for {half_length} more bytes of answer"
    );
}

#[test]
fn answers_of_any_length_take_bounded_memory() {
    let delta = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": "lorem ipsum ".repeat(20)}});
    let event = format!("event: content_block_delta\ndata: {delta}\n\n");
    assert_bounded("text/event-stream", "", &event, long_answer() / event.len());

    let text = "lorem ipsum ".repeat(1_000);
    let head = r#"{"id":"m","type":"message","content":[{"type":"text","text":""#;
    assert_bounded("application/json", head, &text, long_answer() / text.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn stream_with_many_calls_reaches_the_client_whole() {
    let calls = if is_long_run() { 100_000 } else { 10_000 };
    let mut events = String::new();
    let mut add = |event: Value| {
        let _ = write!(events, "data: {event}\n\n");
    };
    for at in 0..calls {
        add(
            json!({"type": "content_block_start", "index": at, "content_block":
            {"type": "tool_use", "id": format!("c{at}"), "name": "read_log", "input": {}}}),
        );
    }
    for at in 0..calls {
        add(json!({"type": "content_block_delta", "index": at,
            "delta": {"type": "input_json_delta", "partial_json": "{}"}}));
    }
    let length = events.len();
    let stream = upstream("text/event-stream", "", events, 1);
    let served = Served::start(&["--upstream", &stream]);
    let body = with_output(Dialect::Messages, 6_000);
    let answer = post(&served.url, path(Dialect::Messages), &body, &[]).await;
    assert_eq!(answer.body.len(), length);
    let behind = quiet(served.process_id()).await;
    assert!(behind <= TICKS_BEHIND, "{behind} ticks after the answer");
}
