//! What stays in the window of a long session: the task, and what the model found and decided.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{
    ReceivedRequest, ReplySource, RequestOutcome, Upstream, UpstreamOptions,
};

use crate::run::Served;
use crate::talk::{TASK, add_reply, add_round, begun, log, path, post};

pub(crate) const DECISION: &str =
    "I keep the retry limit at 7, because the queue drains in 40 seconds.";
const REASON: &str = "The cache stays off until the importer is idempotent.";
const FINDING: &str = "importer.toml says shard_count = 11 but there are 12 shards";
const PRESETS: [&str; 6] = [
    "steady",
    "refs",
    "checkpoint",
    "turns",
    "archive",
    "retention",
];

/// True for what the proxy asks on its own.
pub(crate) fn asks_for_summary(received: &ReceivedRequest) -> bool {
    let last = &received.last;
    last.contains("<summary>") || last.contains("Summarise") || last.contains("summary")
}

pub(crate) fn reply(received: &ReceivedRequest) -> ScriptedReply {
    if asks_for_summary(received) {
        return ScriptedReply::text("<retain>none</retain><summary>logs were read</summary>");
    }
    ScriptedReply::text("go on")
}

async fn start(window: Option<u64>) -> Upstream {
    let options = UpstreamOptions {
        window,
        ..UpstreamOptions::new(ReplySource::with(reply))
    };
    Upstream::start(options).await.unwrap()
}

/// The client's own requests that were answered.
pub(crate) fn answered(upstream: &Upstream) -> Vec<Arc<ReceivedRequest>> {
    let requests = upstream.requests().clone();
    let own = |one: &Arc<ReceivedRequest>| {
        one.outcome == RequestOutcome::Answered && !asks_for_summary(one)
    };
    requests.into_iter().filter(own).collect()
}

/// All that a request says, as text.
fn said(received: &ReceivedRequest) -> String {
    let messages = received.read_messages();
    let texts = messages.iter().map(|message| message.text().into_owned());
    texts.collect::<Vec<_>>().join("\n")
}

pub(crate) async fn send(served: &Served, dialect: Dialect, body: &Value) {
    let answer = post(&served.url, path(dialect), body, &[]).await;
    let said = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(answer.status.is_success(), "{dialect}: {said}");
}

fn observation(number: usize) -> String {
    let text = log(80).replace("worker", &format!("worker{number}"));
    format!("Observation:\n{text}end of observation {number}")
}

