//! Long sessions with large outputs under every preset: no request is refused, and what is no
//! longer in the window is had back by the refs that windows named.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use trimtab_cli::proxy::http::HttpClient;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, ReplySource, Upstream, UpstreamOptions};

use crate::chatted::Chatted;
use crate::long_outputs::{Length, first_words};
use crate::reader::Reader;
use crate::run::{Served, say};
use crate::scripted::{SUMMARY, is_own_call};
use crate::talk::{add_reply, add_round, begun, path};

const PRESETS: [&str; 6] = [
    "steady",
    "refs",
    "checkpoint",
    "turns",
    "archive",
    "retention",
];
/// How long an answer may take: the long form sends bodies of 40 MB to a debug build.
const LONG_PATIENCE: Duration = Duration::from_mins(10);
/// Rounds of the model within a turn of the user.
const ROUNDS_PER_TURN: usize = 5;
/// Rounds in which the model reads before it goes on with its work.
const READS_PER_STEP: usize = 3;
/// The same at the end of a chat; an agent ends a turn of 200 rounds.
const MOST_CHAT_READS: usize = 100;
/// Requests at the end, in which the model only reads.
const MOST_READS: usize = 500;
/// What is read of a text through the proxy: every further request sends the whole history.
const PROXY_READS: usize = 200 << 10;

/// A debug build on a busy machine takes its time, and nothing may pass as it came.
const LIMITS: [&str; 8] = [
    "--set",
    "proxy.limits.plan_ms=600000",
    "--set",
    "proxy.limits.body_bytes=1000000000",
    "--set",
    "proxy.limits.memory_bytes=4000000000",
    "--set",
    "proxy.limits.tenant_memory_bytes=4000000000",
];

/// The presets that are asked for: all, or the one that `TRIMTAB_PRESET` names.
fn presets() -> Vec<&'static str> {
    let wanted = std::env::var("TRIMTAB_PRESET").ok();
    let is_wanted = |preset: &&str| wanted.as_deref().is_none_or(|wanted| wanted == *preset);
    PRESETS.into_iter().filter(is_wanted).collect()
}

/// The model behind the provider.
#[derive(Default)]
struct Model {
    reader: Reader,
    /// How many rounds it has read without going on.
    reads: usize,
    /// What it reads from the workspace of a chat.
    files: usize,
    next_file: usize,
    /// How many of them it has read in this turn.
    in_turn: usize,
    /// How often it was asked.
    requests: usize,
}

impl Model {
    fn shared(outputs: &[String], most: usize, files: usize) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            reader: Reader::new(outputs, most),
            files,
            ..Self::default()
        }))
    }

    fn reply(&mut self, received: &ReceivedRequest) -> ScriptedReply {
        if is_own_call(received) {
            return ScriptedReply::text(SUMMARY);
        }
        self.requests += 1;
        self.reader.look(received);
        let is_offered = received
            .tools
            .iter()
            .any(|tool| tool == "tool_output_cache");
        if is_offered
            && self.reads < self.most_reads()
            && let Some(pages) = self.reader.next_pages()
        {
            self.reads += 1;
            return pages;
        }
        self.reads = 0;
        if self.next_file == self.files || self.in_turn == ROUNDS_PER_TURN {
            self.in_turn = 0;
            return ScriptedReply::text("go on");
        }
        let file = file_name(self.next_file);
        self.next_file += 1;
        self.reader.sent = self.next_file;
        self.in_turn += 1;
        ScriptedReply::call("read_file", json!({ "path": file }))
    }

    /// In how many rounds it may read before it goes on: many once a chat has nothing else to do.
    fn most_reads(&self) -> usize {
        if self.files > 0 && self.next_file == self.files {
            MOST_CHAT_READS
        } else {
            READS_PER_STEP
        }
    }
}

fn file_name(number: usize) -> String {
    format!("{number:04}.log")
}

/// A strict provider of so many tokens with this model.
async fn provider(model: &Arc<Mutex<Model>>, window: u64) -> Upstream {
    let model = Arc::clone(model);
    let reply = move |received: &ReceivedRequest| model.lock().unwrap().reply(received);
    let options = UpstreamOptions {
        window: Some(window),
        keep_bodies: false,
        ..UpstreamOptions::new(ReplySource::with(reply))
    };
    Upstream::start(options).await.unwrap()
}

