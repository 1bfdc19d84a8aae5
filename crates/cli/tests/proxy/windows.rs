//! The report of the strict upstream about the windows that it received.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use trimtab_engine::view::tools;
use trimtab_model::{Dialect, Message, Part, Role};
use trimtab_testkit::upstream::{ReceivedRequest, RequestOutcome, Upstream};
use trimtab_wire::answer::AnswerReader;

/// Figures of a client's windows.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// Calls of the client's main loop, hidden ones included.
    pub(crate) calls: usize,
    /// What the model was given for its calls of the retrieval tools.
    pub(crate) retrieved: Vec<String>,
    /// How often what was sent before was not the front of what was sent next.
    pub(crate) switches: usize,
    /// The share of all tokens that a provider's cache had.
    pub(crate) stable_percent: u64,
}

impl fmt::Display for Windows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} calls, all windows valid, {} stored outputs asked back, {} switch points, {} % cached",
            self.calls,
            self.retrieved.len(),
            self.switches,
            self.stable_percent
        )
    }
}

/// Judges all windows of the client's main loop, which `is_main` tells: each must be valid, and
/// begin with the one before it unless it is a switch point, which must have made it smaller
/// than it would be otherwise, or changed the tools.
pub(crate) fn judge(
    name: &str,
    upstream: &Upstream,
    is_main: impl Fn(&ReceivedRequest) -> bool,
) -> Windows {
    let requests = upstream.requests();
    let mut broken = upstream.violations();
    broken.retain(|violation| !is_the_clients_own(violation));
    assert!(broken.is_empty(), "{name}: {broken:?}");
    let answered =
        |one: &&Arc<ReceivedRequest>| one.outcome == RequestOutcome::Answered && is_main(one);
    let mut main: Vec<_> = requests.iter().filter(answered).collect();
    main.sort_by_key(|one| one.serial);
    let mut windows = Windows {
        calls: main.len(),
        retrieved: retrieved(&main),
        ..Windows::default()
    };
    for pair in main.windows(2) {
        let [before, after] = pair else { continue };
        let Some(parting) = parting(before, after) else {
            continue;
        };
        windows.switches += 1;
        assert!(
            after.tokens < before.tokens + came_since(before, after) || after.tools != before.tools,
            "{name}: request {} breaks the cache and saves nothing: {} tokens, then {}\n{parting}",
            after.serial,
            before.tokens,
            after.tokens,
        );
    }
    let sum = |figure: fn(&ReceivedRequest) -> u64| main.iter().map(|one| figure(one)).sum::<u64>();
    let stable = sum(|one| one.stable) * 100;
    windows.stable_percent = stable.checked_div(sum(|one| one.tokens)).unwrap_or(0);
    windows
}

/// The tokens of the messages that came behind those of the first window, at four bytes a token.
fn came_since(before: &ReceivedRequest, after: &ReceivedRequest) -> u64 {
    let messages = |one: &ReceivedRequest| {
        let body: Value = serde_json::from_slice(&one.body).unwrap_or_default();
        let list = ["messages", "input"]
            .iter()
            .find_map(|key| body[*key].as_array().cloned());
        list.unwrap_or_default()
    };
    // Outputs can be shown shorter and rounds can be hidden, but the id of an output stays.
    let last = messages(before).pop().unwrap_or_default();
    let part = &last["content"][0]["tool_use_id"];
    let ids = [part, &last["tool_call_id"], &last["call_id"]];
    let id = ids
        .into_iter()
        .find_map(Value::as_str)
        .unwrap_or("no output");
    let all: Vec<String> = messages(after).iter().map(Value::to_string).collect();
    let known = all.iter().rposition(|message| message.contains(id));
    // If the round of that output is hidden, at least the newest message is new.
    let new = all
        .iter()
        .skip(known.map_or(all.len().saturating_sub(1), |at| at + 1));
    new.map(|message| message.len() as u64 / 4).sum()
}

/// Where the second window does not begin with the first; cache markers do not count, nor does
/// what the system says, which is the client's.
fn parting(before: &ReceivedRequest, after: &ReceivedRequest) -> Option<String> {
    let (before, after) = (said(before), said(after));
    let at = (0..before.len()).find(|at| before.get(*at) != after.get(*at))?;
    let (one, other) = (&before[at], after.get(at).map_or("", String::as_str));
    let same = one
        .chars()
        .zip(other.chars())
        .take_while(|(one, other)| one == other);
    let from = same.count().saturating_sub(100);
    let shown = |text: &str| text.chars().skip(from).take(400).collect::<String>();
    Some(format!("{:?}\n{:?}", shown(one), shown(other)))
}

