//! What belongs to the provider, or to a program that it runs, reaches it as it came.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trimtab_engine::policy::PRESETS;
use trimtab_model::Dialect;
use trimtab_proxy::{ModelRule, Proxy, Record};
use trimtab_store::MemoryStore;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::fake::post;
use crate::fits::HEADERS;
use crate::talk::{Talk, lines, path};
use crate::{config, proxy};

const WINDOW: u64 = 12_000;
const ROUNDS: usize = 24;

fn presets() -> impl Iterator<Item = &'static str> {
    let names = PRESETS.iter().map(|preset| preset.name);
    names.filter(|name| *name != "none")
}

/// Sends `talk` again and again while it grows, first as it is; gives the bodies that arrived.
async fn bodies(mut talk: Talk, preset: &str, rounds: usize, tools: Vec<Value>) -> Vec<Value> {
    let source = ReplySource::with(|received| {
        if received.last.contains("<summary>") {
            return ScriptedReply::text("<summary>\nfiles were read\n</summary>");
        }
        ScriptedReply::text("read")
    });
    let upstream = Upstream::start(UpstreamOptions::new(source)).await.unwrap();
    let mut config = config(&upstream.url());
    preset.clone_into(&mut config.preset);
    config.models.push(ModelRule {
        model: "*".to_owned(),
        window: Some(WINDOW),
        max_output: None,
        preset: None,
        mode: None,
    });
    let (_running, base) = proxy(config).await;
    for round in 0..=rounds {
        let mut body: Value = serde_json::from_str(&talk.body()).unwrap();
        let offered = body["tools"].as_array_mut().unwrap();
        offered.extend(tools.iter().cloned());
        let got = post(&base, path(talk.dialect), &HEADERS, body.to_string()).await;
        assert_eq!(got.status, 200, "{preset} {round}: {}", got.text());
        talk.round(&format!("call_{round}"), &lines(30 + round * 37 % 150));
    }
    assert_eq!(upstream.violations(), Vec::<String>::new(), "{preset}");
    let is_summary = |received: &ReceivedRequest| {
        let asks = ["<summary>", "Summarise this tool output"];
        asks.iter().any(|words| received.last.contains(words))
    };
    let requests = upstream.requests();
    let own = requests.iter().filter(|received| !is_summary(received));
    own.map(|received| serde_json::from_slice(&received.body).unwrap())
        .collect()
}

fn entries(body: &Value) -> &Vec<Value> {
    let list = body.get("messages").unwrap_or(&body["input"]);
    list.as_array().unwrap()
}

/// The places of `wanted` in the body; fails if one is missing, or if their order changed.
fn assert_holds(body: &Value, wanted: &[Value], context: &str) {
    let entries = entries(body);
    let mut from = 0;
    for one in wanted {
        let found = entries.iter().skip(from).position(|entry| entry == one);
        let shown: String = one.to_string().chars().take(120).collect();
        let found = found.unwrap_or_else(|| panic!("{context}: {shown} is missing"));
        from += found + 1;
    }
}

