//! A client that goes back in its conversation, again and again.
//!
//! Equal history gives equal bytes, unless a switch point lies between: a plan that was carried
//! out after the history was first sent, and that its branch did not have then. Such a plan shows
//! in the answer: the conversation goes on under another session name, or the window was
//! recovered from an overflow. Here neither has a reason to happen for a history that was sent
//! before, so every difference is a fault.

use std::collections::HashMap;

use serde_json::Value;
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReplySource, Upstream, UpstreamOptions};

use crate::run::Served;
use crate::talk::{log, path, post, with_call, with_output};

/// How many windows the conversation has when nobody goes back.
const WINDOWS: usize = 60;
/// How often the client goes back.
const REWINDS: usize = 10;

struct Conversation {
    served: Option<Served>,
    args: Vec<String>,
    upstream: Upstream,
    dialect: Dialect,
    /// What was sent for each history.
    sent: HashMap<String, Vec<u8>>,
    asked: usize,
    repeated: usize,
    different: Vec<String>,
}

impl Conversation {
    async fn start(dialect: Dialect, preset: &str) -> Self {
        let options = UpstreamOptions::new(ReplySource::with(|_| ScriptedReply::text("I see.")));
        let upstream = Upstream::start(options).await.unwrap();
        let url = upstream.url();
        let args = ["--upstream", &url, "--preset", preset, "--window", "60000"];
        Self {
            served: Some(Served::start(&args)),
            args: args.map(str::to_owned).to_vec(),
            upstream,
            dialect,
            sent: HashMap::new(),
            asked: 0,
            repeated: 0,
            different: Vec::new(),
        }
    }

    /// Ends the proxy where it is, and starts it again on the same store.
    fn restart(&mut self) {
        let folder = self.served.take().unwrap().killed();
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        self.served = Some(Served::start_in(folder, &args));
    }

    /// Sends a history, and notes down whether what the model got is what it got before.
    async fn send(&mut self, history: &Value, name: &str) {
        self.asked += 1;
        let number = self.asked.to_string();
        let answer = post(
            &self.served.as_ref().unwrap().url,
            path(self.dialect),
            history,
            &[("x-number", &number)],
        )
        .await;
        assert!(answer.status.is_success(), "{name}: {answer:?}");
        assert_eq!(answer.header("x-trimtab-reason"), "", "{name} is unmanaged");
        let requests = self.upstream.requests();
        let received = requests
            .iter()
            .rev()
            .find(|received| received.header("x-number") == Some(&number));
        let body = received.unwrap().body.to_vec();
        match self.sent.get(&history.to_string()) {
            Some(before) => {
                self.repeated += 1;
                if *before != body {
                    let session = answer.header("x-trimtab-session");
                    self.different.push(format!("{name} in {session}"));
                }
            }
            None => {
                self.sent.insert(history.to_string(), body);
            }
        }
    }
}

/// The history before window `number`, on a way of its own from `parts` on.
fn history(dialect: Dialect, number: usize, (parts, way): (usize, usize)) -> Value {
    let mut body = with_output(dialect, 400);
    for at in 0..number {
        let way = if at < parts { 0 } else { way };
        let lines = if at.is_multiple_of(4) { 700 } else { 60 };
        let output = format!("way {way}, output {at}\n{}", log(lines + at));
        with_call(dialect, &mut body, &format!("call_{way}_{at}"), &output);
    }
    body
}

async fn go_back(dialect: Dialect, preset: &str) {
    let mut talk = Conversation::start(dialect, preset).await;
    for number in 0..WINDOWS {
        talk.send(
            &history(dialect, number, (WINDOWS, 0)),
            &format!("window {number}"),
        )
        .await;
    }
    for rewind in 1..=REWINDS {
        let to = rewind * 17 % WINDOWS;
        if rewind == REWINDS / 2 {
            talk.restart();
        }
        // The same way again for some windows, then a way of its own, then back once more.
        for number in to..WINDOWS.min(to + 4) {
            talk.send(
                &history(dialect, number, (WINDOWS, 0)),
                &format!("rewind {rewind}, again {number}"),
            )
            .await;
        }
        for number in to + 1..to + 4 {
            talk.send(
                &history(dialect, number, (to, rewind)),
                &format!("rewind {rewind}, own {number}"),
            )
            .await;
        }
        for number in to + 1..to + 4 {
            talk.send(
                &history(dialect, number, (to, rewind)),
                &format!("rewind {rewind}, own again {number}"),
            )
            .await;
        }
        let before = rewind * 17 / 2 % WINDOWS;
        talk.send(
            &history(dialect, before, (WINDOWS, 0)),
            &format!("rewind {rewind}, once {before}"),
        )
        .await;
    }
    let (different, repeated) = (talk.different.len(), talk.repeated);
    assert!(repeated >= REWINDS * 6, "{repeated}");
    assert!(
        talk.different.is_empty(),
        "{dialect} {preset}: {different} of {repeated} windows differ: {:#?}",
        talk.different
    );
    let violations = talk.upstream.violations();
    assert!(violations.is_empty(), "{violations:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn steady_sends_equal_bytes_for_equal_history() {
    go_back(Dialect::Messages, "steady").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refs_sends_equal_bytes_for_equal_history() {
    go_back(Dialect::Chat, "refs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn equal_history_gives_equal_bytes_in_all_dialects() {
    if !crate::is_long_run() {
        return;
    }
    for dialect in Dialect::ALL {
        for preset in ["steady", "refs"] {
            go_back(dialect, preset).await;
        }
    }
}
