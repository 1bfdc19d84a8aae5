//! The messages of a session: a part of the list, one with its original, and a search.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};
use trimtab::film::{MessageState, band_of, message_state};
use trimtab::session::Session;
use trimtab_engine::journal::Journal;
use trimtab_engine::normalise::{EntryChange, MessageSource, Slot};
use trimtab_engine::plan::{Edit, Plan};
use trimtab_model::{Message, Part, work};

use super::api::{ApiProblem, ApiRequest, json as to_json};
use super::session_access::SessionAccess;
use crate::records::plan_note::reason_name;

/// How many messages are given at once.
const MOST_MESSAGES: usize = 500;
/// How many characters of a message are given in a list.
const PREVIEW: usize = 160;
/// How many characters of a text are given at once; the rest is asked for by its offset.
pub(super) const LONGEST_TEXT: usize = 100_000;
/// How many messages a search finds at most.
const MOST_FOUND: usize = 200;

/// `GET messages`: a part of the list.
pub(super) fn messages(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let access = SessionAccess::new(request, &request.field("id").unwrap_or_default())?;
    let from: usize = request.number("from", 0);
    let count = request.number("count", MOST_MESSAGES).min(MOST_MESSAGES);
    let (total, list) = access.read(|session| {
        session.window()?;
        let total = session.projection().log().len();
        let places = from..total.min(from.saturating_add(count));
        let list: Vec<ListedMessage> = places
            .filter_map(|at| ListedMessage::of(session, at))
            .collect();
        Ok((total, list))
    })?;
    let list: Vec<Value> = list.iter().map(ListedMessage::json).collect();
    to_json(&json!({"total": total, "from": from, "messages": list}))
}

/// A message of the list. It is taken while requests of the session wait, so it only shares.
struct ListedMessage {
    at: usize,
    came: Arc<Message>,
    tokens: u64,
    /// How it is shown; none if it is hidden.
    shown: Option<ShownMessage>,
}

struct ShownMessage {
    message: Arc<Message>,
    tokens: u64,
    is_repaired: bool,
}

impl ListedMessage {
    fn of(session: &Session, at: usize) -> Option<Self> {
        let projection = session.projection();
        let calibration = session.calibration();
        let shown = projection.slot_of(at).zip(projection.shown_measure(at));
        Some(Self {
            at,
            came: Arc::clone(projection.log().get(at)?),
            tokens: calibration.tokens(projection.measure(at)?),
            shown: shown.map(|(slot, measure)| ShownMessage {
                message: Arc::clone(&slot.message),
                tokens: calibration.tokens(&measure),
                is_repaired: is_repaired(session, at),
            }),
        })
    }

    fn state(&self) -> MessageState {
        let Some(shown) = &self.shown else {
            return MessageState::Hidden;
        };
        match message_state(&shown.message, Some(&self.came)) {
            MessageState::Whole if shown.is_repaired => MessageState::Repaired,
            state => state,
        }
    }

    fn json(&self) -> Value {
        let came = &self.came;
        json!({
            "at": self.at,
            "role": came.role.as_str(),
            "region": band_of(&as_slot(self.at, came), Some(came), self.tokens).region,
            "state": self.state(),
            "tool": tool_names(came),
            "tokens": self.tokens,
            "shown": self.shown.as_ref().map_or(0, |shown| shown.tokens),
            "text": shortened(&plain_text(came), PREVIEW),
        })
    }
}

fn as_slot(at: usize, message: &Arc<Message>) -> Slot {
    Slot {
        message: Arc::clone(message),
        source: MessageSource::Log(at),
    }
}

/// True if normalisation changed the message at `at`.
fn is_repaired(session: &Session, at: usize) -> bool {
    let entries = session.projection().last_window().entries();
    let found = entries.binary_search_by_key(&at, |entry| match entry.source {
        MessageSource::Log(at) | MessageSource::Inserted(at) => at,
    });
    let found = found.ok().and_then(|found| entries.get(found));
    found.is_some_and(|entry| {
        entry.source == MessageSource::Log(at) && entry.change != EntryChange::Untouched
    })
}

/// `GET message`: one message as it came and as it is shown.
pub(super) fn message(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let access = SessionAccess::new(request, &request.field("id").unwrap_or_default())?;
    let at = request.number("at", 0);
    let offset = request.number("offset", 0);
    let found = access.read(|session| {
        session.window()?;
        Ok(ListedMessage::of(session, at).zip(detail(session, at, offset)))
    })?;
    let no_message = || ApiProblem::new(StatusCode::NOT_FOUND, "there is no such message");
    let (entry, detail) = found.ok_or_else(no_message)?;
    to_json(&json!({"entry": entry.json(), "detail": detail}))
}

