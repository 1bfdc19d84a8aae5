//! Scanning and splicing beside parsing, and watching a stream beside copying it.

#![expect(clippy::print_stdout, reason = "a benchmark's table is what it is for")]

use std::hint::black_box;
use std::rc::Rc;

use serde_json::Value;
use trimtab_model::{Dialect, Output};
use trimtab_testkit::bench::BenchComparison;
use trimtab_wire::scan::BodyScan;
use trimtab_wire::splice::{BodyChange, splice};
use trimtab_wire::sse::StreamWatcher;

/// How many messages the request has, and of which every hundredth output changes.
const MESSAGES: usize = 1000;
const ROUNDS: usize = 40;

fn main() {
    for dialect in Dialect::ALL {
        request(dialect);
    }
    stream();
}

/// A request of about five megabytes: source code, logs, some JSON in JSON.
fn body(dialect: Dialect) -> String {
    let entries: Vec<String> = (0..MESSAGES / 2)
        .map(|round| {
            let id = format!("call_{round}");
            let output = quoted(&output(round));
            match dialect {
                Dialect::Chat => format!(
                    r#"{{"role":"assistant","content":null,"tool_calls":[{{"id":"{id}","type":"function","function":{{"name":"read","arguments":"{{\"path\":\"src/file_{round}.rs\"}}"}}}}]}},{{"role":"tool","tool_call_id":"{id}","content":{output}}}"#
                ),
                Dialect::Messages => format!(
                    r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"{id}","name":"read","input":{{"path":"src/file_{round}.rs"}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":{output}}}]}}"#
                ),
                Dialect::Responses => format!(
                    r#"{{"type":"function_call","call_id":"{id}","name":"read","arguments":"{{\"path\":\"src/file_{round}.rs\"}}"}},{{"type":"function_call_output","call_id":"{id}","output":{output}}}"#
                ),
            }
        })
        .collect();
    let list = match dialect {
        Dialect::Responses => "input",
        _ => "messages",
    };
    format!(
        r#"{{"model":"m","max_tokens":4096,"{list}":[{{"role":"user","content":"go"}},{}]}}"#,
        entries.join(",")
    )
}

fn output(round: usize) -> String {
    let line = match round % 3 {
        0 => "    let value = map.get(\"key\").unwrap_or(&default); // look it up\n",
        1 => "2026-03-01T12:00:00Z INFO worker{id=7}: finished job in 1423 ms, 0 errors\n",
        _ => "{\"name\": \"item\", \"size\": 1234, \"tags\": [\"a\", \"b\"], \"ok\": true}\n",
    };
    line.repeat(140)
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn request(dialect: Dialect) {
    let body = Rc::new(body(dialect));
    let megabytes = body.len() as f64 / 1e6;
    let title = format!("{dialect}: 10 of {MESSAGES} messages of {megabytes:.1} MB changed");
    let (copied, parsed, checked, scanned, spliced) = (
        Rc::clone(&body),
        Rc::clone(&body),
        Rc::clone(&body),
        Rc::clone(&body),
        body,
    );
    // Whoever follows the parser pays for what it freed, so that is the copy.
    let times = BenchComparison::new(title, ROUNDS)
        .candidate("serde_json: parse, change, write", move || {
            reserialise(&parsed, dialect)
        })
        .candidate("copy", move || copied.as_bytes().to_vec())
        .candidate("serde_json: skip only", move || {
            serde_json::from_str::<serde::de::IgnoredAny>(&checked).is_ok()
        })
        .candidate("scan", move || {
            BodyScan::new(scanned.as_bytes(), dialect).map(|scan| scan.len())
        })
        .candidate("scan and splice", move || change(&spliced, dialect))
        .run();
    if let [theirs, .., scan, ours] = times.as_slice() {
        let ratio = theirs.as_secs_f64() / ours.as_secs_f64();
        let speed = megabytes / 1e3 / scan.as_secs_f64();
        println!("  {ratio:.1} times as fast as serde_json; the scan reads {speed:.2} GB/s");
    }
}

fn change(body: &str, dialect: Dialect) -> usize {
    let Ok(scan) = BodyScan::new(body.as_bytes(), dialect) else {
        return 0;
    };
    let outputs = (1..scan.len()).filter(|at| at % 2 == 0);
    let changes: Vec<BodyChange> = outputs
        .step_by(50)
        .map(|message| BodyChange::Show {
            message,
            part: 0,
            output: Output::new("", "[trimmed: 140 lines, ref abc]"),
        })
        .collect();
    assert_eq!(changes.len(), 10);
    splice(&scan, &changes).map_or(0, |spliced| spliced.body.len())
}

fn reserialise(body: &str, dialect: Dialect) -> usize {
    let Ok(mut value) = serde_json::from_str::<Value>(body) else {
        return 0;
    };
    let list = match dialect {
        Dialect::Responses => "input",
        _ => "messages",
    };
    let entries = value.get_mut(list).and_then(Value::as_array_mut);
    let outputs = entries.into_iter().flatten().skip(2).step_by(100);
    for output in outputs {
        let content = match dialect {
            Dialect::Chat => output.get_mut("content"),
            Dialect::Messages => output.pointer_mut("/content/0/content"),
            Dialect::Responses => output.get_mut("output"),
        };
        if let Some(content) = content {
            *content = Value::from("[trimmed: 140 lines, ref abc]");
        }
    }
    black_box(value.to_string()).len()
}

fn stream() {
    let event = |number| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\" word{number}\"}}}}\n\n"
        )
    };
    let events: Vec<String> = (0..20_000).map(event).collect();
    let events = events.concat();
    let megabytes = events.len() as f64 / 1e6;
    let (passing, copied) = (Rc::new(events.clone()), Rc::new(events));
    let title = format!("a stream of {megabytes:.1} MB in pieces of 1,400 bytes");
    let times = BenchComparison::new(title, ROUNDS)
        .candidate("copy", move || {
            let mut out = Vec::with_capacity(copied.len());
            for piece in copied.as_bytes().chunks(1400) {
                out.extend_from_slice(piece);
            }
            out
        })
        .candidate("watch", move || {
            let mut watcher = StreamWatcher::new(Dialect::Messages);
            let mut count = 0;
            for piece in passing.as_bytes().chunks(1400) {
                watcher.push(piece, |_| count += 1);
            }
            count
        })
        .run();
    if let [_, watch] = times.as_slice() {
        println!(
            "  the watcher reads {:.2} GB/s",
            megabytes / 1e3 / watch.as_secs_f64()
        );
    }
}
