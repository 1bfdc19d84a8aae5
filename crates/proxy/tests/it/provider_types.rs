//! Every type of part that we know, and some that nobody knows, passes byte for byte.

use serde_json::{Value, json};
use trimtab_engine::policy::PRESETS;
use trimtab_model::{CHAT_PARTS, Dialect, MESSAGES_BLOCKS, RESPONSES_ITEMS};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::fake::post;
use crate::fits::HEADERS;
use crate::talk::{path, without_our_tools};
use crate::{config, proxy};

/// Calls that the provider carries out, each with its result.
fn server_calls() -> Vec<Value> {
    let server = |id: &str, name: &str, result: &str, content: Value| {
        let call = json!({"type": "server_tool_use", "id": id, "name": name, "input": {"a": 1}});
        [
            call,
            json!({"type": result, "tool_use_id": id, "content": content}),
        ]
    };
    let run = |kind: &str| json!({"type": kind, "stdout": "7", "stderr": "", "return_code": 0});
    let calls = [
        server(
            "s1",
            "web_search",
            "web_search_tool_result",
            json!([{"type": "web_search_result",
            "url": "u", "title": "t", "encrypted_content": "gAAA"}]),
        ),
        server(
            "s2",
            "web_fetch",
            "web_fetch_tool_result",
            json!({"type": "web_fetch_result",
            "url": "u"}),
        ),
        server(
            "s3",
            "code_execution",
            "code_execution_tool_result",
            run("code_execution_result"),
        ),
        server(
            "s4",
            "bash_code_execution",
            "bash_code_execution_tool_result",
            run("x"),
        ),
        server(
            "s5",
            "text_editor_code_execution",
            "text_editor_code_execution_tool_result",
            run("y"),
        ),
        server(
            "s6",
            "tool_search_tool_regex",
            "tool_search_tool_result",
            json!({
            "type": "tool_search_tool_search_result",
            "tool_references": [{"type": "tool_reference", "tool_name": "read"}]}),
        ),
        server("s7", "of_next_year", "next_year_tool_result", json!([])),
    ];
    calls.into_iter().flatten().collect()
}

/// The entries of a Messages request with every type of block.
fn messages() -> Vec<Value> {
    let image = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
    let pdf = json!({"type": "base64", "media_type": "application/pdf", "data": "aGk="});
    let mut said = vec![json!({"type": "compaction", "content": "earlier"})];
    said.extend(server_calls());
    said.extend([
        json!({"type": "mcp_tool_use", "id": "m1", "name": "n", "server_name": "s", "input": {}}),
        json!({"type": "mcp_tool_result", "tool_use_id": "m1", "is_error": false, "content": []}),
        json!({"type": "block_of_next_year", "value": 7.50}),
        json!({"type": "text", "text": "so", "citations": null}),
        json!({"type": "tool_use", "id": "t1", "name": "read", "input": {},
            "caller": {"type": "direct"}}),
    ]);
    let reference = json!({"type": "tool_reference", "tool_name": "read"});
    vec![
        json!({"role": "user", "content": [{"type": "text", "text": "go"},
            {"type": "image", "source": image}, {"type": "document", "source": pdf},
            {"type": "container_upload", "file_id": "f1"}]}),
        json!({"role": "assistant", "content": said}),
        json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1",
            "content": [{"type": "text", "text": "a"}, reference, {"type": "search_result",
            "source": "s", "title": "t", "content": [{"type": "text", "text": "x"}]}]}]}),
        json!({"role": "system", "content": [{"type": "tool_removal", "tool": reference},
            {"type": "tool_addition", "tool": {"type": "tool_definition",
                "definition": {"name": "late", "input_schema": {"type": "object"}}}}]}),
        json!({"role": "assistant", "content": [
            {"type": "text", "text": "b"}], "stop_reason": null}),
        json!({"role": "user", "content": "and now?"}),
    ]
}

