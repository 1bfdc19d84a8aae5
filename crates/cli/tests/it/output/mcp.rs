//! The MCP server from a client's point of view.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use trimtab::engine::view::tools;
use trimtab::retrieval::NOT_FOUND;

use crate::run::Home;

struct Client {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    next: u64,
}

impl Client {
    /// Starts the server for session `s` and shakes hands.
    fn start(home: &Home) -> Self {
        Self::start_with(home, &["mcp", "--session", "s"])
    }

    fn start_with(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command();
        let command = command.args(args);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut client = Self {
            stdin: child.stdin.take().unwrap(),
            stdout: BufReader::new(child.stdout.take().unwrap()),
            child,
            next: 0,
        };
        let hello = client.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        assert_eq!(hello["result"]["serverInfo"]["name"], "trimtab");
        assert!(hello["result"]["capabilities"]["tools"].is_object());
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        client
    }

    fn send(&mut self, line: &str) {
        writeln!(self.stdin, "{line}").unwrap();
    }

    fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let id = self.next;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string());
        let answer = self.receive();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    /// Calls a tool: the text of its answer, and whether it is an error.
    fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{answer}"));
        (text.to_owned(), result["isError"] == true)
    }

    /// Ends standard input; gives the exit code and what was said on standard error.
    fn end(self) -> (Option<i32>, String) {
        drop(self.stdin);
        let output = self.child.wait_with_output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
}

#[test]
fn both_tools_are_listed_and_work() {
    let home = Home::new();
    let id = home.put(b"alpha\nbeta\ngamma");
    let mut client = Client::start(&home);
    let listed = client.ask("tools/list", &json!({}));
    let expected: Vec<Value> = tools::all()
        .iter()
        .map(tools::ToolDefinition::in_mcp)
        .collect();
    assert_eq!(listed["result"]["tools"], json!(expected));
    let read = client.call(tools::READ, &json!({"ref_id": id, "offset": 1}));
    assert_eq!(read, ("    2  beta\n    3  gamma".to_owned(), false));
    let found = client.call(
        tools::GREP,
        &json!({"pattern": "a$", "regex": true, "max": 2}),
    );
    let text = format!(
        "ref:{id}\n    1  alpha\n    2  beta\n[trimtab: matches 1 to 2 are shown, there are more; \
         next: tool_output_cache_grep({{\"max\":2,\"pattern\":\"a$\",\"regex\":true,\"skip\":2}})]"
    );
    assert_eq!(found, (text, false));
    // The name of an argument that is almost right must not search everything.
    let (text, is_error) = client.call(tools::GREP, &json!({"pattern": "a", "ref": id}));
    assert!(
        is_error && text.contains("has no argument \"ref\""),
        "{text}"
    );
    assert_eq!(client.end(), (Some(0), String::new()));
}

#[test]
fn mcp_errors_are_answered_and_the_server_continues() {
    let home = Home::new();
    let id = home.put(b"alpha");
    let foreign = home.run_with(&["output", "put", "-qs", "t", "-"], b"theirs");
    let mut client = Client::start(&home);
    for unknown in ["made-up", foreign.stdout.trim_end()] {
        let answer = client.call(tools::READ, &json!({"ref_id": unknown}));
        assert_eq!(answer, (NOT_FOUND.to_owned(), true));
    }
    let (text, is_error) = client.call(tools::READ, &json!({"ref_id": id, "offset": -1}));
    assert_eq!(text, "offset must be a whole number of at least 0, not -1.");
    assert!(is_error);
    let (text, is_error) = client.call(tools::GREP, &json!({"pattern": "(", "regex": true}));
    assert!(
        is_error && text.starts_with("The pattern cannot be used"),
        "{text}"
    );
    let unknown = client.ask("tools/call", &json!({"name": "rm", "arguments": {}}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let unknown = client.ask("tools/paint", &json!({}));
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    // Broken JSON has no id to answer to: it is passed over.
    client.send("{\"jsonrpc\": broken");
    client.send("\u{feff}not even that");
    let read = client.call(tools::READ, &json!({"ref_id": id}));
    assert_eq!(read, ("    1  alpha".to_owned(), false));
    assert_eq!(client.end(), (Some(0), String::new()));
}

#[test]
fn outputs_that_arrive_later_are_seen() {
    let home = Home::new();
    let mut client = Client::start(&home);
    assert!(home.store().exists());
    let id = home.put(b"late");
    let read = client.call(tools::READ, &json!({"ref_id": id}));
    assert_eq!(read, ("    1  late".to_owned(), false));
    assert_eq!(client.end().0, Some(0));
}

#[test]
fn mcp_client_may_disconnect_at_once() {
    let home = Home::new();
    home.check(&["mcp", "--session", "s"], 0, "", "");
}

#[test]
fn mcp_without_a_session_uses_the_newest_session_and_its_tenant() {
    let home = Home::new();
    let put = |session: &str, content: &[u8]| {
        let done = home.run_with(&["output", "put", "-qs", session, "-"], content);
        assert_eq!(done.code, 0, "{}", done.stderr);
        done.stdout.trim_end().to_owned()
    };
    let mut client = Client::start_with(&home, &["mcp"]);
    let (text, is_error) = client.call(tools::GREP, &json!({"pattern": "alpha"}));
    assert_eq!(
        (text.as_str(), is_error),
        ("No outputs are stored yet.", true)
    );

    let other = put("proxy/other/chat/1", b"alpha of somebody else");
    let old = put("proxy/mine/messages/1", b"alpha of an old session");
    let new = put("proxy/mine/messages/2", b"alpha of the newest");
    let (text, _) = client.call(tools::GREP, &json!({"pattern": "alpha"}));
    assert_eq!(text, format!("ref:{new}\n    1  alpha of the newest"));
    let read = client.call(tools::READ, &json!({"ref_id": old}));
    assert_eq!(read, ("    1  alpha of an old session".to_owned(), false));
    let read = client.call(tools::READ, &json!({"ref_id": other}));
    assert_eq!(read, (NOT_FOUND.to_owned(), true));
    assert_eq!(client.end().0, Some(0));
}
