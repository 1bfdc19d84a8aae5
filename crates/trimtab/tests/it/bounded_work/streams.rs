//! Streamed answers as a hostile server would write them.

use std::fmt::Write as _;

use trimtab::model::Dialect;
use trimtab::wire::sse::{CallFilter, StreamWatcher};

/// A stream: its name, its dialect, and its bytes with so many calls.
pub(super) type NamedStream = (&'static str, Dialect, fn(usize) -> String);
/// Who looks at a stream: its name, and how.
pub(super) type NamedWatcher = (&'static str, fn(Dialect, &str));

/// The bytes of a stream come in pieces of this size.
const PIECE: usize = 1_000;

pub(super) const WATCHERS: [NamedWatcher; 2] = [("watcher", watch), ("filter", filter)];

pub(super) const STREAMS: [NamedStream; 5] = [
    (
        "many open calls of Chat Completions",
        Dialect::Chat,
        chat_calls,
    ),
    (
        "one call of Chat Completions in many pieces",
        Dialect::Chat,
        chat_pieces,
    ),
    (
        "many open calls of Messages",
        Dialect::Messages,
        open_blocks,
    ),
    ("many items of Responses", Dialect::Responses, items),
    ("many ends", Dialect::Messages, ends),
];

fn watch(dialect: Dialect, stream: &str) {
    let mut watcher = StreamWatcher::new(dialect);
    for piece in stream.as_bytes().chunks(PIECE) {
        watcher.push(piece, |_| {});
    }
    watcher.finish(|_| {});
}

fn filter(dialect: Dialect, stream: &str) {
    let mut filter = CallFilter::new(dialect, ["hidden"]);
    let mut out = Vec::new();
    for piece in stream.as_bytes().chunks(PIECE) {
        filter.push(piece, &mut out);
    }
    filter.finish(&mut out);
}

fn events(each: impl Iterator<Item = String>) -> String {
    each.fold(String::new(), |mut stream, data| {
        let _ = write!(stream, "data: {data}\n\n");
        stream
    })
}

fn chat_calls(size: usize) -> String {
    let call = |at: usize, call: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":{at},{call}}}]}}}}]}}"#
        )
    };
    let begin = (0..size).map(|at| {
        let named = format!(r#""id":"c{at}","function":{{"name":"f","arguments":""}}"#);
        call(at, &named)
    });
    let go_on = (0..size).map(|at| call(at, r#""function":{"arguments":"{}"}"#));
    events(begin.chain(go_on))
}

fn chat_pieces(size: usize) -> String {
    events((0..size).map(|at| {
        let named = format!(
            r#"{{"index":0,"id":"c","x{at}":1,"function":{{"name":"f","arguments":"a"}}}}"#
        );
        format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{named}]}}}}]}}"#)
    }))
}

fn open_blocks(size: usize) -> String {
    let begin = (0..size).map(|at| {
        let part = format!(r#"{{"type":"tool_use","id":"c{at}","name":"f","input":{{}}}}"#);
        format!(r#"{{"type":"content_block_start","index":{at},"content_block":{part}}}"#)
    });
    let go_on = (0..size).map(|at| {
        let delta = r#"{"type":"input_json_delta","partial_json":"{}"}"#;
        format!(r#"{{"type":"content_block_delta","index":{at},"delta":{delta}}}"#)
    });
    let stop = (0..size).map(|at| format!(r#"{{"type":"content_block_stop","index":{at}}}"#));
    events(begin.chain(go_on).chain(stop))
}

fn items(size: usize) -> String {
    let of = |kind: &'static str| {
        move |at: usize| {
            let item = format!(
                r#"{{"type":"function_call","call_id":"c{at}","name":"f","arguments":""}}"#
            );
            format!(r#"{{"type":"{kind}","output_index":{at},"sequence_number":1,"item":{item}}}"#)
        }
    };
    let added = (0..size).map(of("response.output_item.added"));
    events(added.chain((0..size).map(of("response.output_item.done"))))
}

fn ends(size: usize) -> String {
    let end = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    events((0..size).map(|_| end.to_owned()))
}
