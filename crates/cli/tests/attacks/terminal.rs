//! Foreign text on a terminal: names, errors and answers that try to control it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::run::{kill, texts, trimtab};
use crate::terminal_device::InTerminal;

/// Copies to the clipboard, hides a link, clears the screen, colours, turns text around, hides,
/// beeps, deletes, overwrites and begins a line of its own.
const HOSTILE: &str = "evil\u{1b}]52;c;ZXZpbA==\u{7}\u{1b}]8;;file:x\u{1b}\\\u{1b}[2J\u{1b}[8m\
     \u{9b}31m\u{90}q\u{202e}\u{2066}\u{200b}\u{7f}\u{feff}\u{2028}\u{e0041}\rOVERWRITE\nFORGED";

/// What of it must never be shown as it is.
const FORBIDDEN: [&str; 16] = [
    "\u{1b}]",
    "\u{1b}\\",
    "\u{1b}[2J",
    "\u{1b}[8m",
    "\u{7}",
    "\u{9b}",
    "\u{90}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{7f}",
    "\u{feff}",
    "\u{2028}",
    "\u{e0041}",
    "\rOVERWRITE",
    "\nFORGED",
];

#[track_caller]
fn assert_harmless(what: &str, shown: &str) {
    for forbidden in FORBIDDEN {
        assert!(
            !shown.contains(forbidden),
            "{what} shows {forbidden:?} as it is:\n{}",
            shown.escape_debug()
        );
    }
}

/// A folder with files whose names and contents are hostile.
struct Hostile {
    folder: TempDir,
}

impl Hostile {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder };
        fs::write(this.transcript(), transcript().to_string()).unwrap();
        let other = this.folder.path().join("other.json");
        fs::write(other, transcript().to_string()).unwrap();
        fs::write(this.folder.path().join(format!("no {HOSTILE}")), "{]").unwrap();
        this
    }

    /// A conversation in a file with a hostile name.
    fn transcript(&self) -> PathBuf {
        self.folder.path().join(format!("{HOSTILE}.json"))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = trimtab(self.folder.path(), args);
        command
            .env_remove("NO_COLOR")
            .env("TRIMTAB_STORE", self.folder.path().join("store"));
        command
    }

    /// What the command shows in a terminal, with and without colours.
    #[track_caller]
    fn shows(&self, args: &[&str]) -> String {
        let (coloured, _) = InTerminal::start(self.command(args)).end();
        assert_harmless(&format!("{args:?}"), &coloured);
        let mut command = self.command(args);
        command.env("NO_COLOR", "1");
        let (plain, _) = InTerminal::start(command).end();
        assert_harmless(&format!("{args:?}"), &plain);
        // What is piped into something else may end on a terminal too.
        let piped = self.command(args).stdin(Stdio::null()).output().unwrap();
        let (out, err) = texts(&piped);
        assert_harmless(&format!("{args:?} | cat"), &err);
        if args.contains(&"--json") {
            for line in out.lines() {
                let _: Value = serde_json::from_str(line).unwrap();
            }
        }
        plain
    }
}

/// A conversation in which everything that has a name is called something hostile.
fn transcript() -> Value {
    let call = |id: &str| {
        json!({"role": "assistant", "content": HOSTILE, "tool_calls": [
            {"id": id, "type": "function", "function": {"name": HOSTILE, "arguments": "{}"}}]})
    };
    let output = |id: &str| json!({"role": "tool", "tool_call_id": id, "content": format!("{HOSTILE} {}", "x".repeat(4000))});
    json!({"model": HOSTILE, "id": HOSTILE, "messages": [
        {"role": "system", "content": HOSTILE},
        {"role": "user", "content": HOSTILE},
        call("c1"), output("c1"), call("c2"), output("c2"),
        {"role": "tool", "tool_call_id": HOSTILE, "content": HOSTILE},
        {"role": "user", "content": "go on"},
    ]})
}

#[test]
fn transcript_verbs_escape_control_characters() {
    let place = Hostile::new();
    let file = place.transcript();
    let file = file.to_str().unwrap();
    let bad = format!("no {HOSTILE}");
    let shown = place.shows(&["inspect", file]);
    assert!(shown.contains("evil\\u{1b}]52;c;"), "{shown}");
    for args in [
        &["inspect", "--json", file][..],
        &["inspect", file, "other.json"],
        &["inspect", "--all", file, "other.json"],
        &["inspect", "--model", HOSTILE, file],
        &["inspect", &bad],
        &["inspect", HOSTILE],
        &["compact", file, "-o", "compacted.json"],
        &["compact", file, "-o", "compacted.json", "--json"],
        &["compact", "--model", HOSTILE, file, "-o", "compacted.json"],
        &["compact", &bad, "-o", "compacted.json"],
        &["replay", file, "--window", "40k"],
        &["replay", file, "--window", "40k", "--json"],
        &["replay", "--all", file, "other.json", "--window", "40k"],
        &["replay", &bad, "--window", "40k"],
        &["replay", file, "--preset", HOSTILE],
    ] {
        place.shows(args);
    }
}