/// The entries of a program that calls a tool, with an output of `count` lines.
fn program(dialect: Dialect, id: &str, count: usize) -> Vec<Value> {
    let output = lines(count);
    if dialect == Dialect::Responses {
        let caller = json!({"type": "program", "caller_id": id});
        return vec![
            json!({"type": "program", "id": format!("pr_{id}"), "call_id": id,
                "code": "print(await read())", "fingerprint": "fp"}),
            json!({"type": "function_call", "call_id": format!("in_{id}"), "name": "read",
                "arguments": "{}", "caller": caller}),
            json!({"type": "function_call_output", "call_id": format!("in_{id}"),
                "output": output, "caller": caller}),
        ];
    }
    let caller = json!({"type": "code_execution_20260120", "tool_id": id});
    vec![
        json!({"role": "assistant", "content": [
            {"type": "server_tool_use", "id": id, "name": "code_execution",
                "input": {"code": "print(await read())"}},
            {"type": "tool_use", "id": format!("in_{id}"), "name": "read", "input": {},
                "caller": caller}]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": format!("in_{id}"), "content": output}]}),
    ]
}

/// The entries that end a program.
fn program_result(dialect: Dialect, id: &str) -> Value {
    match dialect {
        Dialect::Responses => json!({"type": "program_output", "id": format!("po_{id}"),
            "call_id": id, "result": "7", "status": "completed"}),
        _ => json!({"role": "assistant", "content": [
            {"type": "code_execution_tool_result", "tool_use_id": id, "content":
                {"type": "code_execution_result", "stdout": "7", "stderr": "", "return_code": 0,
                    "content": []}},
            {"type": "text", "text": "it is 7"}]}),
    }
}

fn code_tool(dialect: Dialect) -> Vec<Value> {
    match dialect {
        Dialect::Responses => vec![json!({"type": "programmatic_tool_calling"})],
        _ => vec![json!({"type": "code_execution_20260120", "name": "code_execution"})],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_program_is_no_unanswered_call() {
    for dialect in [Dialect::Responses, Dialect::Messages] {
        for preset in presets() {
            let mut talk = Talk::new(dialect, "go");
            let made = program(dialect, "srvtoolu_1", 900);
            talk.entries.extend(made.clone());
            let sent = bodies(talk, preset, 0, code_tool(dialect)).await;
            for body in sent {
                let expected: Vec<Value> = made.clone();
                let tail = &entries(&body)[entries(&body).len() - expected.len()..];
                assert_eq!(tail, expected, "{preset} {dialect:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outputs_for_programs_are_whole_and_go_only_with_their_program() {
    for dialect in [Dialect::Responses, Dialect::Messages] {
        for preset in presets() {
            let mut talk = Talk::new(dialect, "go");
            let mut made = program(dialect, "srvtoolu_1", 120);
            made.push(program_result(dialect, "srvtoolu_1"));
            talk.entries.extend(made.clone());
            // A second program reads the same.
            talk.entries.extend(program(dialect, "srvtoolu_2", 120));
            talk.entries.push(program_result(dialect, "srvtoolu_2"));
            talk.user("and now?");
            let sent = bodies(talk, preset, ROUNDS, code_tool(dialect)).await;
            for (number, body) in sent.iter().enumerate() {
                let context = format!("{preset} {dialect:?} {number}");
                let held = made
                    .iter()
                    .filter(|one| entries(body).contains(one))
                    .count();
                assert!(held == 0 || held == made.len(), "{context}: {held}");
                let text = body.to_string();
                assert_eq!(text.contains("in_srvtoolu_1"), held > 0, "{context}");
            }
        }
    }
}

/// A search for tools that found one, as entries, and the deferred tool.
fn loaded_tool(dialect: Dialect) -> (Vec<Value>, Vec<Value>) {
    if dialect == Dialect::Responses {
        let tool = json!({"type": "function", "name": "far", "parameters": {"type": "object"},
            "defer_loading": true});
        let found = vec![
            json!({"type": "tool_search_call", "id": "ts_1", "call_id": "srch_1",
                "execution": "client", "arguments": {"query": "far"}, "status": "completed"}),
            json!({"type": "tool_search_output", "id": "to_1", "call_id": "srch_1",
                "execution": "client", "status": "completed", "tools": [tool]}),
        ];
        return (
            found,
            vec![tool, json!({"type": "tool_search", "execution": "client"})],
        );
    }
    let tool = json!({"name": "far", "input_schema": {"type": "object"}, "defer_loading": true});
    let search = json!({"type": "tool_search_tool_regex_20251119",
        "name": "tool_search_tool_regex"});
    let found = json!({"role": "assistant", "content": [
        {"type": "text", "text": "I look for a tool."},
        {"type": "server_tool_use", "id": "srvtoolu_2", "name": "tool_search_tool_regex",
            "input": {"query": "far"}},
        {"type": "tool_search_tool_result", "tool_use_id": "srvtoolu_2", "content":
            {"type": "tool_search_tool_search_result",
                "tool_references": [{"type": "tool_reference", "tool_name": "far"}]}},
        {"type": "tool_use", "id": "far_1", "name": "far", "input": {}}]});
    let output = json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "far_1", "content": "fine"}]});
    (vec![found, output], vec![tool, search])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loaded_tool_stays_in_the_window() {
    for dialect in [Dialect::Responses, Dialect::Messages] {
        for preset in presets() {
            let (found, tools) = loaded_tool(dialect);
            let mut talk = Talk::new(dialect, "go");
            talk.entries.extend(found.clone());
            talk.says("loaded").user("and now?");
            let sent = bodies(talk, preset, ROUNDS, tools).await;
            for (number, body) in sent.iter().enumerate() {
                assert_holds(body, &found, &format!("{preset} {dialect:?} {number}"));
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_reference_in_an_output_and_tools_in_system_messages_stay() {
    let loads = [
        json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": "find_1", "name": "read", "input": {}}]}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "find_1",
            "content": [{"type": "tool_reference", "tool_name": "far"}]}]}),
        json!({"role": "system", "content": [{"type": "tool_addition", "tool":
            {"type": "tool_definition", "definition":
                {"name": "late", "input_schema": {"type": "object"}}}}]}),
        json!({"role": "assistant", "content": "loaded"}),
    ];
    let tool = json!({"name": "far", "input_schema": {"type": "object"}, "defer_loading": true});
    for preset in presets() {
        let mut talk = Talk::new(Dialect::Messages, "go");
        talk.entries.extend(loads.clone());
        talk.user("and now?");
        for (number, body) in bodies(talk, preset, ROUNDS, vec![tool.clone()])
            .await
            .iter()
            .enumerate()
        {
            assert_holds(body, &loads, &format!("{preset} {number}"));
        }
    }
}

/// A conversation that the provider has summarised, and its block.
fn summarised(dialect: Dialect) -> (Talk, Value) {
    let mut talk = Talk::new(dialect, "go");
    for round in 0..6 {
        talk.round(&format!("old_{round}"), &lines(400));
    }
    let block = match dialect {
        Dialect::Responses => json!({"type": "compaction", "encrypted_content": "gAAAcompact"}),
        _ => json!({"role": "assistant", "content": [
            {"type": "compaction", "content": "six files were read"},
            {"type": "text", "text": "I go on."}]}),
    };
    talk.entries.push(block.clone());
    talk.user("go on");
    (talk, block)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn compaction_block_stays_and_nothing_in_front_of_it_counts() {
    for dialect in [Dialect::Responses, Dialect::Messages] {
        for preset in presets() {
            let (talk, block) = summarised(dialect);
            let front = talk.entries.clone();
            let sent = bodies(talk.clone(), preset, 0, Vec::new()).await;
            // Alone, this would fill the window twice.
            assert_eq!(entries(&sent[0]), &front, "{preset} {dialect:?}");
            let sent = bodies(talk, preset, ROUNDS, Vec::new()).await;
            for (number, body) in sent.iter().enumerate() {
                let context = format!("{preset} {dialect:?} {number}");
                assert_holds(body, std::slice::from_ref(&block), &context);
                let at = entries(body).iter().position(|entry| entry == &block);
                assert_eq!(
                    &entries(body)[..at.unwrap()],
                    &front[..front.len() - 2],
                    "{context}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_provider_ignores_is_not_counted_as_saved() {
    for dialect in [Dialect::Responses, Dialect::Messages] {
        let source = ReplySource::with(|_| ScriptedReply::text("read"));
        let upstream = Upstream::start(UpstreamOptions::new(source)).await.unwrap();
        let records = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&records);
        let running = Proxy::new(config(&upstream.url()), Arc::new(MemoryStore::new()))
            .log(move |record: &Record| sink.lock().unwrap().push(record.clone()))
            .run()
            .await
            .unwrap();
        let base = format!("http://{}", running.address());
        let (mut talk, _) = summarised(dialect);
        for round in 0..3 {
            let got = post(&base, path(dialect), &HEADERS, talk.body()).await;
            assert_eq!(got.status, 200, "{}", got.text());
            talk.round(&format!("call_{round}"), &lines(30));
        }
        running.shutdown().await;
        for record in records.lock().unwrap().iter() {
            // Our tools are in every request, and nothing is left out of these.
            let (came, sent) = (record.tokens_before, record.tokens_after);
            assert!(
                sent > came && sent - came < 1_500,
                "{dialect}: {came} {sent}"
            );
            assert!(came < 6_000, "{dialect}: {came}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signed_compaction_block_stays_first_and_alone() {
    let block = json!({"role": "assistant", "content": [
        {"type": "compaction", "content": "six files were read", "signature": "sig"}]});
    for preset in presets() {
        let mut talk = Talk::new(Dialect::Messages, "go on");
        talk.entries.insert(0, block.clone());
        for (number, body) in bodies(talk, preset, ROUNDS, Vec::new())
            .await
            .iter()
            .enumerate()
        {
            assert_eq!(entries(body)[0], block, "{preset} {number}");
        }
    }
}

/// A hundred tools of which the model sees nothing before it looks for them.
fn deferred_tools(dialect: Dialect) -> Vec<Value> {
    let tool = |at: usize| {
        let (name, about) = (format!("far_{at}"), lines(30));
        match dialect {
            Dialect::Responses => json!({"type": "function", "name": name, "description": about,
                "parameters": {"type": "object"}, "defer_loading": true}),
            _ => json!({"name": name, "description": about, "input_schema": {"type": "object"},
                "defer_loading": true}),
        }
    };
    let tools: Vec<Value> = (0..100).map(tool).collect();
    if dialect == Dialect::Messages {
        return tools;
    }
    let (alone, together) = tools.split_at(50);
    let namespace = json!({"type": "namespace", "name": "hub", "description": "more tools",
        "tools": together});
    [alone, &[namespace]].concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deferred_tools_take_no_room() {
    for dialect in [Dialect::Responses, Dialect::Messages] {
        for preset in presets() {
            let mut talk = Talk::new(dialect, "go");
            for round in 0..4 {
                talk.round(&format!("read_{round}"), &lines(60));
            }
            let came = talk.entries.clone();
            let sent = bodies(talk, preset, 0, deferred_tools(dialect)).await;
            assert_eq!(entries(&sent[0]), &came, "{preset} {dialect:?}");
        }
    }
}