/// A request body that grows at its end, and whose beginning is not written again.
struct GrowingBody {
    dialect: Dialect,
    head: String,
    entries: String,
    tail: String,
}

impl GrowingBody {
    fn begun(dialect: Dialect) -> Self {
        let mut body = begun(dialect, true);
        let list = list_of(dialect);
        let first = body[list].take();
        body[list] = json!("@entries@");
        let text = body.to_string();
        let (head, tail) = text.split_once("\"@entries@\"").unwrap();
        let mut growing = Self {
            dialect,
            head: format!("{head}["),
            entries: String::new(),
            tail: format!("]{tail}"),
        };
        growing.append(&first);
        growing
    }

    fn append(&mut self, entries: &Value) {
        for entry in entries.as_array().unwrap() {
            if !self.entries.is_empty() {
                self.entries.push(',');
            }
            self.entries.push_str(&entry.to_string());
        }
    }

    /// Adds what `add` adds to a body without messages.
    fn add(&mut self, add: impl Fn(&mut Value)) {
        let list = list_of(self.dialect);
        let mut scratch = json!({});
        scratch[list] = json!([]);
        add(&mut scratch);
        self.append(&scratch[list]);
    }

    /// Sends it, and wants an answer.
    async fn send(&self, served: &Served, client: &HttpClient) -> String {
        let headers = [
            ("content-type", "application/json"),
            ("anthropic-version", "2023-06-01"),
            ("x-api-key", "k"),
        ];
        let url = format!("{}{}", served.url, path(self.dialect));
        let body = [&*self.head, &self.entries, &self.tail].concat();
        let sent = client.send(Method::POST, &url, &headers, body.into(), LONG_PATIENCE);
        let answer = sent.await.unwrap();
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status.is_success() {
            String::new()
        } else {
            format!("{}: {said}", answer.status)
        }
    }
}

fn list_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Responses => "input",
        Dialect::Chat | Dialect::Messages => "messages",
    }
}

/// What is stored under a ref, whole.
async fn stored(served: &Served, client: &HttpClient, id: &str) -> String {
    let url = format!("{}/v1/retrieve/{id}", served.url);
    let headers = [("x-api-key", "k")];
    let sent = client.send(Method::GET, &url, &headers, Vec::new(), LONG_PATIENCE);
    let found: Value = serde_json::from_slice(&sent.await.unwrap().body).unwrap();
    found["original_content"].as_str().unwrap().to_owned()
}

/// The outputs that are neither in the window nor among the texts that were read.
fn lost(outputs: &[String], window: &str, texts: &[&str]) -> Vec<usize> {
    let is_in = |text: &str, number: usize, output: &str| {
        text.contains(&first_words(number)) && text.contains(output)
    };
    let lost = outputs.iter().enumerate().filter(|(number, output)| {
        // The end of the last line is not told by lines.
        let output = output.strip_suffix('\n').unwrap_or(output);
        !is_in(window, *number, output) && !texts.iter().any(|text| is_in(text, *number, output))
    });
    lost.map(|(number, _)| number).collect()
}

