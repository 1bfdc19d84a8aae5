//! The same requests directly and through the proxy: the client sees no difference, whatever fails
//! on either side.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use trimtab_model::{Dialect, Message};
use trimtab_proxy::{ProxyConfig, RunningProxy};
use trimtab_store::{MemoryStore, Store};
use trimtab_testkit::bodies::{JsonStyle, talk};
use trimtab_testkit::script::{ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};
use trimtab_wire::answer::AnswerReader;
use trimtab_wire::sse::StreamEvent;

use crate::fake::{Got, send};
use crate::proxy_with;
use crate::stores::{Failing, Wrong};
use crate::talk::path;

/// How many requests are under way at the same time.
const AT_ONCE: usize = 16;

/// A policy that finds something to do in short conversations.
const POLICY: &str = r#"
    preset = "tiny"
    [policies.tiny]
    preset = "refs"
    [policies.tiny.views]
    default = { shape = "head_lines", max_bytes = 60, max_line_chars = 40 }
    [[models]]
    model = "*"
    window = 100000
"#;

fn settings(upstream: &str) -> ProxyConfig {
    let mut config = ProxyConfig::from_toml(POLICY).expect("the policy is good");
    let base = crate::config(upstream);
    config.upstreams = base.upstreams;
    config.listen = base.listen;
    config.limits = base.limits;
    config
}

/// Proxies in front of `upstream` whose stores go wrong in different ways.
async fn proxies(upstream: &str) -> Vec<(RunningProxy, String)> {
    let good: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let mut proxies = vec![proxy_with(settings(upstream), good).await];
    let wrongs = [
        Wrong::Full(2),
        Wrong::Full(7),
        Wrong::Full(23),
        Wrong::Panics(5),
        Wrong::Panics(31),
        Wrong::ReadOnly,
        Wrong::Late,
        Wrong::Slow(Duration::from_millis(3)),
    ];
    for wrong in wrongs {
        let mut config = settings(upstream);
        if let Wrong::Slow(_) = wrong {
            config.limits.plan_ms = 5;
        }
        proxies.push(proxy_with(config, Arc::new(Failing::new(wrong))).await);
    }
    proxies
}

/// One request, and what goes wrong with its answer.
#[derive(Clone, Debug)]
struct Case {
    number: usize,
    dialect: Dialect,
    body: String,
    encoding: Option<&'static str>,
}

fn packed(case: &Case) -> (Bytes, Option<&'static str>) {
    use std::io::Write;
    match case.encoding {
        Some("gzip") => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(case.body.as_bytes()).unwrap();
            (Bytes::from(encoder.finish().unwrap()), Some("gzip"))
        }
        _ => (Bytes::from(case.body.clone()), None),
    }
}

async fn ask(base: &str, case: &Case) -> Option<Got> {
    let (body, encoding) = packed(case);
    let mut request = http::Request::post(format!("{base}{}", path(case.dialect)))
        .header("content-type", "application/json")
        .header("authorization", "Bearer k")
        .header("x-api-key", "k")
        .header("anthropic-version", "2023-06-01")
        .header("x-case", case.number.to_string());
    if let Some(encoding) = encoding {
        request = request.header("content-encoding", encoding);
    }
    send(request.body(http_body_util::Full::new(body)).unwrap()).await
}

/// What a client makes of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    status: u16,
    broken: bool,
    text: String,
    parts: Vec<String>,
}

impl Made {
    /// True if the upstream could not read the body: it says in which line, and a body that
    /// was edited has other lines.
    fn is_about_json(&self) -> bool {
        self.status == 400 && self.text.contains("is not valid JSON")
    }

    /// The same without what the model thought: in Messages it is asked not to where the thought
    /// of its open round had to go. A stream that is cut after so many events then ends elsewhere.
    fn without_thoughts(mut self) -> Self {
        self.parts.retain(|part| !part.starts_with("thought "));
        if self.broken {
            self.parts.clear();
            self.text.clear();
        }
        self
    }
}

fn made(dialect: Dialect, got: Option<Got>) -> Made {
    let Some(got) = got else {
        // A client cannot be told by a proxy that its connection was reset.
        return Made {
            status: 502,
            broken: false,
            text: String::new(),
            parts: Vec::new(),
        };
    };
    let body = unpacked(&got);
    let (mut text, mut parts) = (String::new(), Vec::new());
    let streamed = got.header("content-type").starts_with("text/event-stream");
    if got.status == 200 && streamed {
        let mut reader = AnswerReader::new(dialect);
        let mut note = |event: StreamEvent<'_>| match event {
            StreamEvent::Text(delta) => text.push_str(&delta.text()),
            StreamEvent::Reasoning(delta) => parts.push(format!("thought {}", delta.text())),
            StreamEvent::Stop(stop) => parts.push(format!("stop {stop}")),
            StreamEvent::Error(error) => parts.push(format!("error {}", error.message)),
            StreamEvent::End => parts.push("end".to_owned()),
            _ => {}
        };
        reader.push(&body, &mut note);
        reader.finish(&mut note);
        let said = reader.into_message();
        let calls = said.iter().flat_map(Message::calls);
        parts.extend(calls.map(|call| format!("call {} {}", call.name, call.arguments)));
    } else if got.status == 200 {
        text = crate::talk::said_or_raw(dialect, &String::from_utf8_lossy(&body));
    } else if got.status != 502 {
        text = String::from_utf8_lossy(&body).into_owned();
    }
    let made = Made {
        status: got.status.as_u16(),
        broken: got.broken,
        text,
        parts,
    };
    // An answer that breaks before it says anything is no answer.
    if made.broken && got.body.is_empty() {
        return self::made(dialect, None);
    }
    made
}

