//! The model of the demo: it answers as the session says, looks stored outputs up, and writes
//! summaries.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use trimtab_model::{Part, Usage};
use trimtab_testkit::script::{Reply, ScriptedCall};
use trimtab_testkit::upstream::{Cache, Count, Options, Received, Source};

use super::session::{Round, Session};
use super::{CALL_HEADER, MODEL};

/// The tool with which stored outputs are searched.
const GREP: &str = "tool_output_cache_grep";
/// What the model says to a client that is not the demo's own.
const GREETING: &str = "This is the scripted model of `trimtab demo`: it has only this to say. \
    Run `trimtab serve` for a real one.";

/// A strict upstream for `session`, with this window if there is one.
pub(super) fn upstream(session: &Session, window: Option<u64>) -> Options {
    let rounds: Vec<Round> = session.rounds().cloned().collect();
    Options {
        window,
        count: Count::Estimate,
        cache: Cache {
            by_markers: true,
            ..Cache::default()
        },
        models: vec![MODEL.to_owned()],
        ..Options::new(Source::with(move |received| reply(&rounds, received)))
    }
}

/// The usage of each call of the session, as the model answered it in the end.
pub(super) fn windows(requests: &[Arc<Received>], calls: usize) -> Vec<Usage> {
    let mut windows = vec![Usage::default(); calls];
    for request in requests.iter().filter(|request| !wants_summary(request)) {
        let window = number(request).and_then(|number| windows.get_mut(number));
        if let (Some(window), Some(usage)) = (window, request.usage) {
            *window = usage;
        }
    }
    windows
}

/// Which call of the session a request is.
fn number(received: &Received) -> Option<usize> {
    received.header(CALL_HEADER)?.parse().ok()
}

fn wants_summary(received: &Received) -> bool {
    received.last.contains("<summary>")
}

fn reply(rounds: &[Round], received: &Received) -> Reply {
    let number = number(received);
    if wants_summary(received) {
        return Reply::text(summary(rounds, number.unwrap_or(rounds.len())));
    }
    let Some(round) = number.and_then(|number| rounds.get(number)) else {
        return Reply::text(GREETING);
    };
    if let Some(text) = round.looks_up
        && received.tools.iter().any(|tool| tool == GREP)
        && !has_looked_up(received, text)
    {
        return Reply::call(GREP, json!({"pattern": text}));
    }
    let calls = round.calls.iter();
    Reply {
        calls: calls
            .map(|call| ScriptedCall {
                id: Some(call.id.clone()),
                ..ScriptedCall::new(call.tool, call.arguments.clone())
            })
            .collect(),
        ..Reply::text(&round.text)
    }
}

/// True if the window has the search for `text` already.
fn has_looked_up(received: &Received, text: &str) -> bool {
    let messages = received.read_messages();
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(Part::as_call)
        .any(|call| call.name == GREP && call.arguments.contains(text))
}

/// What a careful model would write: everything it found and did so far.
fn summary(rounds: &[Round], until: usize) -> String {
    let mut text = String::from("<summary>\nThe agent works on orders that were charged twice.\n");
    for round in rounds.iter().take(until) {
        let calls: Vec<String> = round
            .calls
            .iter()
            .map(|call| format!("{} {}", call.tool, call.arguments))
            .collect();
        // Writing into a String cannot fail.
        let _ = writeln!(text, "- {} {}", round.text, calls.join(", "));
    }
    text.push_str("</summary>");
    text
}
