//! Conversations up to the limit of a body are managed with the default memory: while they grow, and
//! as the first request after a restart.

use serde_json::json;
use tempfile::TempDir;

use crate::process::peak_resident_bytes;
use crate::run::{Served, say};
use crate::sockets::{PlainUpstream, address, folder_with, post, serve};

const MIB: u64 = 1 << 20;
/// What the process may take in all with the default budget.
const MOST: u64 = 512 * MIB;
/// The window of the model in tokens, and the tokens that are assumed of an image whose size cannot
/// be read.
const WINDOW: usize = 64_000;
const PER_SCREENSHOT: usize = 1_200;
/// The length of a screenshot in a body.
const SCREENSHOT: usize = 500_000;
/// How many of them are nearly as long as a body may be.
const SCREENSHOTS: usize = 60;

fn serve_narrow(folder: TempDir, upstream: &PlainUpstream) -> Served {
    let url = format!("http://{}", upstream.address);
    let window = WINDOW.to_string();
    Served::start_in(folder, &["--upstream", &url, "--window", &window])
}

/// A body with a round for each of these contents of an output, which are JSON.
fn body(outputs: &[String]) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "go on"}).to_string()];
    for (at, output) in outputs.iter().enumerate() {
        let id = format!("c{at}");
        let call = json!({"type": "tool_use", "id": id, "name": "look", "input": {"at": at}});
        messages.push(json!({"role": "assistant", "content": [call]}).to_string());
        messages.push(format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":{output}}}]}}"#
        ));
    }
    let messages = messages.join(",");
    let body =
        format!(r#"{{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{messages}]}}"#);
    body.into_bytes()
}

/// A screenshot, each another one.
fn screenshot(at: usize) -> String {
    let letters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut state = at as u64 + 1;
    let data = (0..SCREENSHOT).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(letters[(state >> 58) as usize])
    });
    let data: String = data.collect();
    format!(
        r#"[{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{data}"}}}}]"#
    )
}

/// Sends a body, and checks that it was managed.
async fn is_managed(served: &Served, name: &str, body: &[u8]) {
    let answer = post(address(served), "/v1/messages", "", body).await;
    let managed = ["edited", "unchanged"].map(|action| format!("x-trimtab-action: {action}\r\n"));
    assert!(
        managed.iter().any(|line| answer.contains(line)),
        "{name} of {} bytes: {answer}",
        body.len()
    );
    let peak = peak_resident_bytes(served.process_id());
    say(&format!(
        "{name} of {} MB: peak {} MB",
        body.len() / 1_000_000,
        peak / MIB
    ));
    assert!(peak <= MOST, "{peak}");
}

#[tokio::test(flavor = "multi_thread")]
async fn screenshots_are_managed_up_to_the_limit_of_a_body() {
    let upstream = PlainUpstream::start().await;
    let mut served = serve_narrow(folder_with("plan_ms = 60000"), &upstream);
    let all: Vec<String> = (0..SCREENSHOTS).map(screenshot).collect();
    for many in (5..=SCREENSHOTS).step_by(5) {
        is_managed(&served, "screenshots", &body(&all[..many])).await;
    }
    served = serve_narrow(served.killed(), &upstream);
    is_managed(&served, "screenshots after a restart", &body(&all)).await;
    for (length, _) in upstream.received() {
        let tokens = length / SCREENSHOT * PER_SCREENSHOT;
        assert!(tokens <= WINDOW, "{length} bytes with {tokens} tokens");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_first_body_is_managed() {
    let text = |at: usize| {
        let lines =
            (0..2_000).map(|line| format!("{at} line {line}: value {}", line * 7_919 % 10_007));
        lines.collect::<Vec<_>>().join("\n")
    };
    // The braces in a text do not make it a body of many objects.
    let rows = |at: usize| {
        let rows = (0..1_500).map(|row| json!({"id": row, "name": format!("{at} {row}")}));
        json!(rows.collect::<Vec<_>>()).to_string()
    };
    let kinds: [(&str, &dyn Fn(usize) -> String); 2] = [("text", &text), ("JSON", &rows)];
    for (name, output) in kinds {
        let (mut outputs, mut bytes) = (Vec::new(), 0);
        while bytes < 31_000_000 {
            let output = json!(output(outputs.len())).to_string();
            bytes += output.len();
            outputs.push(output);
        }
        let upstream = PlainUpstream::start().await;
        let served = serve_narrow(folder_with("plan_ms = 60000"), &upstream);
        is_managed(&served, name, &body(&outputs)).await;
        let (length, _) = *upstream.received().last().unwrap();
        // No text has fewer tokens than a letter in eight.
        assert!(length <= 8 * WINDOW, "{name}: {length} bytes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn warning_names_the_limit_that_keeps_a_request_unmanaged() {
    let upstream = PlainUpstream::start().await;
    let long = body(&[screenshot(0), screenshot(1)]);
    for (limits, setting) in [
        ("body_bytes = 500000", "hint: raise limits.body_bytes"),
        ("memory_bytes = 1048576", "hint: raise limits.memory_bytes"),
    ] {
        let served = serve(limits, &upstream);
        let answer = post(address(&served), "/v1/messages", "", &long).await;
        assert!(answer.contains("x-trimtab-action: passed"), "{answer}");
        served.wait_for(setting);
    }
}