fn detail(session: &Session, at: usize, offset: usize) -> Option<Value> {
    let projection = session.projection();
    let came = projection.log().get(at)?;
    let shown = projection.slot_of(at);
    let is_same = shown.is_some_and(|slot| Arc::ptr_eq(&slot.message, came));
    let whole = plain_text(came);
    let original: String = whole.chars().skip(offset).take(LONGEST_TEXT).collect();
    let shown = shown.filter(|_| !is_same);
    let shown = shown.map(|slot| shortened(&plain_text(&slot.message), LONGEST_TEXT));
    let stored = came.outputs().find_map(|output| output.stored.as_ref());
    Some(json!({
        "original": original,
        "offset": offset,
        "characters": whole.chars().count(),
        "bytes": whole.len(),
        "shown": shown,
        "ref": stored.map(trimtab_model::Ref::id),
        "because": reasons(projection.journal(), at),
    }))
}

/// The plans that changed how a message is shown.
fn reasons(journal: &Journal, at: usize) -> Vec<Value> {
    let plans = journal.plans().filter(|plan| touches(plan, at));
    plans
        .map(|plan| {
            json!({
                "reason": reason_name(&plan.reason),
                "at": plan.at,
                "tokens_before": plan.tokens_before,
                "tokens_after": plan.tokens_after,
            })
        })
        .collect()
}

fn touches(plan: &Plan, at: usize) -> bool {
    plan.edits.iter().any(|edit| match edit {
        Edit::Show { message, .. }
        | Edit::ShowAsText { message, .. }
        | Edit::Archive { message } => *message == at,
        Edit::Hide { from, to } => (*from..*to).contains(&at),
        _ => false,
    })
}

/// `GET search`: the messages whose original has a text, whatever its case.
pub(super) fn search(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let access = SessionAccess::new(request, &request.field("id").unwrap_or_default())?;
    let wanted = request.field("q").unwrap_or_default().to_lowercase();
    if wanted.is_empty() {
        return Err(ApiProblem::bad("the search is empty"));
    }
    // The session is not held while it is searched.
    let log = access.read(|session| Ok(session.projection().log().messages().to_vec()))?;
    let finder = memchr::memmem::Finder::new(wanted.as_bytes());
    let mut found = Vec::new();
    for (at, message) in log.iter().enumerate() {
        work::step(1);
        let text = plain_text(message);
        let lower = text.to_lowercase();
        if let Some(place) = finder.find(lower.as_bytes()) {
            // Some letters change their length in lower case; then the places differ.
            let is_alike = lower.len() == text.len() && text.is_char_boundary(place);
            let shown = if is_alike { &text } else { &lower };
            found.push(json!({"at": at, "text": around(shown, place)}));
        }
        if found.len() >= MOST_FOUND {
            break;
        }
    }
    to_json(&json!({"matches": found, "most": MOST_FOUND}))
}

/// Some text around a place.
fn around(text: &str, place: usize) -> String {
    let before = text.get(..place).unwrap_or_default();
    let is_cut = before.chars().nth(40).is_some();
    let before: String = before.chars().rev().take(40).collect();
    let dots = is_cut.then_some('\u{2026}');
    let before: String = dots.into_iter().chain(before.chars().rev()).collect();
    let after: String = text
        .get(place..)
        .unwrap_or_default()
        .chars()
        .take(100)
        .collect();
    before + &after
}

/// The tools that a message calls or answers.
fn tool_names(message: &Message) -> Option<String> {
    let calls = message.calls().map(|call| call.name.as_str());
    let outputs = message
        .outputs()
        .filter_map(|output| output.tool.as_deref());
    let names: Vec<&str> = calls.chain(outputs).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// A message as text: everything that a person can read.
pub(super) fn plain_text(message: &Message) -> String {
    let texts = message.parts.iter().map(|part| match part {
        Part::Text(text) => text.text.clone(),
        Part::Reasoning(reasoning) => format!("(reasoning) {}", reasoning.text),
        Part::Call(call) => format!("{} {}", call.name, call.arguments),
        Part::Output(output) => output.text().into_owned(),
        Part::Media(media) => format!("({})", media.kind.name()),
        Part::Opaque(opaque) => opaque.raw.as_str().to_owned(),
    });
    texts.collect::<Vec<String>>().join("\n")
}

/// The first characters of a text.
pub(super) fn shortened(text: &str, characters: usize) -> String {
    text.chars().take(characters).collect()
}
