//! Finds the faults of a run, and separates those that the client has without the proxy.

use std::sync::Arc;

use serde_json::{Value, json};
use trimtab_engine::view::tools::READ;
use trimtab_testkit::upstream::{ReceivedRequest, RequestOutcome};

use crate::launch::Ended;
use crate::model::{Knowledge, Progress, asks_for_summary, session_shell};
use crate::scenario::{LAST_WORDS, Scenario, TASK_MARK};
use crate::shell::{Shell, offered_tools};

/// What stands beside refs in a window.
const REF_MARKS: [&str; 2] = ["ref_id", "[Stored outputs"];

/// The end of the name of a failure: the model no longer knew something.
const LOST: &str = " lost";

/// Something that went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunFailure {
    /// What it is, the same in every run of the client.
    pub(crate) kind: String,
    /// Where and how.
    pub(crate) detail: String,
}

/// What came of one run.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunReport {
    pub(crate) failures: Vec<RunFailure>,
    /// Requests of the session that were answered.
    pub(crate) calls: usize,
    /// Tokens of the first of them.
    pub(crate) first_tokens: u64,
    /// Tokens of all prompts of the session, and how many of them were read from the cache.
    pub(crate) prompt_tokens: u64,
    pub(crate) cached_tokens: u64,
    /// Requests that were too long.
    pub(crate) overflows: usize,
    /// How often what was sent before was not the front of what was sent next.
    pub(crate) switches: usize,
    pub(crate) needle: Knowledge,
    pub(crate) decision: Knowledge,
    /// True if the client lost the needle before it sent it.
    pub(crate) is_spoiled: bool,
}

/// How a proxied run compares with the direct one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// Nothing went wrong.
    Fine,
    /// All that went wrong goes wrong without the proxy too.
    SameAsDirect(Vec<RunFailure>),
    /// These go wrong only through the proxy.
    Failed(Vec<RunFailure>),
}

impl RunFailure {
    fn new(kind: &str, detail: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            detail: detail.into(),
        }
    }
}

/// Judges a run by how the client ended, what the model saw and what reached the provider.
pub(crate) fn judge(
    ended: &Ended,
    progress: &Progress,
    requests: &[Arc<ReceivedRequest>],
) -> RunReport {
    let mut failures = Vec::new();
    let mut fail = |kind: &str, detail: String| failures.push(RunFailure::new(kind, detail));
    if let Some(trouble) = &ended.trouble {
        fail("client failed", trouble.clone());
    }
    if !progress.is_finished {
        if let Some(stray) = requests.iter().find(|one| is_stray(one)) {
            let detail = format!("request {} has nothing of the session", stray.serial);
            fail("task lost", detail);
        }
        fail(
            "not finished",
            format!("it stopped before round {}", progress.next),
        );
    } else if !ended.stdout.contains(LAST_WORDS) {
        fail("last words not shown", String::new());
    }
    for (what, place) in [("needle", progress.needle), ("decision", progress.decision)] {
        if place == Knowledge::Lost {
            fail(
                &format!("{what}{LOST}"),
                "neither in the window nor found".to_owned(),
            );
        }
    }
    let session: Vec<&Arc<ReceivedRequest>> =
        requests.iter().filter(|one| is_session(one)).collect();
    failures.extend(broken_rules(requests));
    failures.extend(session.iter().find_map(|one| lost_task(one)));
    failures.extend(session.iter().find_map(|one| tools_missing(one)));
    failures.extend(session.iter().find_map(|one| empty_output(one)));
    let answered = |one: &&&Arc<ReceivedRequest>| one.outcome == RequestOutcome::Answered;
    let answered: Vec<&Arc<ReceivedRequest>> = session.iter().filter(answered).copied().collect();
    let usages = || answered.iter().filter_map(|one| one.usage.as_ref());
    let is_overflow = |one: &&&Arc<ReceivedRequest>| one.outcome == RequestOutcome::Overflow;
    RunReport {
        failures,
        calls: answered.len(),
        first_tokens: answered.first().map_or(0, |one| one.tokens),
        prompt_tokens: usages().map(trimtab_model::Usage::prompt).sum(),
        cached_tokens: usages().map(|usage| usage.cache_read).sum(),
        overflows: session.iter().filter(is_overflow).count(),
        switches: switches(&answered),
        needle: progress.needle,
        decision: progress.decision,
        is_spoiled: progress.is_finished && !progress.has_come,
    }
}

/// True for a request of the session itself: no title, no summary.
fn is_session(received: &ReceivedRequest) -> bool {
    received.dialect.is_some()
        && !received.path.contains("count_tokens")
        && !asks_for_summary(received)
        && session_shell(received, &received.json()).is_some()
}

/// True for a request that could be of the session, if there were anything of the session in it.
fn is_stray(received: &ReceivedRequest) -> bool {
    let body = received.json();
    let has_shell = Shell::of(&body).is_some();
    has_shell && session_shell(received, &body).is_none() && !asks_for_summary(received)
}

/// Every rule of the provider that was broken, once.
fn broken_rules(requests: &[Arc<ReceivedRequest>]) -> Vec<RunFailure> {
    let mut broken: Vec<RunFailure> = Vec::new();
    for received in requests {
        for violation in &received.violations {
            let kind = format!("refused: {}", without_numbers(&violation.rule));
            if broken.iter().all(|known| known.kind != kind) {
                let detail = format!("request {}: {}", received.serial, violation.message);
                broken.push(RunFailure { kind, detail });
            }
        }
    }
    broken
}