/// An agent without tool calls, 30 rounds long: its task and its newest observation are in
/// every request, and it fits.
async fn task_stays(preset: &str, dialect: Dialect, upstream_window: Option<u64>) {
    let upstream = start(upstream_window).await;
    let url = upstream.url();
    let args = ["--upstream", &url, "--window", "24000", "--preset", preset];
    let served = Served::start(&args);
    let mut body = begun(dialect, false);
    for number in 0..30_usize {
        send(&served, dialect, &body).await;
        let said_last = answered(&upstream).last().map(|one| said(one)).unwrap();
        assert!(
            said_last.contains(TASK),
            "{preset} {dialect}: call {number} lost the task"
        );
        if let Some(newest) = number.checked_sub(1) {
            let end = format!("end of observation {newest}");
            assert!(
                said_last.contains(&end),
                "{preset} {dialect}: call {number}"
            );
        }
        let words = format!("Thought: part {number} is fine, the next one please");
        add_reply(dialect, &mut body, &words, &observation(number));
    }
    let broken = upstream.violations();
    assert!(broken.is_empty(), "{preset} {dialect}: {broken:?}");
    let most = answered(&upstream).iter().map(|one| one.tokens).max();
    assert!(most < Some(24_000), "{preset} {dialect}: {most:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn task_of_an_agent_without_calls_stays_under_every_preset() {
    for preset in PRESETS {
        task_stays(preset, Dialect::Chat, None).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_of_an_agent_without_calls_stays_in_every_dialect() {
    for dialect in [Dialect::Messages, Dialect::Responses] {
        task_stays("steady", dialect, None).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn task_survives_overflow_recovery() {
    for preset in PRESETS {
        task_stays(preset, Dialect::Chat, Some(14_000)).await;
    }
}

/// A listing with a path on every line, none like another.
fn listing(number: usize, name: &str) -> String {
    let line = |at: usize| {
        format!(
            "src/part_{number}{name}/step_{at}.rs:{at} took {} ms\n",
            at * 31 % 1009
        )
    };
    (0..240).map(line).collect()
}

/// 39 rounds in a window of 36,000 tokens, with a decision and a finding in the second.
async fn long_session(dialect: Dialect, upstream: &Upstream) {
    let url = upstream.url();
    let served = Served::start(&["--upstream", &url, "--window", "36000"]);
    let mut body = begun(dialect, true);
    for number in 1..=39 {
        send(&served, dialect, &body).await;
        let mut outputs = vec![listing(number, "a"), listing(number, "b")];
        let mut words = format!("Part {number} looks as expected; I read on.");
        if number == 2 {
            words = format!("{DECISION}\n{REASON}");
            outputs[0].insert_str(0, &format!("{FINDING}\n"));
        }
        add_round(dialect, &mut body, number, &words, &outputs);
    }
    send(&served, dialect, &body).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn early_decision_and_finding_survive_two_switch_points() {
    for dialect in Dialect::ALL {
        let upstream = start(None).await;
        long_session(dialect, &upstream).await;
        let broken = upstream.violations();
        assert!(broken.is_empty(), "{dialect}: {broken:?}");
        let requests = answered(&upstream);
        let fell = |pair: &&[Arc<ReceivedRequest>]| pair[1].tokens * 4 < pair[0].tokens * 3;
        let switches = requests.windows(2).filter(fell).count();
        assert!(switches >= 2, "{dialect}: {switches} switch points");
        let last = said(requests.last().unwrap());
        assert!(
            last.contains(DECISION),
            "{dialect}: the decision is gone\n{last}"
        );
        assert!(
            last.contains(REASON),
            "{dialect}: the reason is gone\n{last}"
        );
        assert!(last.contains(TASK), "{dialect}");
        assert!(
            last.contains(FINDING),
            "{dialect}: the finding is gone\n{last}"
        );
    }
}

const FAILURE: &str = "error: upload worker stopped with code 9831";

/// A round of Chat Completions with one call.
fn chat_round(body: &mut Value, number: usize, tool: &str, arguments: &Value, output: &str) {
    let id = format!("call_{number}");
    let function = json!({"name": tool, "arguments": arguments.to_string()});
    let call = json!({"id": id, "type": "function", "function": function});
    let messages = body["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
    messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
}

/// A file of functions that raise errors.
fn source(number: usize) -> String {
    let function = |at: usize| {
        format!(
            "def check_part_{number}_{at}(items):\n    if len(items) > {at}:\n        \
             raise ValueError(items)\n    return {at}\n\n"
        )
    };
    (0..12).map(function).collect()
}

/// The tests fail early and pass later, with the same arguments. The window is small and was
/// rewritten several times.
#[tokio::test(flavor = "multi_thread")]
async fn error_of_an_early_run_stays_after_later_runs_passed() {
    let upstream = start(None).await;
    let url = upstream.url();
    let served = Served::start(&["--upstream", &url, "--window", "6000"]);
    let mut body = begun(Dialect::Chat, true);
    for number in 0..26 {
        send(&served, Dialect::Chat, &body).await;
        let (tool, arguments, output) = match number {
            3 => {
                let run = format!("{}{FAILURE}\n{}", source(90), source(91));
                ("run_tests", json!({}), run)
            }
            _ if number % 7 == 6 => (
                "run_tests",
                json!({}),
                "test check_part ... ok\n".repeat(30),
            ),
            _ => {
                let path = json!({"path": format!("src/part_{number}.py")});
                ("read_file", path, source(number))
            }
        };
        chat_round(&mut body, number, tool, &arguments, &output);
    }
    send(&served, Dialect::Chat, &body).await;
    let broken = upstream.violations();
    assert!(broken.is_empty(), "{broken:?}");
    let last = said(answered(&upstream).last().unwrap());
    let rewritten_again = last.contains("messages that were left out before");
    assert!(
        rewritten_again,
        "the window was rewritten only once\n{last}"
    );
    assert!(last.contains(FAILURE), "the error is gone\n{last}");
}

/// How often the proxy asked a model on its own in a session of so many rounds.
async fn own_calls(
    preset: &str,
    rounds: usize,
    output: impl Fn(usize) -> String,
) -> (usize, String) {
    let upstream = start(None).await;
    let url = upstream.url();
    let args = ["--upstream", &url, "--window", "50000", "--preset", preset];
    let served = Served::start(&args);
    let mut body = begun(Dialect::Chat, true);
    for number in 1..=rounds {
        send(&served, Dialect::Chat, &body).await;
        let words = format!("Part {number} looks as expected.");
        add_round(Dialect::Chat, &mut body, number, &words, &[output(number)]);
    }
    send(&served, Dialect::Chat, &body).await;
    let broken = upstream.violations();
    assert!(broken.is_empty(), "{preset}: {broken:?}");
    let most = answered(&upstream).iter().map(|one| one.tokens).max();
    assert!(most < Some(50_000), "{preset}: {most:?}");
    let own = upstream
        .requests()
        .iter()
        .filter(|one| asks_for_summary(one))
        .count();
    (own, said(answered(&upstream).last().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn large_outputs_go_before_a_short_finding() {
    let output = |number: usize| match number {
        1 => FINDING.to_owned(),
        _ => log(1_400).replace("worker", &format!("worker_{number}")),
    };
    let (_, last) = own_calls("refs", 10, output).await;
    assert!(last.contains(FINDING), "{last}");
    assert!(last.contains("worker_10"), "the newest output is gone");
    assert!(!last.contains("worker_2 "), "the oldest large output stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_model_is_asked_about_what_stays_as_it_is() {
    let tiny = |number: usize| format!("ok {number}");
    assert_eq!(own_calls("archive", 30, tiny).await.0, 0);
    let long = |number: usize| log(60).replace("worker", &format!("worker_{number}"));
    let (own, _) = own_calls("archive", 30, long).await;
    // Background work may come late on a busy machine: none of them may have been asked for.
    assert!(own <= 20, "{own} of 20 outputs");
    let (own, _) = own_calls("refs", 33, |number| long(number).repeat(4)).await;
    assert!(own <= 4, "{own} summaries in 33 calls");
}