/// The items of a Responses request with every type that stands for itself.
fn items() -> Vec<Value> {
    let caller = json!({"type": "program", "caller_id": "p1"});
    let tool = json!({"type": "function", "name": "far", "parameters": {}, "defer_loading": true});
    vec![
        json!({"type": "additional_tools", "role": "developer", "tools": [tool]}),
        json!({"type": "compaction_summary", "encrypted_content": "gAAA"}),
        json!({"type": "compaction", "encrypted_content": "gAAB"}),
        json!({"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "go"}, {"type": "input_image", "image_url": "u"},
            {"type": "input_file", "file_id": "f"}, {"type": "input_audio", "data": "aGk="}]}),
        json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAC"}),
        json!({"type": "web_search_call", "id": "w1", "status": "completed"}),
        json!({"type": "file_search_call", "id": "w2", "queries": []}),
        json!({"type": "code_interpreter_call", "id": "w3", "code": "1"}),
        json!({"type": "image_generation_call", "id": "w4", "result": "aGk="}),
        json!({"type": "mcp_list_tools", "id": "w5", "server_label": "s", "tools": []}),
        json!({"type": "mcp_approval_request", "id": "w6", "name": "n", "arguments": "{}"}),
        json!({"type": "mcp_approval_response", "approval_request_id": "w6", "approve": true}),
        json!({"type": "mcp_call", "id": "w7", "name": "n", "arguments": "{}"}),
        json!({"type": "tool_search_call", "call_id": "c1", "execution": "client"}),
        json!({"type": "tool_search_output", "call_id": "c1", "tools": [tool]}),
        json!({"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "c2", "output": "a"}),
        json!({"type": "custom_tool_call", "call_id": "c3", "name": "g", "input": "i"}),
        json!({"type": "custom_tool_call_output", "call_id": "c3", "output": "a"}),
        json!({"type": "local_shell_call", "call_id": "c4", "action": {"type": "exec"}}),
        json!({"type": "local_shell_call_output", "id": "c4", "output": "a"}),
        json!({"type": "shell_call", "call_id": "c5", "action": {"commands": ["ls"]}}),
        json!({"type": "shell_call_output", "call_id": "c5", "output": [{"stdout": "a"}]}),
        json!({"type": "apply_patch_call", "call_id": "c6", "operation": {"type": "x"}}),
        json!({"type": "apply_patch_call_output", "call_id": "c6", "status": "completed"}),
        json!({"type": "computer_call", "call_id": "c7", "action": {"type": "click"}}),
        json!({"type": "computer_call_output", "call_id": "c7", "output":
            {"type": "computer_screenshot", "image_url": "u"}}),
        json!({"type": "item_of_next_year", "call_id": "c8", "value": [1]}),
        json!({"type": "program", "id": "w8", "call_id": "p1", "code": "x", "fingerprint": "f"}),
        json!({"type": "function_call", "call_id": "c9", "name": "f", "arguments": "{}",
            "caller": caller}),
        json!({"type": "function_call_output", "call_id": "c9", "output": "a",
            "caller": caller}),
        json!({"type": "program_output", "id": "w9", "call_id": "p1", "result": "7"}),
        json!({"type": "message", "role": "assistant", "phase": "final_answer", "content": [
            {"type": "output_text", "text": "done", "annotations": []}]}),
        json!({"type": "message", "role": "assistant", "content": [
            {"type": "refusal", "refusal": "no"}]}),
        json!({"type": "message", "role": "user", "content": [
            {"type": "text", "text": "and now?"}]}),
    ]
}

/// The messages of a Chat Completions request with every type of part and call.
fn chat() -> Vec<Value> {
    vec![
        json!({"role": "user", "content": [{"type": "text", "text": "go"},
            {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
            {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
            {"type": "file", "file": {"file_id": "f"}},
            {"type": "part_of_next_year", "value": 7.50}]}),
        json!({"role": "assistant", "content": null, "tool_calls": [
            {"type": "function", "id": "c1", "function": {"name": "f", "arguments": "{}"}},
            {"type": "custom", "id": "c2", "custom": {"name": "g", "input": "i"}}]}),
        json!({"role": "tool", "tool_call_id": "c1", "content": "a"}),
        json!({"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "b"}]}),
        json!({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
        json!({"role": "user", "content": "and now?"}),
    ]
}

/// Types that a request of the test cannot have: signed reasoning needs a provider that signed it,
/// and some steer the request.
const ABSENT: [&str; 4] = [
    "thinking",
    "redacted_thinking",
    "compaction_trigger",
    "item_reference",
];

#[test]
fn requests_have_every_type_that_we_know() {
    let all = json!([messages(), items(), chat()]).to_string();
    for (type_name, _) in [MESSAGES_BLOCKS, RESPONSES_ITEMS, CHAT_PARTS].concat() {
        let is_there = all.contains(&format!("\"type\":\"{type_name}\""));
        assert!(is_there || ABSENT.contains(&type_name), "{type_name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_type_passes_byte_for_byte() {
    let bodies = [
        (
            Dialect::Messages,
            json!({"model": "m", "max_tokens": 9, "messages": messages(),
            "tools": [{"name": "read", "input_schema": {"type": "object"}}]}),
        ),
        (
            Dialect::Responses,
            json!({"model": "m", "store": false, "input": items()}),
        ),
        (Dialect::Chat, json!({"model": "m", "messages": chat()})),
    ];
    for preset in PRESETS.iter().map(|preset| preset.name) {
        let source = ReplySource::with(|_| ScriptedReply::text("read"));
        let upstream = Upstream::start(UpstreamOptions::new(source)).await.unwrap();
        let mut config = config(&upstream.url());
        preset.clone_into(&mut config.preset);
        let (_running, base) = proxy(config).await;
        for (dialect, body) in &bodies {
            let body = body.to_string().replace("\":", "\" :  ");
            let got = post(&base, path(*dialect), &HEADERS, body.clone()).await;
            assert_eq!(got.status, 200, "{preset}: {}", got.text());
            let sent = upstream.requests().pop().unwrap();
            let sent = without_our_tools(*dialect, &String::from_utf8_lossy(&sent.body));
            assert_eq!(sent, body, "{preset}");
        }
        assert_eq!(upstream.violations(), Vec::<String>::new(), "{preset}");
    }
}