/// The body, whatever its encoding; as it is where that is a lie.
fn unpacked(got: &Got) -> Vec<u8> {
    use std::io::Read;
    let mut bytes = Vec::new();
    let read = match got.header("content-encoding") {
        "gzip" | "x-gzip" => {
            flate2::read::GzDecoder::new(got.body.as_ref()).read_to_end(&mut bytes)
        }
        "deflate" => flate2::read::ZlibDecoder::new(got.body.as_ref()).read_to_end(&mut bytes),
        _ => return got.body.to_vec(),
    };
    if read.is_ok() {
        bytes
    } else {
        got.body.to_vec()
    }
}

/// The fault of a case, and what the model says in it.
fn reply(number: usize, faults: &[ScriptedFault]) -> ScriptedReply {
    let reply = match number % 5 {
        0 => ScriptedReply::text("a short answer"),
        1 => {
            ScriptedReply::text("a longer answer, word by word, so that it comes in several events")
        }
        2 => ScriptedReply::call("read", json!({"path": "a.txt"})),
        3 => ScriptedReply::text("Let me see. ").and_call("read", json!({"path": number})),
        _ => ScriptedReply::text("said after a thought").thinking("hm, let me think"),
    };
    // Every second answer is good.
    match faults.get((number / 2) % faults.len()) {
        Some(fault) if number % 2 == 1 => reply.with_fault(*fault),
        _ => reply,
    }
}

/// Requests, the same in every run.
fn cases() -> impl Iterator<Item = Case> {
    let mut runner = TestRunner::new_with_rng(
        Config::default(),
        proptest::test_runner::TestRng::deterministic_rng(
            proptest::test_runner::RngAlgorithm::ChaCha,
        ),
    );
    let strategy = talk(6);
    (0..).map(move |number: usize| {
        let talk = strategy.new_tree(&mut runner).unwrap().current();
        let dialect = Dialect::ALL[number % 3];
        let stream = !number.is_multiple_of(4);
        // Only the plain spelling is sure to have the field as it is looked for.
        let style = JsonStyle(if stream { number as u64 * 977 } else { 0 });
        let mut body = talk.body(dialect, style);
        if !stream {
            let at = body.find("\"stream\"").unwrap();
            let value = at + body[at..].find("true").unwrap();
            body.replace_range(value..value + 4, "false");
        }
        let encoding = number.is_multiple_of(11).then_some("gzip");
        Case {
            number,
            dialect,
            body,
            encoding,
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_sees_no_difference_with_the_proxy() {
    // Panics are part of this test; their messages are not.
    std::panic::set_hook(Box::new(|info| {
        if !info.to_string().contains("on purpose") {
            eprintln!("{info}");
        }
    }));
    let faults = ScriptedFault::catalogue();
    assert!(faults.len() >= 40, "{}", faults.len());
    let known = faults.clone();
    let source = ReplySource::with(move |received| {
        let number = received
            .header("x-case")
            .and_then(|number| number.parse().ok());
        reply(number.unwrap_or(0), &known)
    });
    let upstream = Upstream::start(UpstreamOptions {
        keep_bodies: false,
        ..UpstreamOptions::new(source)
    })
    .await
    .unwrap();
    let proxies = proxies(&upstream.url()).await;
    let count = if trimtab_testkit::is_long() {
        100_000
    } else {
        5_000
    };
    let mut cases = cases().take(count);
    let mut edited = 0;
    loop {
        let batch: Vec<Case> = cases.by_ref().take(AT_ONCE).collect();
        if batch.is_empty() {
            break;
        }
        let asked = batch.iter().map(|case| {
            let base = proxies[case.number % proxies.len()].1.clone();
            let (direct, case) = (upstream.url(), case.clone());
            tokio::spawn(async move {
                let direct = ask(&direct, &case).await;
                let ours = ask(&base, &case).await;
                let action = ours
                    .as_ref()
                    .map(|got| got.header("x-trimtab-action").to_owned());
                (
                    made(case.dialect, direct),
                    made(case.dialect, ours),
                    action,
                    case,
                )
            })
        });
        for asked in asked.collect::<Vec<_>>() {
            let (mut direct, mut ours, action, case) = asked.await.unwrap();
            let is_edited = action.as_deref() == Some("edited");
            edited += usize::from(is_edited);
            if is_edited && case.dialect == Dialect::Messages {
                direct = direct.without_thoughts();
                ours = ours.without_thoughts();
            }
            let fault = reply(case.number, &faults).fault;
            // What was refused as JSON may be in a part that our window leaves out.
            if !direct.is_about_json() {
                assert_eq!(direct, ours, "{fault:?} {action:?} {case:?}");
            }
        }
    }
    println!(
        "{count} requests, {edited} of them edited, {} kinds of fault",
        faults.len()
    );
    assert!(edited > count / 40, "{edited}");
}