async fn proxied(preset: &str, dialect: Dialect, length: Length) {
    let outputs = length.outputs();
    let model = Model::shared(&outputs, PROXY_READS, 0);
    let upstream = provider(&model, length.window).await;
    let (url, window) = (upstream.url(), length.window.to_string());
    let fixed = ["--upstream", &url, "--preset", preset, "--window", &window];
    let served = Served::start(&[&fixed, &LIMITS[..]].concat());
    let client = HttpClient::default();
    let mut body = GrowingBody::begun(dialect);
    let told = format!("{preset} {dialect}");
    for (number, output) in outputs.iter().enumerate() {
        let output = [output.clone()];
        body.add(|body| add_round(dialect, body, number, "the next one", &output));
        if number % ROUNDS_PER_TURN == ROUNDS_PER_TURN - 1 {
            body.add(|body| add_reply(dialect, body, "these are read", "go on"));
        }
        model.lock().unwrap().reader.sent = number + 1;
        let refused = body.send(&served, &client).await;
        assert_eq!(refused, "", "{told}: round {number}");
        let broken = upstream.violations();
        assert!(broken.is_empty(), "{told}: round {number}: {broken:?}");
        upstream.clear_requests();
    }
    for at in 0..MOST_READS {
        if !model.lock().unwrap().reader.has_more() {
            break;
        }
        body.add(|body| add_reply(dialect, body, "this is read", &format!("and further {at}")));
        let refused = body.send(&served, &client).await;
        assert_eq!(refused, "", "{told}: reads {at}");
    }
    let mut whole = Vec::new();
    let reader = std::mem::take(&mut model.lock().unwrap().reader);
    assert_eq!(reader.troubles, [""; 0], "{told}");
    for (id, book) in &reader.books {
        let text = stored(&served, &client, id).await;
        let is_same = text.starts_with(&book.text);
        assert!(is_same, "{told}: pages of {id} differ from what is stored");
        // Of long texts only the beginning was read page by page: a model would go on, and find
        // the refs in the rest.
        let further = reader.refs_behind(book, &text);
        whole.push(text);
        for id in further {
            whole.push(stored(&served, &client, &id).await);
        }
    }
    let texts: Vec<&str> = whole.iter().map(String::as_str).collect();
    let lost = lost(&outputs, &reader.window, &texts);
    assert!(lost.is_empty(), "{told}: {lost:?} are lost");
    assert!(!texts.is_empty(), "{told}: nothing was removed");
    say(&format!(
        "{told}: {} refs, {} requests",
        texts.len(),
        model.lock().unwrap().requests
    ));
}

#[test]
fn proxy_loses_nothing_in_a_long_session_under_every_preset() {
    let length = Length::wanted();
    in_every_dialect(|preset, dialect| {
        let runtime = Runtime::new().unwrap();
        runtime.block_on(proxied(preset, dialect, length));
    });
}

fn chatted(preset: &str, dialect: Dialect, length: Length) {
    let outputs = length.outputs();
    let model = Model::shared(&outputs, usize::MAX, outputs.len());
    let chatted = Chatted::in_front_of(provider(&model, length.window));
    for (number, output) in outputs.iter().enumerate() {
        chatted.file(&file_name(number), output);
    }
    let window = length.window.to_string();
    let turns = outputs.len() / ROUNDS_PER_TURN + length.reading_turns;
    let args = ["--preset", preset, "--window", &window];
    let told = chatted.chat_in(dialect, &args, &"go on\n".repeat(turns));
    let name = format!("{preset} {dialect} in chat");
    let tail: String = told.stderr.chars().rev().take(2_000).collect();
    let tail: String = tail.chars().rev().collect();
    assert_eq!(told.code, 0, "{name}: {tail}");
    let model = model.lock().unwrap();
    assert_eq!(model.next_file, outputs.len(), "{name}: {tail}");
    assert!(!model.reader.has_more(), "{name}: too few turns");
    assert_eq!(model.reader.troubles, [""; 0], "{name}");
    let texts: Vec<&str> = model
        .reader
        .books
        .values()
        .map(|book| &*book.text)
        .collect();
    let lost = lost(&outputs, &model.reader.window, &texts);
    assert!(lost.is_empty(), "{name}: {lost:?} are lost");
    assert!(!texts.is_empty(), "{name}: nothing was removed");
    // A turn that ends with an error of ours loses nothing, and the next one goes on.
    let errors = told.stderr.lines().filter(|line| line.contains("error: "));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(errors, [""; 0], "{name}");
    say(&format!(
        "{name}: {} refs, {} requests",
        texts.len(),
        model.requests
    ));
}

#[test]
fn chat_loses_nothing_in_a_long_session_under_every_preset() {
    let length = Length::wanted();
    in_every_dialect(|preset, dialect| chatted(preset, dialect, length));
}

/// Runs a session under every preset in every dialect. A session that fails does not keep the
/// others from running.
fn in_every_dialect(session: impl Fn(&'static str, Dialect) + Sync) {
    let mut failed = Vec::new();
    for preset in presets() {
        for dialect in Dialect::ALL {
            let ran = std::thread::scope(|scope| scope.spawn(|| session(preset, dialect)).join());
            if ran.is_err() {
                failed.push(format!("{preset} {dialect}"));
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}