/// All that a window says, piece by piece.
fn said(received: &ReceivedRequest) -> Vec<String> {
    let messages = received.read_messages();
    let others = messages
        .iter()
        .filter(|message| message.role != Role::System);
    let pieces = others.flat_map(|message| {
        let head = std::iter::once(format!("{:?}", message.role));
        head.chain(message.parts.iter().map(|part| match part {
            Part::Text(text) => text.text.clone(),
            Part::Output(output) => format!("{} {}", output.call_id, output.text()),
            Part::Call(call) => format!("{} {} {}", call.id, call.name, call.arguments),
            other => format!("{other:?}"),
        }))
    });
    pieces.collect()
}

/// What the calls of the retrieval tools in any of these windows were answered with.
fn retrieved(main: &[&Arc<ReceivedRequest>]) -> Vec<String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for received in main {
        let messages = received.read_messages();
        let calls = messages.iter().flat_map(Message::calls);
        let ours: Vec<&str> = calls
            .filter(|call| tools::is_retrieval(&call.name))
            .map(|call| call.id.as_str())
            .collect();
        for output in messages.iter().flat_map(Message::outputs) {
            if ours.contains(&output.call_id.as_str()) {
                let text = output.text().into_owned();
                found.entry(output.call_id.clone()).or_insert(text);
            }
        }
    }
    found.into_values().collect()
}

/// The ids of the calls in an answer, streamed or not.
pub(crate) fn calls(dialect: Dialect, answer: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(answer);
    let Ok(whole) = serde_json::from_str::<Value>(&text) else {
        let mut reader = AnswerReader::new(dialect);
        reader.push(answer, |_| ());
        let message = reader.into_message();
        let calls = message.iter().flat_map(Message::calls);
        return calls.map(|call| call.id.clone()).collect();
    };
    let list = match dialect {
        Dialect::Chat => &whole["choices"][0]["message"]["tool_calls"],
        Dialect::Messages => &whole["content"],
        Dialect::Responses => &whole["output"],
    };
    let id = |entry: &Value| {
        let id = entry.get("call_id").or_else(|| entry.get("id"))?;
        let is_call = dialect == Dialect::Chat || entry.get("name").is_some();
        id.as_str().filter(|_| is_call).map(str::to_owned)
    };
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(id)
        .collect()
}

/// The first ref that an output in a window shows.
pub(crate) fn shown_ref(received: &ReceivedRequest) -> Option<String> {
    let messages = received.read_messages();
    let outputs = messages.iter().flat_map(Message::outputs);
    let outputs = outputs.map(|output| output.text().into_owned());
    // After a rewrite the refs stand in a message of ours.
    let texts = messages.iter().map(|message| message.text().into_owned());
    outputs.chain(texts).find_map(|text| {
        let (_, rest) = text.split_once("ref_id")?;
        let name = rest.trim_start_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric());
        name.get(..end.unwrap_or(name.len())).map(str::to_owned)
    })
}

/// True if the model can ask for a stored output, and has not just done so.
pub(crate) fn may_ask(received: &ReceivedRequest) -> bool {
    let offered = received.tools.iter().any(|tool| tool == tools::READ);
    let messages = received.read_messages();
    let newest = messages.iter().rev().take(2);
    let mut calls = newest.flat_map(Message::calls);
    offered && !calls.any(|call| tools::is_retrieval(&call.name))
}

/// True if the model has asked for a stored output in this window, or cannot.
pub(crate) fn has_asked(received: &ReceivedRequest) -> bool {
    let messages = received.read_messages();
    let mut calls = messages.iter().flat_map(Message::calls);
    !may_ask(received) || calls.any(|call| tools::is_retrieval(&call.name))
}

/// True for what an agent does by itself: it asks for endpoints that the upstream lacks, and
/// tries a system message among the others before it does without.
pub(crate) fn is_the_clients_own(violation: &str) -> bool {
    violation.ends_with("status 404") || violation.ends_with("has the role \"system\"")
}