/// A rule without the numbers and ids in it.
fn without_numbers(rule: &str) -> String {
    let words = rule.split(' ').map(|word| {
        let has_digit = word.chars().any(|letter| letter.is_ascii_digit());
        if has_digit { "#" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn lost_task(received: &ReceivedRequest) -> Option<RunFailure> {
    let text = String::from_utf8_lossy(&received.body);
    let is_lost = !text.contains(TASK_MARK);
    is_lost.then(|| RunFailure::new("task lost", format!("request {}", received.serial)))
}

/// Refs must come with the tools that read them.
fn tools_missing(received: &ReceivedRequest) -> Option<RunFailure> {
    let shows_ref = |text: &str| REF_MARKS.iter().any(|mark| text.contains(mark));
    let messages = received.read_messages();
    let shows = messages.iter().any(|message| {
        let mut outputs = message.outputs();
        shows_ref(&message.text()) || outputs.any(|output| shows_ref(&output.text()))
    });
    let offered = offered_tools(&received.json());
    let has_tool = offered.iter().any(|tool| tool.name == READ);
    let is_missing = shows && !has_tool;
    let detail = format!("request {} shows a ref", received.serial);
    is_missing.then(|| RunFailure::new("retrieval tools not offered", detail))
}

/// Every command of the scenarios prints something, and the model must see something of it.
fn empty_output(received: &ReceivedRequest) -> Option<RunFailure> {
    let messages = received.read_messages();
    let mut outputs = messages.iter().flat_map(trimtab_model::Message::outputs);
    let empty = outputs.find(|output| output.text().trim().is_empty())?;
    let detail = format!("request {}: {}", received.serial, empty.call_id);
    Some(RunFailure::new("output shown empty", detail))
}

/// How often a window does not begin with most of the one before it.
fn switches(answered: &[&Arc<ReceivedRequest>]) -> usize {
    let pairs = answered.windows(2).filter(|pair| match pair {
        [before, after] => after.stable * 100 < before.tokens * 90,
        _ => false,
    });
    pairs.count()
}

/// What of `proxied` goes wrong only through the proxy. `others` are the direct runs of the client
/// in all scenarios: a client that forgets by itself does so in each scenario that is long enough,
/// and a direct run that broke off was not.
pub(crate) fn compare(direct: &RunReport, proxied: &RunReport, others: &[RunReport]) -> Comparison {
    let others = others
        .iter()
        .filter(|_| direct.needle == Knowledge::Unasked);
    let forgotten = others.flat_map(|other| &other.failures);
    let forgotten = forgotten.filter(|failure| failure.kind.ends_with(LOST));
    let known: Vec<&RunFailure> = direct.failures.iter().chain(forgotten).collect();
    let is_new = |failure: &&RunFailure| !known.iter().any(|known| known.kind == failure.kind);
    let new: Vec<RunFailure> = proxied.failures.iter().filter(is_new).cloned().collect();
    if !new.is_empty() {
        return Comparison::Failed(new);
    }
    if proxied.failures.is_empty() {
        return Comparison::Fine;
    }
    Comparison::SameAsDirect(proxied.failures.clone())
}

impl RunReport {
    /// Adds what makes a proxied run worthless as a test.
    pub(crate) fn expect(&mut self, scenario: Scenario) {
        let (kind, found) = match scenario {
            Scenario::BigOutputs | Scenario::DefaultWindow => return,
            Scenario::Overflow if self.overflows > 0 => return,
            Scenario::Overflow => ("no overflow", 0),
            Scenario::LongSession if self.switches >= 2 => return,
            Scenario::LongSession => ("too few switch points", self.switches),
        };
        self.failures.push(RunFailure::new(kind, found.to_string()));
    }

    pub(crate) fn to_json(&self) -> Value {
        let failures = self.failures.iter();
        let failures = failures.map(|one| json!({"kind": one.kind, "detail": one.detail}));
        json!({
            "failures": failures.collect::<Vec<_>>(),
            "calls": self.calls,
            "first_tokens": self.first_tokens,
            "prompt_tokens": self.prompt_tokens,
            "cached_tokens": self.cached_tokens,
            "overflows": self.overflows,
            "switches": self.switches,
            "needle": format!("{:?}", self.needle).to_lowercase(),
            "decision": format!("{:?}", self.decision).to_lowercase(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(kinds: &[&str]) -> RunReport {
        RunReport {
            failures: kinds.iter().map(|kind| RunFailure::new(kind, "")).collect(),
            ..RunReport::default()
        }
    }

    #[test]
    fn only_failures_that_the_direct_run_lacks_count() {
        let direct = report(&["client failed"]);
        assert_eq!(compare(&direct, &report(&[]), &[]), Comparison::Fine);
        let same = compare(&direct, &report(&["client failed"]), &[]);
        assert!(matches!(same, Comparison::SameAsDirect(_)));
        let lost = report(&["client failed", "needle lost"]);
        let Comparison::Failed(new) = compare(&direct, &lost, std::slice::from_ref(&direct)) else {
            panic!("the needle was not lost without the proxy");
        };
        assert_eq!(new, [RunFailure::new("needle lost", "")]);
    }

    #[test]
    fn a_client_that_forgets_by_itself_may_do_so_where_its_direct_run_broke_off() {
        let broken_off = report(&["client failed"]);
        let others = [broken_off.clone(), report(&["needle lost"])];
        let lost = report(&["needle lost"]);
        let same = compare(&broken_off, &lost, &others);
        assert!(matches!(same, Comparison::SameAsDirect(_)), "{same:?}");
        let complete = RunReport {
            needle: Knowledge::Shown,
            ..RunReport::default()
        };
        let failed = compare(&complete, &lost, &others);
        assert!(matches!(failed, Comparison::Failed(_)), "{failed:?}");
    }

    #[test]
    fn rules_are_compared_without_their_places() {
        let one = without_numbers("message 12 has the role \"system\"");
        assert_eq!(one, without_numbers("message 7 has the role \"system\""));
    }
}
