//! What the proxy asks a model for by itself: how often, and what it tells the summariser.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use trimtab_model::{Dialect, Message};
use trimtab_testkit::script::{ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::{
    ReceivedRequest, ReplySource, RequestOutcome, Upstream, UpstreamOptions,
};

use crate::retained::{answered, send};
use crate::run::{Served, user_file};
use crate::talk::{TASK, add_round, begun, log};

/// True for what the proxy asks on its own.
pub(crate) fn is_own(received: &ReceivedRequest) -> bool {
    let last = &received.last;
    last.contains("Summary instructions:") || last.contains("Summarise this tool output")
}

pub(crate) fn reply(received: &ReceivedRequest) -> ScriptedReply {
    if is_own(received) {
        return ScriptedReply::text("logs were read, nothing was found");
    }
    ScriptedReply::text("go on")
}

/// The same, but no summary is ever answered.
fn fails(received: &ReceivedRequest) -> ScriptedReply {
    if is_own(received) {
        return ScriptedReply::done().with_fault(ScriptedFault::Status {
            code: 500,
            retry_after: None,
        });
    }
    ScriptedReply::text("go on")
}

struct Session {
    upstream: Upstream,
    served: Served,
    body: Value,
    rounds: usize,
}

/// How long background work may take on a machine that does many other things.
const PATIENCE: Duration = Duration::from_mins(2);

impl Session {
    /// A session of so many rounds, each with the output that `output` gives. Requests wait for
    /// summaries.
    async fn run(
        args: &[&str],
        reply: fn(&ReceivedRequest) -> ScriptedReply,
        rounds: usize,
        output: impl Fn(usize) -> String,
    ) -> Self {
        Self::run_in("wait", args, reply, rounds, output).await
    }

    /// The same with summaries in this mode.
    async fn run_in(
        mode: &str,
        args: &[&str],
        reply: fn(&ReceivedRequest) -> ScriptedReply,
        rounds: usize,
        output: impl Fn(usize) -> String,
    ) -> Self {
        let options = UpstreamOptions::new(ReplySource::with(reply));
        let upstream = Upstream::start(options).await.unwrap();
        let url = upstream.url();
        let folder = tempfile::tempdir().unwrap();
        let settings = format!("[proxy]\ncompaction = {mode:?}\n");
        std::fs::write(user_file(folder.path()), settings).unwrap();
        let served = Served::start_in(folder, &[&["--upstream", &url], args].concat());
        let mut session = Self {
            upstream,
            served,
            body: begun(Dialect::Chat, true),
            rounds: 0,
        };
        for _ in 0..rounds {
            session.round(&output).await;
        }
        session
    }

    async fn round(&mut self, output: impl Fn(usize) -> String) {
        let outputs = [output(self.rounds)];
        let body = &mut self.body;
        add_round(Dialect::Chat, body, self.rounds, "the next one", &outputs);
        self.rounds += 1;
        send(&self.served, Dialect::Chat, &self.body).await;
    }

    /// How many outputs the last window shows as archived, and how many own calls there were.
    fn archived(&self) -> (usize, usize) {
        let archived = self.last_window().matches("[Tool output summary]").count();
        (archived, self.own().len())
    }

    fn own(&self) -> Vec<Arc<ReceivedRequest>> {
        let requests = self.upstream.requests().clone();
        requests.into_iter().filter(|one| is_own(one)).collect()
    }

    fn last_window(&self) -> String {
        let requests = self.upstream.requests().clone();
        let is_main =
            |one: &Arc<ReceivedRequest>| one.outcome == RequestOutcome::Answered && !is_own(one);
        let last = requests.into_iter().rfind(is_main).unwrap();
        String::from_utf8_lossy(&last.body).into_owned()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_asks_no_model_about_outputs_that_would_not_become_shorter() {
    let tiny = |number| format!("exit status {number}");
    let session = Session::run(&["--preset", "archive"], reply, 30, tiny).await;
    assert_eq!(session.own().len(), 0);
    assert!(session.last_window().contains("exit status 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn archive_asks_once_for_each_output_that_it_archives() {
    let long = |number| log(60).replace("worker", &format!("worker{number}"));
    for mode in ["wait", "background"] {
        let mut session = Session::run_in(mode, &["--preset", "archive"], reply, 30, long).await;
        let began = Instant::now();
        let (archived, own) = loop {
            let (archived, own) = session.archived();
            // The newest may have been asked for since the window was sent.
            let holds = archived >= 10 && own <= archived + 4;
            if holds || mode == "wait" || began.elapsed() > PATIENCE {
                break (archived, own);
            }
            // A client takes its time between two calls. Background work is done meanwhile.
            tokio::time::sleep(Duration::from_millis(250)).await;
            session.round(long).await;
        };
        let told = format!("{mode}: {archived} archived, {own} own calls");
        assert!(archived >= 10 && own <= archived + 4, "{told}");
        let window = session.last_window();
        assert!(
            window.contains("Tool: read_log"),
            "{mode}: the tool is named"
        );
        assert!(!window.contains("Tool: unknown"), "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failing_summariser_is_not_asked_about_output_after_output() {
    let long = |number| log(60).replace("worker", &format!("worker{number}"));
    let session = Session::run(&["--preset", "archive"], fails, 30, long).await;
    let own = session.own().len();
    assert!((1..=3).contains(&own), "{own} own calls");
    let window = session.last_window();
    assert!(
        window.contains("Output excerpt:"),
        "excerpts stand for them"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn summariser_is_told_the_task_and_reads_outputs_beyond_1800_characters() {
    // Two thirds from the head and a third from the tail would leave it out.
    let needle = |number| format!("needle-{number:04}");
    // Longer outputs are cut first if the request would not fit.
    let output = |number: usize| match number % 2 {
        0 => format!("{}{}\n{}", log(40), needle(number), log(40)),
        _ => log(320),
    };
    for (preset, reads_all) in [("checkpoint", true), ("refs", true), ("archive", false)] {
        let mut args = vec!["--preset", preset, "--window", "22000"];
        if preset == "checkpoint" {
            // A conversation that fills the window leaves less room for each output.
            args.extend(["--set", "compaction.when=['log > 10000']"]);
        }
        let session = Session::run(&args, reply, 30, output).await;
        let own = session.own();
        let summaries = own.iter().filter(|one| one.last.contains("<summary>"));
        let first = summaries.into_iter().next();
        let Some(first) = first else {
            panic!("{preset}: no summary was asked for");
        };
        let asked = String::from_utf8_lossy(&first.body).into_owned();
        assert!(asked.contains(TASK), "{preset}: the task");
        assert!(asked.contains("be brief"), "{preset}: the system part");
        let read = (0..30).filter(|at| asked.contains(&needle(*at))).count();
        assert_eq!(read > 0, reads_all, "{preset}: {read} outputs are whole");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refs_keeps_nine_large_outputs_within_their_budget() {
    let output = |number: usize| {
        let text = log(1_300).replace("worker", &format!("worker-{number}"));
        text.get(..60_000).unwrap_or(&text).to_owned()
    };
    let args = ["--preset", "refs", "--window", "200000"];
    let session = Session::run(&args, reply, 9, output).await;
    let last = answered(&session.upstream).pop().unwrap();
    let messages = last.read_messages();
    let outputs: Vec<String> = messages
        .iter()
        .flat_map(Message::outputs)
        .map(|output| output.text().into_owned())
        .collect();
    let bytes: usize = outputs.iter().map(String::len).sum();
    assert!(bytes / 4 <= 50_000, "{} tokens of outputs", bytes / 4);
    let gone: Vec<bool> = outputs
        .iter()
        .map(|text| text.starts_with("[tool output trimmed; ref="))
        .collect();
    let first_kept = gone.iter().position(|gone| !gone).unwrap();
    assert!(
        first_kept > 0 && !gone[first_kept..].contains(&true),
        "{gone:?}"
    );
    drop(session.served);
}

#[tokio::test(flavor = "multi_thread")]
async fn diagnostic_line_of_retention_is_in_the_log() {
    let long = |number| log(200).replace("worker", &format!("worker{number}"));
    let session = Session::run(&["--preset", "retention"], reply, 20, long).await;
    let line = session.served.wait_for("Note: Compacted");
    assert!(line.contains("exceeded budget (40,000)"), "{line}");
}
