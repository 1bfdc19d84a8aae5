//! Proxies with sessions in them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::mpsc::channel;
use std::time::Instant;

use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use trimtab_cli::proxy::http::{HttpAnswer, HttpClient};
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::{PATIENCE, trimtab};

/// `trimtab demo` after it has played its session: 38 calls that compact on the way.
pub(crate) struct PlayedDemo {
    child: Child,
    pub(crate) url: String,
    /// What it printed about the session.
    pub(crate) report: Value,
    _folder: TempDir,
}

impl PlayedDemo {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = trimtab(
            folder.path(),
            &["demo", "--json", "--listen", "127.0.0.1:0"],
        )
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (sender, told) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                drop(sender.send(line));
            }
        });
        let until = Instant::now() + PATIENCE;
        let url = loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = told.recv_timeout(left).unwrap();
            if let Some((_, rest)) = line.split_once("still serving on ") {
                break rest.split(' ').next().unwrap().to_owned();
            }
        };
        let mut report = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut report).unwrap();
        Self {
            child,
            url,
            report: serde_json::from_str(&report).unwrap(),
            _folder: folder,
        }
    }

    /// The name of its session.
    pub(crate) async fn session(&self) -> String {
        let listed = get(&self.url, "sessions").await;
        listed["sessions"][0]["id"].as_str().unwrap().to_owned()
    }

    /// The address of the page of its session.
    pub(crate) async fn session_page(&self) -> String {
        session_page(&self.url, &self.session().await)
    }
}

impl Drop for PlayedDemo {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The address of the page of a session.
pub(crate) fn session_page(url: &str, session: &str) -> String {
    let session = session.replace('%', "%25").replace('/', "%2F");
    format!("{url}/dashboard#/session?id={session}")
}

/// An upstream that answers everything with a word.
pub(crate) async fn plain_upstream() -> Upstream {
    let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("done")));
    Upstream::start(options).await.unwrap()
}

/// Data of the dashboard.
pub(crate) async fn get(url: &str, name: &str) -> Value {
    let url = format!("{url}/dashboard/api/{name}");
    let answer = ask(Method::GET, &url, &[], Vec::new()).await;
    assert!(answer.status.is_success(), "{url}: {}", answer.status);
    serde_json::from_slice(&answer.body).unwrap()
}

/// Any request.
pub(crate) async fn ask(
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> HttpAnswer {
    let client = HttpClient::default();
    client
        .send(method, url, headers, body, PATIENCE)
        .await
        .unwrap()
}

/// Sends a conversation of Chat Completions.
pub(crate) async fn chat(url: &str, messages: &[Value], headers: &[(&str, &str)]) -> HttpAnswer {
    let mut all = vec![
        ("content-type", "application/json"),
        ("authorization", "Bearer k"),
    ];
    all.extend(headers);
    let body = json!({"model": "gpt-4o", "messages": messages}).to_string();
    let url = format!("{url}/v1/chat/completions");
    ask(Method::POST, &url, &all, body.into_bytes()).await
}
