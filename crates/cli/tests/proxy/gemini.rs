//! Gemini CLI and its logs. It uses its own API, so this file contains a small model for it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::installed::{command_in, path_with_client, run_client, wants, write};
use crate::resume::{ROUNDS, SUMMARY, log_in};
use crate::run::{finished, say, texts};

/// A model that has commands run, and keeps what it is sent.
#[derive(Clone, Default)]
struct GeminiModel {
    bodies: Arc<Mutex<Vec<String>>>,
}

impl GeminiModel {
    /// Starts it; gives its address.
    fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let model = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let model = model.clone();
                std::thread::spawn(move || model.serve(&stream));
            }
        });
        url
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        for line in reader.by_ref().lines().map_while(Result::ok) {
            let line = line.to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = String::from_utf8(body).ok()?;
        let answer = format!("data: {}\r\n\r\n", self.answer(body));
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close";
        let length = answer.len();
        write!(
            &mut &*stream,
            "{head}\r\ncontent-length: {length}\r\n\r\n{answer}"
        )
        .ok()
    }

    fn answer(&self, body: String) -> Value {
        let mut bodies = self.bodies.lock().unwrap();
        bodies.push(body);
        let round = bodies.len();
        let part = if round <= ROUNDS {
            let command = format!("seq {round}0000 {round}1900");
            json!({"functionCall": {"name": "run_shell_command", "args": {"command": command}}})
        } else {
            json!({"text": "every command was run"})
        };
        json!({
            "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
            "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105},
        })
    }

    fn last(&self) -> String {
        self.bodies.lock().unwrap().last().unwrap().clone()
    }
}

fn gemini(folder: &Path, url: &str, args: &[&str]) {
    let mut command = command_in(folder, "gemini");
    let options = [
        "--skip-trust",
        "-m",
        "gemini-2.5-pro",
        "--approval-mode",
        "yolo",
    ];
    command.args(options).args(args);
    command
        .env("PATH", path_with_client("@google/gemini-cli", "gemini"))
        .env("GEMINI_API_KEY", "k")
        .env("GOOGLE_GEMINI_BASE_URL", url);
    let output = run_client(command);
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stdout}\n{stderr}");
}

#[test]
fn gemini_cli_loads_a_compacted_log() {
    if !wants("gemini") {
        return;
    }
    let model = GeminiModel::default();
    let url = model.start();
    let home = tempfile::tempdir().unwrap();
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": false}, "general": {"disableAutoUpdate": true}});
    write(
        &home.path().join(".gemini/settings.json"),
        &settings.to_string(),
    );
    gemini(home.path(), &url, &["-p", "run the commands"]);
    let log = log_in(&home.path().join(".gemini/tmp"), ".jsonl");
    let log = log.display().to_string();
    let done = finished(
        home.path(),
        &["compact", &log, "-o", &log, "--force", "--json"],
    );
    let report: Value = serde_json::from_str(&texts(&done).0).unwrap();
    let id = report["id"].as_str().unwrap();
    gemini(home.path(), &url, &["--resume", id, "-p", "and now?"]);
    let body = model.last();
    assert!(
        body.contains(SUMMARY) && body.contains("and now?"),
        "{body}"
    );
    let sent: Value = serde_json::from_str(&body).unwrap();
    let messages = sent["contents"].as_array().unwrap();
    let parts = messages
        .iter()
        .flat_map(|one| one["parts"].as_array().unwrap());
    let (mut calls, mut outputs) = (0, 0);
    for part in parts {
        calls += usize::from(part.get("functionCall").is_some());
        outputs += usize::from(part.get("functionResponse").is_some());
    }
    // It sends an output twice itself: as it stands in the answer, and on a line of its own.
    assert_eq!(2 * calls, outputs, "{body}");
    assert!(0 < calls && calls < ROUNDS, "{body}");
    say(&format!(
        "gemini: {calls} of {ROUNDS} rounds and the summary reached the model"
    ));
}
