//! A conversation through `trimtab serve`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use trimtab_model::Dialect;
use trimtab_testkit::script::ScriptedReply;
use trimtab_testkit::upstream::{ReceivedRequest, Upstream};

use crate::run::{PATIENCE, Served};
use crate::scripted::{Answers, all_text, lines, main_calls, outputs, own_calls, ref_in};
use crate::talk::{add_reply, add_round, begun, log, path, post};

/// A client that talks to a provider through the proxy, and sends its whole history each time.
pub(crate) struct Proxied {
    pub(crate) served: Served,
    pub(crate) upstream: Upstream,
    pub(crate) answers: Answers,
    pub(crate) dialect: Dialect,
    pub(crate) body: Value,
    rounds: usize,
}

impl Proxied {
    /// The proxy with these arguments, in front of a provider.
    pub(crate) async fn start(dialect: Dialect, args: &[&str]) -> Self {
        Self::in_front_of(dialect, args, None).await
    }

    /// The same in front of a provider that takes so many tokens.
    pub(crate) async fn in_front_of(dialect: Dialect, args: &[&str], window: Option<u64>) -> Self {
        let answers = Answers::default();
        let upstream = answers.upstream(window).await;
        let url = upstream.url();
        // Also what is too small to be worth the work.
        let fixed = ["--upstream", &url, "--set", "proxy.limits.session_bytes=0"];
        let served = Served::start(&[&fixed, args].concat());
        Self {
            served,
            upstream,
            answers,
            dialect,
            body: begun(dialect, true),
            rounds: 0,
        }
    }

    /// Adds a round of the model with these outputs.
    pub(crate) fn round(&mut self, outputs: &[&str]) {
        self.rounds += 1;
        let outputs: Vec<String> = outputs.iter().map(|&text| text.to_owned()).collect();
        let words = format!("WORDS-{}", self.rounds);
        add_round(self.dialect, &mut self.body, self.rounds, &words, &outputs);
    }

    /// Adds an answer of the model and what the user says to it.
    pub(crate) fn turn(&mut self, words: &str, user: &str) {
        add_reply(self.dialect, &mut self.body, words, user);
    }

    /// Sends the history; the status of the answer, and what it says.
    pub(crate) async fn try_send(&self) -> (u16, String) {
        let answer = post(&self.served.url, path(self.dialect), &self.body, &[]).await;
        let said = String::from_utf8_lossy(&answer.body).into_owned();
        (answer.status.as_u16(), said)
    }

    /// Sends the history, which must be answered; gives what reached the provider.
    pub(crate) async fn send(&self) -> Arc<ReceivedRequest> {
        let (status, said) = self.try_send().await;
        assert_eq!(status, 200, "{}: {said}", self.dialect);
        let broken = self.upstream.violations();
        assert!(broken.is_empty(), "{}: {broken:?}", self.dialect);
        main_calls(&self.upstream).last().unwrap().clone()
    }

    /// Sends the history again and again until what reaches the provider is as it should be:
    /// usage is taken in and summaries are written behind the answers.
    pub(crate) async fn send_until(
        &self,
        holds: impl Fn(&ReceivedRequest) -> bool,
    ) -> Arc<ReceivedRequest> {
        let until = Instant::now() + PATIENCE / 4;
        loop {
            // The proxy learns from an answer shortly after its last byte.
            tokio::time::sleep(Duration::from_millis(50)).await;
            let seen = self.send().await;
            if holds(&seen) {
                return seen;
            }
            let shown = lines(&seen);
            assert!(Instant::now() < until, "{}: {shown:#?}", self.dialect);
        }
    }

    /// Sends it until it contains `text`.
    pub(crate) async fn send_until_says(&self, text: &str) -> Arc<ReceivedRequest> {
        self.send_until(|seen| all_text(seen).contains(text)).await
    }

    /// Sends it some times, so that what is done behind an answer would have been done.
    pub(crate) async fn send_some_times(&self) -> Arc<ReceivedRequest> {
        for _ in 0..4 {
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.send().await;
        }
        self.send().await
    }

    /// Adds a round and sends.
    pub(crate) async fn send_round(&mut self, outputs: &[&str]) -> Arc<ReceivedRequest> {
        self.round(outputs);
        self.send().await
    }

    /// The model calls one of our tools. Returns the answer of the tool.
    pub(crate) async fn read_back(&mut self, tool: &str, arguments: Value) -> String {
        self.answers.say(ScriptedReply::call(tool, arguments));
        let seen = self.send().await;
        outputs(&seen).pop().unwrap()
    }

    /// Sends an output that is cut, and reads one of its lines by the ref that it shows.
    pub(crate) async fn expect_cut_output_is_given_back(&mut self) {
        let seen = self.send_round(&[&log(4_000)]).await;
        let id = ref_in(&outputs(&seen)[0]).unwrap();
        let asks = json!({"ref_id": id, "offset": 2_000, "limit": 1});
        let given = self.read_back("tool_output_cache", asks).await;
        let line = log(4_000).lines().nth(2_000).unwrap().to_owned();
        assert!(given.contains(&line), "{given}");
    }

    /// What the summariser was asked.
    pub(crate) fn own_calls(&self) -> Vec<Arc<ReceivedRequest>> {
        own_calls(&self.upstream)
    }
}
