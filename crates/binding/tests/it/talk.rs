//! Conversations of a host, as requests in each dialect.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab::store::Store;
use trimtab_binding::BoundSession;

/// One round: what the user says, two calls in parallel, and their outputs.
pub(crate) struct Round {
    pub(crate) question: String,
    pub(crate) outputs: [String; 2],
}

/// Rounds with outputs of very different sizes.
pub(crate) fn rounds(count: usize) -> Vec<Round> {
    let lines = |round: usize, call: usize| {
        let count = [3, 40, 900, 12][(round * 3 + call) % 4] + round;
        let line = |at| format!("{round}.{call}.{at}: /src/part_{at}.rs compiled in {at} ms\n");
        (0..count).map(line).collect::<String>()
    };
    let round = |round| Round {
        question: format!("step {round}: what is new?"),
        outputs: [lines(round, 0), lines(round, 1)],
    };
    (0..count).map(round).collect()
}

/// A request with these rounds. Each entry has a field that no provider knows.
pub(crate) fn request(dialect: &str, rounds: &[Round]) -> Vec<u8> {
    let rows: Vec<Value> = rounds
        .iter()
        .enumerate()
        .flat_map(|(at, round)| match dialect {
            "responses" => responses(at, round),
            "messages" => messages(at, round),
            _ => chat(at, round),
        })
        .collect();
    let body = match dialect {
        "responses" => json!({"instructions": "be brief", "input": rows, "x_host": [1.50]}),
        "messages" => json!({"system": "be brief", "messages": rows, "x_host": [1.50]}),
        _ => json!({"messages": rows, "x_host": [1.50]}),
    };
    body.to_string().into_bytes()
}

fn ids(at: usize) -> [String; 2] {
    [format!("call_{at}_a"), format!("call_{at}_b")]
}

fn chat(at: usize, round: &Round) -> Vec<Value> {
    let call = |id: &String| {
        json!({"id": id, "type": "function",
               "function": {"name": "read", "arguments": format!("{{\"at\":{at}}}")}})
    };
    let calls: Vec<Value> = ids(at).iter().map(call).collect();
    let mut rows = vec![
        json!({"role": "user", "content": round.question, "x_row": at}),
        json!({"role": "assistant", "content": "reading", "tool_calls": calls, "x_row": at}),
    ];
    for (id, output) in ids(at).iter().zip(&round.outputs) {
        rows.push(json!({"role": "tool", "tool_call_id": id, "content": output, "x_row": at}));
    }
    rows.push(json!({"role": "assistant", "content": format!("done {at}")}));
    rows
}

fn responses(at: usize, round: &Round) -> Vec<Value> {
    let mut rows = vec![json!({"role": "user", "content": round.question, "x_row": at})];
    for id in ids(at) {
        rows.push(
            json!({"type": "function_call", "call_id": id, "name": "read",
                         "arguments": "{}"}),
        );
    }
    for (id, output) in ids(at).iter().zip(&round.outputs) {
        rows.push(json!({"type": "function_call_output", "call_id": id, "output": output}));
    }
    rows.push(json!({"type": "message", "role": "assistant",
                     "content": [{"type": "output_text", "text": format!("done {at}")}]}));
    rows
}

fn messages(at: usize, round: &Round) -> Vec<Value> {
    let call = |id: &String| json!({"type": "tool_use", "id": id, "name": "read", "input": {}});
    let calls: Vec<Value> = ids(at).iter().map(call).collect();
    let outputs = ids(at);
    let outputs = outputs.iter().zip(&round.outputs);
    let outputs: Vec<Value> = outputs
        .map(|(id, output)| json!({"type": "tool_result", "tool_use_id": id, "content": output}))
        .collect();
    vec![
        json!({"role": "user", "content": round.question}),
        json!({"role": "assistant", "content": calls}),
        json!({"role": "user", "content": outputs}),
        json!({"role": "assistant", "content": format!("done {at}")}),
    ]
}

/// A session with these options on top of a window of 20,000 tokens.
pub(crate) fn open(options: Value) -> BoundSession {
    BoundSession::open(&all_options(options)).unwrap()
}

/// The same in a store of the test.
pub(crate) fn open_in(store: Arc<dyn Store>, options: Value) -> BoundSession {
    BoundSession::open_in(store, &all_options(options)).unwrap()
}

fn all_options(options: Value) -> Vec<u8> {
    let mut all = json!({"window": 20_000, "max_output": 1_000});
    let Value::Object(options) = options else {
        panic!("options are an object")
    };
    for (key, value) in options {
        all[key] = value;
    }
    all.to_string().into_bytes()
}

/// The rows of a request.
pub(crate) fn rows(body: &[u8]) -> Vec<Value> {
    let body: Value = serde_json::from_slice(body).unwrap();
    let rows = body.get("messages").or(body.get("input")).unwrap();
    rows.as_array().unwrap().clone()
}

/// The first ref that a text of ours names.
pub(crate) fn first_ref(body: &[u8]) -> Option<String> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let at = text.split("ref_id\\\":\\\"").nth(1)?;
    at.split('\\').next().map(str::to_owned)
}
