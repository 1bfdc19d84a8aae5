//! The log of `trimtab serve`, on a terminal and in a pipe.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;
use trimtab_model::Dialect;

use crate::model::upstream;
use crate::run::{Served, kill, trimtab};
use crate::talk::{path, post, with_output};
use crate::terminal_device::InTerminal;

/// `text` without escape sequences.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' {
            // As far as the letter that ends it.
            letters.by_ref().find(char::is_ascii_alphabetic);
        } else {
            plain.push(letter);
        }
    }
    plain
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_log_has_one_short_line_per_request() {
    let upstream = upstream(None).await;
    let folder = tempfile::tempdir().unwrap();
    let url = upstream.url();
    let args = ["serve", "--listen", "127.0.0.1:0", "--upstream", &url];
    let mut command = trimtab(folder.path(), &args);
    command.env_remove("NO_COLOR");
    let terminal = InTerminal::start(command);
    terminal.wait_for("OPENAI_BASE_URL");
    let shown = plain(&terminal.shown());
    let address = shown.split("listening on ").nth(1).unwrap();
    let address = address.split_whitespace().next().unwrap().to_owned();
    for dialect in Dialect::ALL {
        let body = with_output(dialect, 4_000);
        let answer = post(&address, path(dialect), &body, &[]).await;
        assert!(answer.status.is_success());
    }
    terminal.wait_for("claude-sonnet");
    kill(terminal.process_id(), "TERM");
    let (shown, code) = terminal.end();
    assert_eq!(code, 0);
    let is_request = |line: &&str| line.contains(" -> ");
    let lines: Vec<&str> = shown.lines().filter(is_request).collect();
    assert_eq!(lines.len(), 3, "{shown}");
    for line in lines {
        assert!(line.contains('\u{1b}'), "there is no colour: {line}");
        let line = plain(line);
        assert!(line.chars().count() <= 100, "{line}");
        let time = line.get(..9).unwrap();
        assert!(
            time.ends_with('Z') && time.matches(':').count() == 2,
            "{line}"
        );
        assert!(line.contains("tokens saved ("), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn piped_log_is_json_and_has_the_request_id_of_the_client() {
    let upstream = upstream(None).await;
    let folder = tempfile::tempdir().unwrap();
    let url = upstream.url();
    let args = ["serve", "--listen", "127.0.0.1:0", "--upstream", &url];
    let mut child = trimtab(folder.path(), &args)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let mut log: Vec<String> = lines.by_ref().take(1).collect();
    let address = log[0].split("listening on ").nth(1).unwrap();
    let address = address.split(' ').next().unwrap().to_owned();
    let body = with_output(Dialect::Chat, 4_000);
    let answer = post(&address, path(Dialect::Chat), &body, &[]).await;
    kill(child.id(), "HUP");
    log.extend(lines.by_ref().take_while(|line| !line.contains("reloaded")));
    kill(child.id(), "TERM");
    log.extend(lines);
    assert!(child.wait().unwrap().success());
    let log: Vec<Value> = log
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    let (requests, messages): (Vec<&Value>, Vec<&Value>) =
        log.iter().partition(|line| line["request_id"].is_string());
    let [request] = requests.as_slice() else {
        panic!("one line for one request: {log:?}");
    };
    let id = answer.header("x-trimtab-request-id");
    assert_eq!(request["request_id"], id);
    assert_eq!(request["action"], "edited");
    assert_eq!(request["status"], 200);
    assert!(request["tokens_before"].as_u64() > request["tokens_after"].as_u64());
    for message in messages {
        assert_eq!(message["level"], "info", "{message}");
        assert!(message["time_ms"].as_u64() > Some(1_700_000_000_000));
        assert!(message["message"].is_string(), "{message}");
    }
}

#[test]
fn unusable_store_is_an_error_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "no folder").unwrap();
    let store = file.join("store").display().to_string();
    let served = Served::start(&["--upstream", "http://127.0.0.1:9", "--store", &store]);
    let line = served.wait_for("the store cannot be used");
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(line["level"], "error", "{line}");
}
