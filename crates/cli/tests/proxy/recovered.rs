//! A session whose model has a smaller window than expected: what survives the recovery.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::script::{ScriptedCall, ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{
    ReceivedRequest, ReplySource, RequestOutcome, Upstream, UpstreamOptions,
};

use crate::retained::{DECISION, answered, asks_for_summary, reply, send};
use crate::run::Served;
use crate::talk::{TASK, add_round, begun, log};

const PRESETS: [&str; 2] = ["steady", "refs"];
/// Share of what was said so far that the window still takes when it shrinks, in percent.
const SHRINKS_TO: u64 = 60;

/// A session with a large system prompt, in which each round has two outputs of so many lines.
#[derive(Clone, Copy)]
struct ShrinkingSession {
    dialect: Dialect,
    preset: &'static str,
    rounds: usize,
    lines: usize,
    /// The round from which on the window is smaller.
    shrinks_at: usize,
}

/// The window of the model, once it shrank.
#[derive(Default)]
struct ShrunkWindow {
    first: Option<u64>,
    limit: Option<u64>,
}

impl ShrinkingSession {
    fn first_body(self) -> Value {
        let mut body = begun(self.dialect, true);
        let system = "be careful with the importer. ".repeat(2_400);
        match self.dialect {
            Dialect::Chat => body["messages"][0]["content"] = json!(system),
            Dialect::Responses => body["instructions"] = json!(system),
            Dialect::Messages => {
                body["system"] = json!(system);
                body["max_tokens"] = json!(32_000);
            }
        }
        body
    }

    /// Goes through the session; gives the upstream and the limit that it had in the end.
    async fn run(self) -> (Upstream, u64) {
        let window = Arc::new(Mutex::new(ShrunkWindow::default()));
        let (shrunk, mark) = (Arc::clone(&window), format!("call_{}_0", self.shrinks_at));
        let last = format!("call_{}_0", self.rounds);
        let answers = move |received: &ReceivedRequest| {
            let text = String::from_utf8_lossy(&received.body);
            if asks_for_summary(received) {
                // It writes down what it sees.
                let known = if text.contains(DECISION) {
                    DECISION
                } else {
                    "nothing"
                };
                return ScriptedReply::text(format!("<summary>\nDecided: {known}\n</summary>"));
            }
            let mut window = shrunk.lock().unwrap();
            let first = *window.first.get_or_insert(received.tokens);
            if text.contains(&mark) {
                let grown = received.tokens.saturating_sub(first);
                window.limit.get_or_insert(first + grown * SHRINKS_TO / 100);
            }
            if let Some(window) = window.limit.filter(|limit| received.tokens > *limit) {
                return ScriptedReply::default().with_fault(ScriptedFault::Overflow { window });
            }
            let can_look = received
                .tools
                .iter()
                .any(|tool| tool == "tool_output_cache_grep");
            let has_looked = text.contains("retry limit at 7") || text.contains("No matches");
            if text.contains(&last) && !has_looked && can_look {
                return ScriptedReply::call(
                    "tool_output_cache_grep",
                    json!({"pattern": "retry limit"}),
                );
            }
            ScriptedReply::text("go on")
        };
        let upstream = Upstream::start(UpstreamOptions::new(ReplySource::with(answers)));
        let upstream = upstream.await.unwrap();
        let (url, preset) = (upstream.url(), self.preset);
        let mut args = vec!["--upstream", &url, "--window", "120000", "--preset", preset];
        if preset == "steady" {
            // So rich that nothing is rewritten before the overflow.
            args.extend(["--set", "ageing.rewrite.economy=20"]);
        }
        let served = Served::start(&args);
        let mut body = self.first_body();
        for number in 1..=self.rounds {
            send(&served, self.dialect, &body).await;
            let mut words = format!("Part {number} looks as expected; I read on.");
            if number == 2 {
                words = format!("{DECISION}\nThe others follow.");
            }
            let output = |name: &str| log(self.lines).replace("worker", &format!("{name}{number}"));
            let outputs = [output("worker"), output("runner")];
            add_round(self.dialect, &mut body, number, &words, &outputs);
        }
        send(&served, self.dialect, &body).await;
        let limit = window.lock().unwrap().limit.unwrap();
        (upstream, limit)
    }
}

/// Lines that can be found by `mark`, and in which nothing is like another.
fn marked_log(mark: &str, lines: usize) -> String {
    let marked = |(at, line): (usize, &str)| format!("{mark}-mark {at} {line}\n");
    log(lines).lines().enumerate().map(marked).collect()
}