#[test]
fn transcript_output_is_escaped_on_a_terminal_and_exact_in_a_pipe() {
    let place = Hostile::new();
    let file = place.transcript();
    let args = ["compact", file.to_str().unwrap(), "-o", "-"];
    let (shown, _) = InTerminal::start(place.command(&args)).end();
    assert_harmless("compact -o -", &shown);
    let piped = place.command(&args).output().unwrap();
    let written: Value = serde_json::from_slice(&piped.stdout).unwrap();
    let first = &written["messages"][0]["content"];
    assert_eq!(first, HOSTILE);
}

#[test]
fn store_verbs_escape_control_characters() {
    let place = Hostile::new();
    fs::write(
        place.folder.path().join("output"),
        format!("{HOSTILE}\nlast\n"),
    )
    .unwrap();
    let put = [
        "output",
        "put",
        "--session",
        "s",
        "--call",
        HOSTILE,
        "--tool",
        HOSTILE,
        "output",
    ];
    let stored = place.command(&put).output().unwrap();
    let (id, error) = texts(&stored);
    let id = id.trim().rsplit(':').next().unwrap();
    assert!(stored.status.success(), "{error}");
    let read = ["output", "read", "--session", "s", id];
    for args in [
        &put[..],
        &["output", "list"],
        &["output", "list", "--json"],
        &["output", "sessions"],
        &read,
        &["output", "read", "--session", "s", id, "--json"],
        &["output", "read", "--session", "s", HOSTILE],
        &["output", "read", "--session", HOSTILE, id],
        &["output", "grep", "--session", "s", "--all", "evil"],
        &[
            "output",
            "grep",
            "--session",
            "s",
            "--all",
            "evil",
            "--json",
        ],
        &["output", "grep", "--session", "s", "--all", HOSTILE],
        &["output", "grep", "--session", "s", "--all", "--regex", "("],
        &["output", "list", "--store", HOSTILE],
        &["output", "gc", "--older-than", "0s", "--dry-run"],
        &["chat", "--list"],
        &["chat", "--resume", HOSTILE, "--print", "x"],
    ] {
        place.shows(args);
    }
    let piped = place.command(&read).output().unwrap();
    let line = HOSTILE.lines().next().unwrap();
    assert!(texts(&piped).0.contains(line), "{piped:?}");
    let raw = [&read[..], &["--raw"]].concat();
    let raw = place.command(&raw).output().unwrap();
    assert_eq!(texts(&raw).0, format!("{HOSTILE}\nlast\n"));
}

#[test]
fn settings_and_model_verbs_escape_control_characters() {
    let place = Hostile::new();
    let folder = place.folder.path();
    // Names of models have no line ends.
    let name = &HOSTILE.replace(['\r', '\n'], "");
    let registry = json!({ (name): {
        "litellm_provider": name, "mode": "chat", "max_input_tokens": 1000,
        "max_output_tokens": 100, "max_tokens": 100,
    }});
    fs::write(folder.join("registry.json"), registry.to_string()).unwrap();
    let setting = format!("[{}]\nx = 1\n", json!(HOSTILE));
    fs::write(folder.join("bad.toml"), setting).unwrap();
    fs::write(folder.join("worse.toml"), format!("x = {HOSTILE}")).unwrap();
    let set = format!("model={HOSTILE}");
    for args in [
        &["models", "update", "registry.json"][..],
        &["models", "list"],
        &["models", "list", "--json"],
        &["models", "show", HOSTILE],
        &["models", "show", name],
        &["models", "show", name, "--json"],
        &["models", "show", "nothing like it"],
        &["models", "update", HOSTILE],
        &["config", "show", "--set", &set],
        &["config", "show", "--json", "--set", &set],
        &["config", "show", HOSTILE],
        &["config", "show", "--config", "bad.toml"],
        &["config", "show", "--config", "worse.toml"],
        &["config", "show", "--set", HOSTILE],
        &["config", "init", HOSTILE],
        &["doctor", "--offline", "--config", "bad.toml"],
        &["serve", "--preset", HOSTILE],
        &["serve", "--upstream", HOSTILE],
        &["wrap", HOSTILE],
        &[HOSTILE],
        &["inspect", "--window", HOSTILE],
        &["chat", "--model", HOSTILE, "--print", "x"],
        &[
            "chat",
            "--model",
            "x",
            "--base-url",
            HOSTILE,
            "--print",
            "x",
        ],
        &[
            "chat",
            "--model",
            "scripted:no",
            "--workspace",
            HOSTILE,
            "--print",
            "x",
        ],
    ] {
        place.shows(args);
    }
}

/// A server that answers everything with a hostile error.
fn hostile_server(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || {
                let mut request = vec![0; 65536];
                let _ = stream.read(&mut request);
                let body = json!({"error": {"message": HOSTILE, "type": HOSTILE, "code": HOSTILE}});
                // Raw in the body: not every server writes JSON.
                let body = format!("{body}{HOSTILE}");
                let length = body.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\n\
                     connection: close\r\nx-request-id: a\u{9b}b\r\n\r\n"
                );
                let _ = stream.write_all(head.as_bytes());
                let _ = stream.write_all(body.as_bytes());
            });
        }
    });
    url
}

