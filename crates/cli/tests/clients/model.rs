//! The scripted model: plays the rounds of a scenario with any client.
//!
//! It is stateless: the ids of its own calls in a request tell which round is next, so a repeated
//! request gets the same answer.

use std::sync::{Arc, Mutex};

use regex::Regex;
use serde_json::{Value, json};
use trimtab_engine::view::tools::GREP;
use trimtab_model::Dialect;
use trimtab_testkit::script::{ScriptedCall, ScriptedFault, ScriptedReply};
use trimtab_testkit::upstream::ReceivedRequest;

use crate::scenario::{
    DECISION, DECISION_PATTERN, LAST_WORDS, NEEDLE, NEEDLE_PATTERN, PAUSE_WORDS, RESUMED_TASK,
    Round, Scenario, TASK_MARK,
};
use crate::shell::{Shell, offered_tools};

/// What the ids of its calls begin with; the number of the round follows.
const ID: &str = "call_step_";
/// Models that think without being asked to.
const ALWAYS_THINK: [&str; 4] = [
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-fable-5",
    "claude-mythos-5",
];
/// What the ids of its programs begin with; the number of the round follows.
const PROGRAM_ID: &str = "call_program_";
/// Share of what was said so far that the window still takes when it shrinks, in percent.
const SHRINKS_TO: u64 = 60;

/// Where something that the model should know was at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Knowledge {
    /// The end was not reached.
    #[default]
    Unasked,
    /// In the window.
    Shown,
    /// The model had to ask for it.
    Fetched,
    /// Neither in the window nor found.
    Lost,
}

/// What became of a session, as the model saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// The round that comes next.
    pub(crate) next: usize,
    pub(crate) needle: Knowledge,
    pub(crate) decision: Knowledge,
    /// True when the last words were said.
    pub(crate) is_finished: bool,
    /// True when a request had the needle in it. Some clients lose outputs of quick commands.
    pub(crate) has_come: bool,
    /// Tokens of the first request of the session.
    first: Option<u64>,
    /// The window, since it shrank.
    limit: Option<u64>,
    /// Patterns that it looked for.
    looked_for: Vec<&'static str>,
}

/// A model for one session.
pub(crate) struct AuditModel {
    scenario: Scenario,
    rounds: Vec<Round>,
    /// The round before which it waits for [`RESUMED_TASK`].
    pause: Option<usize>,
    ids: Regex,
    progress: Arc<Mutex<Progress>>,
}

impl AuditModel {
    pub(crate) fn new(
        scenario: Scenario,
        pause: Option<usize>,
        progress: Arc<Mutex<Progress>>,
    ) -> Self {
        Self {
            scenario,
            rounds: scenario.rounds(),
            pause,
            ids: Regex::new(&format!(r"{ID}(\d{{3}})")).unwrap(),
            progress,
        }
    }

    /// The answer to a request.
    pub(crate) fn reply(&self, received: &ReceivedRequest) -> ScriptedReply {
        let body = received.json();
        let text = String::from_utf8_lossy(&received.body);
        if asks_for_summary(received) {
            return ScriptedReply::text(summary(&text));
        }
        let Some(shell) = session_shell(received, &body) else {
            return ScriptedReply::text("Audit of a host");
        };
        let mut progress = self.progress.lock().unwrap();
        let first = *progress.first.get_or_insert(received.tokens);
        let round = self.round(&text, progress.next);
        if self.scenario.shrinks_at() == Some(round) {
            let grown = received.tokens.saturating_sub(first);
            let shrunk = first + grown * SHRINKS_TO / 100;
            progress.limit.get_or_insert(shrunk);
        }
        if let Some(window) = progress.limit.filter(|limit| received.tokens > *limit) {
            return ScriptedReply::default().with_fault(ScriptedFault::Overflow { window });
        }
        progress.next = progress.next.max(round);
        progress.has_come |= text.contains(NEEDLE);
        if self.pause == Some(round) && !text.contains(RESUMED_TASK) {
            return ScriptedReply::text(PAUSE_WORDS);
        }
        let Some(planned) = self.rounds.get(round) else {
            let mut reply = progress.end(&shell, &body, &text);
            reply.items = ended_program(&body).into_iter().collect();
            return reply;
        };
        let mut reply = ScriptedReply::text(&planned.text);
        if wants_thought(received, &body) {
            reply.reasoning = format!("Round {round} of the audit comes now.");
        }
        reply.items = ended_program(&body).into_iter().collect();
        for (at, command) in planned.commands.iter().enumerate() {
            let id = if at == 0 {
                format!("{ID}{round:03}")
            } else {
                format!("{ID}{round:03}x{at}")
            };
            shell.run(&mut reply, &id, command);
        }
        if runs_programs(&body) && self.scenario.has_program_in(round) {
            call_by_program(&mut reply, round);
        }
        reply
    }

    /// The round that a request asks for: behind the newest one in it, or behind the last one if
    /// its own newest calls are gone.
    fn round(&self, text: &str, known: usize) -> usize {
        let numbers = self.ids.captures_iter(text);
        let numbers = numbers.filter_map(|found| found[1].parse::<usize>().ok());
        match numbers.max() {
            Some(newest) if newest + 1 >= known => newest + 1,
            None if known == 0 => 0,
            _ => known + 1,
        }
    }
}

