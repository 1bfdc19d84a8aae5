//! What a model that writes summaries is asked.

use serde_json::{Value, json};
use trimtab_testkit::script::{Script, ScriptedReply};
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::Home;

/// A conversation with a long output of `line`s in its first round.
fn conversation(line: fn(usize) -> String) -> Value {
    let long: String = (0..800).map(line).collect();
    let mut messages = vec![json!({"role": "user", "content": "Find the slow query."})];
    for number in 0..12 {
        let id = format!("call_{number}");
        let output = if number == 0 {
            long.as_str()
        } else {
            "nothing slow here"
        };
        let function = json!({"name": "read_log", "arguments": "{}"});
        let call = json!({"id": id, "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "content": "I look.", "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
    }
    messages.push(json!({"role": "assistant", "content": "It is the third one."}));
    messages.push(json!({"role": "user", "content": "And now?"}));
    json!({"messages": messages})
}

/// The requests for the summary of a conversation to a model with a window of 8,000 tokens. The
/// outputs are stored in session `s`.
fn asked(home: &Home, conversation: &Value, more: &[&str]) -> String {
    let answer = ScriptedReply::text("<retain>none</retain><summary>Nothing yet.</summary>");
    let script = Script::new(vec![answer; 20]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let options = UpstreamOptions::new(ReplySource::script(script));
    let upstream = runtime.block_on(Upstream::start(options)).unwrap();
    let base = format!("{}/v1", upstream.url());
    let file = home.file("long.json", conversation.to_string().as_bytes());
    let out = home.path().join("out").display().to_string();
    let args = [
        "compact",
        &file,
        "-o",
        &out,
        "--session",
        "s",
        "--model",
        "chat:m",
    ];
    let limit = ["--set", "compaction.model_window=8000", "--keep-turns", "1"];
    let args = [&args[..], &["--base-url", &base], &limit, more].concat();
    let done = home.run(&args);
    assert_eq!(done.code, 0, "{}", done.stderr);
    let requests = upstream.requests();
    assert!(!requests.is_empty());
    requests
        .iter()
        .map(|request| request.json().to_string())
        .collect()
}

/// The ref of the long output.
fn long_output(home: &Home) -> String {
    let listed = home.run(&["output", "list", "--session", "s", "--json"]);
    let outputs = listed.stdout.lines().map(|line| {
        let entry: Value = serde_json::from_str(line).unwrap();
        (entry["byte_size"].as_u64().unwrap(), entry.clone())
    });
    let of_tool = outputs.filter(|(_, entry)| entry["tool"] == "read_log");
    let (_, longest) = of_tool.max_by_key(|(bytes, _)| *bytes).unwrap();
    longest["ref"].as_str().unwrap().to_owned()
}

#[test]
fn shortened_output_in_a_summary_request_names_its_ref() {
    let lines: [fn(usize) -> String; 2] = [
        |number| format!("{number} select * from orders where id = {number}\n"),
        // One line, which is cut in its middle.
        |number| format!("{number} select * from orders where id = {number}; "),
    ];
    for line in lines {
        for form in ["messages", "text"] {
            let home = Home::new();
            let form = format!("compaction.form={form}");
            let asked = asked(&home, &conversation(line), &["--set", &form]);
            let stored = long_output(&home);
            assert!(asked.contains(&stored), "{form}: {stored}: {asked}");
            assert!(!asked.contains("not stored"), "{form}");
        }
    }
}