/// What the call with this id was answered with, as far as a request shows it.
fn output_of(received: &ReceivedRequest, id: &str) -> Option<String> {
    let messages = received.read_messages();
    let mut outputs = messages.iter().flat_map(trimtab_model::Message::outputs);
    let output = outputs.find(|output| output.call_id == id)?;
    Some(output.text().into_owned())
}

/// The model looks two things up before it answers; the window has room for little else.
#[tokio::test(flavor = "multi_thread")]
async fn first_of_two_lookups_is_still_shown_after_the_second() {
    for dialect in Dialect::ALL {
        // Under the others a summary that comes meanwhile may stand for the first.
        for preset in ["steady"] {
            let answers = move |received: &ReceivedRequest| {
                let text = text_of(received);
                if asks_for_summary(received) {
                    return reply(received);
                }
                let sought = [("alpha", "look_1"), ("omega", "look_2")];
                let next = sought.into_iter().find(|(_, id)| !text.contains(id));
                let Some((mark, id)) = next.filter(|_| text.contains("call_9_0")) else {
                    return ScriptedReply::text("go on");
                };
                let arguments = json!({"pattern": format!("{mark}-mark"), "max": 25});
                let mut call = ScriptedCall::new("tool_output_cache_grep", arguments);
                call.id = Some(id.to_owned());
                ScriptedReply {
                    calls: vec![call],
                    ..ScriptedReply::default()
                }
            };
            let options = UpstreamOptions {
                window: Some(9_000),
                ..UpstreamOptions::new(ReplySource::with(answers))
            };
            let upstream = Upstream::start(options).await.unwrap();
            let (url, context) = (upstream.url(), format!("{dialect} {preset}"));
            let args = ["--upstream", &url, "--window", "9000", "--preset", preset];
            let served = Served::start(&args);
            let mut body = begun(dialect, true);
            for number in 1..=9 {
                send(&served, dialect, &body).await;
                let mark = ["beta", "alpha", "omega"][number % 3];
                let output = marked_log(mark, 120);
                add_round(dialect, &mut body, number, "Next.", &[output]);
            }
            send(&served, dialect, &body).await;
            let requests = answered(&upstream);
            let last = requests.last().unwrap();
            for (mark, id) in [("alpha", "look_1"), ("omega", "look_2")] {
                let shown = output_of(last, id).unwrap_or_default();
                let found = shown.contains(&format!("{mark}-mark 0 "));
                assert!(found, "{context} {id}: {shown:?}\n{}", text_of(last));
            }
        }
    }
}

fn text_of(received: &ReceivedRequest) -> String {
    String::from_utf8_lossy(&received.body).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn decision_survives_an_overflow_in_mid_session() {
    for dialect in Dialect::ALL {
        for preset in PRESETS {
            let session = ShrinkingSession {
                dialect,
                preset,
                rounds: 11,
                lines: 180,
                shrinks_at: 8,
            };
            let (upstream, _) = session.run().await;
            let context = format!("{dialect} {preset}");
            assert!(upstream.violations().is_empty(), "{context}");
            let requests = answered(&upstream);
            let last = text_of(requests.last().unwrap());
            assert!(last.contains(TASK), "{context}: the task is gone");
            assert!(
                last.contains(DECISION),
                "{context}: the decision is gone\n{last}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn window_after_an_overflow_is_near_the_limit() {
    for dialect in Dialect::ALL {
        for preset in PRESETS {
            let session = ShrinkingSession {
                dialect,
                preset,
                rounds: 25,
                lines: 45,
                shrinks_at: 24,
            };
            let (upstream, limit) = session.run().await;
            let requests = upstream.requests();
            let is_overflow = |one: &Arc<ReceivedRequest>| one.outcome == RequestOutcome::Overflow;
            let refused = requests.iter().rposition(is_overflow).unwrap();
            let after = requests[refused + 1..]
                .iter()
                .find(|one| !asks_for_summary(one))
                .unwrap();
            // An error without figures does not say how much is too much.
            let least = if dialect == Dialect::Responses {
                60
            } else {
                65
            };
            assert!(
                after.tokens * 100 >= limit * least,
                "{dialect} {preset}: {} tokens where {limit} fit",
                after.tokens
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn overflow_without_figures_does_not_come_with_every_call() {
    for preset in PRESETS {
        let session = ShrinkingSession {
            dialect: Dialect::Responses,
            preset,
            rounds: 40,
            lines: 60,
            shrinks_at: 16,
        };
        let (upstream, _) = session.run().await;
        let requests = upstream.requests();
        let overflows = requests
            .iter()
            .filter(|one| one.outcome == RequestOutcome::Overflow);
        let overflows = overflows.count();
        // The window is assumed to be a tenth smaller after each of them.
        assert!(
            (1..=5).contains(&overflows),
            "{preset}: {overflows} overflows"
        );
    }
}