impl Progress {
    /// The last words; what is not in the window is looked for first, once.
    fn end(&mut self, shell: &Shell, body: &Value, text: &str) -> ScriptedReply {
        self.note(text);
        let can_look = offered_tools(body).iter().any(|tool| tool.name == GREP);
        if let Some(pattern) = self.next_pattern().filter(|_| can_look) {
            self.looked_for.push(pattern);
            let mut call = ScriptedCall::new(GREP, json!({"pattern": pattern, "max": 3}));
            call.id = Some(format!("call_look_{}", self.looked_for.len()));
            return ScriptedReply {
                calls: vec![call],
                ..ScriptedReply::default()
            };
        }
        for place in [&mut self.needle, &mut self.decision] {
            if *place == Knowledge::Unasked {
                *place = Knowledge::Lost;
            }
        }
        self.is_finished = true;
        shell.last_words(body, &self.last_words())
    }

    /// Notes what a window at the end of the session shows.
    fn note(&mut self, text: &str) {
        let known = if self.looked_for.is_empty() {
            Knowledge::Shown
        } else {
            Knowledge::Fetched
        };
        for (sought, place) in [(NEEDLE, &mut self.needle), (DECISION, &mut self.decision)] {
            if *place == Knowledge::Unasked && text.contains(sought) {
                *place = known;
            }
        }
    }

    /// What to look for next: a pattern for something that no window showed.
    fn next_pattern(&self) -> Option<&'static str> {
        let places = [
            (NEEDLE_PATTERN, self.needle),
            (DECISION_PATTERN, self.decision),
        ];
        let mut open = places.into_iter().filter(|(pattern, place)| {
            *place == Knowledge::Unasked && !self.looked_for.contains(pattern)
        });
        open.next().map(|(pattern, _)| pattern)
    }

    fn last_words(&self) -> String {
        let known = |text: &'static str, place| match place {
            Knowledge::Lost | Knowledge::Unasked => "not known",
            Knowledge::Shown | Knowledge::Fetched => text,
        };
        format!(
            "{LAST_WORDS}: the needle is {}; what I decided: {}.",
            known(NEEDLE, self.needle),
            known(DECISION, self.decision)
        )
    }
}

/// How commands are run, if a request is part of the session: it offers a shell, and has the
/// task or calls of the model in it.
pub(crate) fn session_shell(received: &ReceivedRequest, body: &Value) -> Option<Shell> {
    let text = String::from_utf8_lossy(&received.body);
    let is_ours = text.contains(TASK_MARK) || text.contains(ID);
    Shell::of(body).filter(|_| is_ours)
}

/// True for a request to sum the conversation up, of the proxy or of a client.
pub(crate) fn asks_for_summary(received: &ReceivedRequest) -> bool {
    let last = &received.last;
    let marks = [
        "<summary>",
        "CONTEXT CHECKPOINT COMPACTION",
        "<state_snapshot>",
    ];
    marks.iter().any(|mark| last.contains(mark))
}

/// What a careful model would write: what it found and decided, as far as it sees it.
fn summary(text: &str) -> String {
    let mut summary = format!("<summary>\n{TASK_MARK}. The log was read in parts.\n");
    for known in [NEEDLE, DECISION] {
        if text.contains(known) {
            summary.push_str(known);
            summary.push('\n');
        }
    }
    summary + "</summary>"
}

/// True if the client wants to see what the model thinks, or keeps it.
fn wants_thought(received: &ReceivedRequest, body: &Value) -> bool {
    match received.dialect {
        // The newest models always think.
        Some(Dialect::Messages) => {
            let mode = body.pointer("/thinking/type").and_then(Value::as_str);
            let thinks = |name| received.model.starts_with(name);
            mode.map_or(ALWAYS_THINK.into_iter().any(thinks), |mode| {
                mode != "disabled"
            })
        }
        Some(Dialect::Responses) => body["include"].to_string().contains("encrypted_content"),
        _ => false,
    }
}

/// True if a client lets the model call its tools from programs.
fn runs_programs(body: &Value) -> bool {
    let tools = body["tools"].as_array();
    let mut tools = tools.into_iter().flatten();
    tools.any(|tool| tool["type"] == "programmatic_tool_calling")
}

/// Lets the calls of a reply come from a program.
fn call_by_program(reply: &mut ScriptedReply, round: usize) {
    let id = format!("{PROGRAM_ID}{round:03}");
    reply.items.push(json!({
        "type": "program", "id": format!("prog_{round:03}"), "call_id": id,
        "code": "const output = await tools.bash({command}); text(output.length);",
        "fingerprint": format!("fingerprint {round}"),
    }));
    for call in &mut reply.calls {
        call.caller = Some(json!({"type": "program", "caller_id": id}));
    }
}

/// The result of a program whose calls are answered, if the newest one has none yet.
fn ended_program(body: &Value) -> Option<Value> {
    let items = || body["input"].as_array().into_iter().flatten();
    let id = items().rfind(|item| item["type"] == "program")?["call_id"].as_str()?;
    let mut results = items().filter(|item| item["type"] == "program_output");
    let is_open = results.all(|result| result["call_id"] != id);
    is_open.then(|| {
        json!({
            "type": "program_output", "id": format!("{id}_output"), "call_id": id,
            "result": "the output was read", "status": "completed",
        })
    })
}
