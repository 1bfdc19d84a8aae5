//! What `replay` tells of a session is what `serve` sends for it.

use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};
use trimtab_wire::chat;

use crate::run::{Served, finished, texts};
use crate::talk::{path, post};

const WINDOW: &str = "24000";
const ROUNDS: usize = 60;

/// An agent that reads files and replaces lines of files that it read some rounds ago.
fn session() -> Vec<Value> {
    let mut messages = vec![
        json!({"role": "system", "content": "You change code."}),
        json!({"role": "user", "content": "rename the settings everywhere"}),
    ];
    for round in 0..ROUNDS {
        let (tool, arguments, output) = if round % 4 == 3 {
            let arguments =
                json!({"path": name(round - 3), "old": edited(round), "new": "renamed"});
            ("edit", arguments, "done".to_owned())
        } else {
            let mut text = String::new();
            for number in 0..40 {
                writeln!(text, "{}", line(round, number)).unwrap();
            }
            ("read", json!({"path": name(round)}), text)
        };
        let id = format!("call_{round}");
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
    }
    messages
}

/// The line that an edit replaces.
fn edited(round: usize) -> String {
    let back = 3 + round % 9;
    let read = round.saturating_sub(back);
    line(read - usize::from(read % 4 == 3), round % 40)
}

fn name(round: usize) -> String {
    format!("src/part_{round}.rs")
}

fn line(round: usize, number: usize) -> String {
    format!("    let setting_{round}_{number} = table.column_{number}.read({round})?;")
}

/// How many of the edits find their line in the window, and what all windows take, in bytes.
fn found(windows: &[Vec<Value>]) -> (usize, usize) {
    let texts: Vec<String> = windows
        .iter()
        .map(|window| Value::from(window.clone()).to_string())
        .collect();
    let edits = (0..ROUNDS).filter(|round| round % 4 == 3);
    let is_found = |round: &usize| texts[*round].contains(&edited(*round));
    let bytes = texts.iter().map(String::len).sum();
    (edits.filter(is_found).count(), bytes)
}

/// How often a window is shorter than the one before it.
fn rewrites(windows: &[Vec<Value>]) -> usize {
    let lengths: Vec<usize> = windows.iter().map(Vec::len).collect();
    lengths.windows(2).filter(|pair| pair[1] < pair[0]).count()
}

/// The windows that `replay` writes.
fn replayed(messages: &[Value]) -> Vec<Vec<Value>> {
    let folder = tempfile::tempdir().unwrap();
    let recorded = json!({"id": "made", "messages": messages});
    fs::write(folder.path().join("made.jsonl"), recorded.to_string()).unwrap();
    let args = [
        "replay",
        "made.jsonl",
        "--window",
        WINDOW,
        "--windows",
        "windows.jsonl",
    ];
    let output = finished(folder.path(), &args);
    assert!(output.status.success(), "{:?}", texts(&output));
    let lines = fs::read_to_string(folder.path().join("windows.jsonl")).unwrap();
    let windows = lines.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["messages"].as_array().unwrap().clone()
    });
    windows.collect()
}

/// The windows that reach the upstream of `serve`.
async fn served(messages: &[Value]) -> Vec<Vec<Value>> {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("go on")));
    let upstream = Upstream::start(options).await.unwrap();
    let served = Served::start(&["--upstream", &upstream.url(), "--window", WINDOW]);
    for (at, message) in messages.iter().enumerate() {
        if message["role"] == "assistant" {
            let body = json!({"model": "some-model", "messages": messages[..at]});
            let answer = post(&served.url, path(Dialect::Chat), &body, &[]).await;
            assert!(answer.status.is_success(), "{answer:?}");
        }
    }
    let requests = upstream.requests();
    let windows = requests.iter().map(|request| as_replay_writes(request));
    windows.collect()
}

/// The messages of a request, read and written again as `replay` writes them.
fn as_replay_writes(request: &ReceivedRequest) -> Vec<Value> {
    let messages = request.read_messages();
    let written = messages.iter().flat_map(chat::write_message);
    let values = written.map(|message| serde_json::from_str(message.as_str()).unwrap());
    values.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn serve_sends_the_same_windows_as_replay() {
    let messages = session();
    let replayed = replayed(&messages);
    let served = served(&messages).await;
    assert_eq!(replayed.len(), served.len());
    assert!(rewrites(&replayed) > 0, "no window was ever rewritten");
    assert_eq!(rewrites(&replayed), rewrites(&served));
    let ((told, told_bytes), (sent, sent_bytes)) = (found(&replayed), found(&served));
    // Estimates learn from what the upstream counts, so that windows may differ by a line.
    assert!(
        told.abs_diff(sent) <= 1,
        "{told} and {sent} edits are ready"
    );
    let most = told_bytes / 20;
    assert!(
        told_bytes.abs_diff(sent_bytes) <= most,
        "{told_bytes} and {sent_bytes} bytes"
    );
}