#[test]
fn upstream_errors_are_escaped() {
    let place = Hostile::new();
    for status in ["400 Bad Request", "401 Unauthorized", "200 OK"] {
        let url = hostile_server(status);
        for dialect in ["chat", "responses", "messages"] {
            let args = [
                "chat",
                "--model",
                "gpt-4o",
                "--base-url",
                &url,
                "--dialect",
                dialect,
            ];
            let shown = place.shows(&[&args[..], &["--print", "hello"]].concat());
            assert!(shown.contains("error:"), "{shown}");
        }
        place.shows(&["doctor", "--upstream", &url]);
        let file = place.transcript();
        let base = [
            "compact",
            "--model",
            "gpt-4o",
            file.to_str().unwrap(),
            "-o",
            "x.json",
        ];
        let mut compact = place.command(&base);
        compact
            .env("OPENAI_BASE_URL", &url)
            .env("OPENAI_API_KEY", "k");
        let (shown, _) = InTerminal::start(compact).end();
        assert_harmless("compact", &shown);
    }
}

#[test]
fn serve_log_escapes_control_characters() {
    let place = Hostile::new();
    let url = hostile_server("400 Bad Request");
    let args = ["serve", "--listen", "127.0.0.1:0", "--upstream", &url];
    let serve = InTerminal::start(place.command(&args));
    let shown = serve.wait_for("OPENAI_BASE_URL=");
    let (_, address) = shown.split_once("listening on http://").unwrap();
    let address = address.split(' ').next().unwrap().to_owned();
    let body = json!({"model": HOSTILE, "messages": [{"role": "user", "content": HOSTILE}]});
    let body = body.to_string();
    for path in ["/v1/chat/completions", "/v1/%1b]52;c;x%07/\u{9b}x?\u{202e}"] {
        let mut stream = std::net::TcpStream::connect(&address).unwrap();
        let request = format!(
            "POST {path} HTTP/1.1\r\nhost: {address}\r\nx-trimtab-session: a\u{9b}b\r\n\
             content-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    serve.wait_for("passed (endpoint)");
    kill(serve.process_id(), "TERM");
    let (shown, _) = serve.end();
    assert_harmless("serve", &shown);
}

#[test]
fn chat_escapes_control_characters() {
    let place = Hostile::new();
    let text = format!("{HOSTILE}\n");
    let script = json!([
        {"reasoning": text, "text": text, "calls": [
            {"name": "shell", "arguments": {"command": format!("echo {HOSTILE}")}},
            {"name": HOSTILE, "arguments": {"path": HOSTILE}},
            {"name": "read_file", "arguments": {"path": HOSTILE}},
            {"name": "write_file", "arguments": {"path": format!(".git/{HOSTILE}"), "content": "x"}}]},
        {"text": "the first\n\n\nthe second\n\nall is done\n"},
    ]);
    let folder = place.folder.path();
    fs::write(folder.join("script.json"), script.to_string()).unwrap();
    let model = "scripted:script.json";
    let mut chat = InTerminal::start(place.command(&["chat", "--model", model]));
    chat.wait_for("/help lists");
    chat.type_in("go on\r");
    chat.wait_for("shell wants to run: echo");
    let shown = chat.wait_for("allow it?");
    assert!(shown.contains("| FORGED"), "{}", shown.escape_debug());
    chat.type_in("y\r");
    chat.wait_for("write_file wants to write 1 bytes to");
    chat.wait_for("allow it? [y]es, [n]o: ");
    chat.type_in("n\r");
    chat.wait_for("all is done");
    chat.type_in("/output\r");
    chat.wait_for("REF");
    chat.type_in("/output nothing\r");
    chat.wait_for("no output");
    chat.type_in("/quit\r");
    let (shown, code) = chat.end();
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("the first\r\n\r\n\r\nthe second\r\n\r\nall is done\r\n"));
    // An answer of several lines may have lines that begin with anything.
    assert_harmless("chat", &shown.replace("\nFORGED", ""));
    let print = [
        "chat",
        "--model",
        model,
        "--print",
        "go on",
        "--allow-shell",
    ];
    let (shown, _) = InTerminal::start(place.command(&print)).end();
    assert_harmless("chat --print", &shown.replace("\nFORGED", ""));
    let piped = place
        .command(&[&print[..], &["--json"]].concat())
        .output()
        .unwrap();
    let (lines, _) = texts(&piped);
    assert_harmless("chat --print --json", &lines);
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap());
    let said: Vec<Value> = lines
        .filter(|line: &Value| line["type"] == "reasoning")
        .collect();
    assert!(
        said.iter()
            .any(|line| line["text"].as_str().unwrap().contains('\u{202e}'))
    );
}
