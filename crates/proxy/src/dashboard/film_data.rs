//! A session as a film strip, with everything that the picture shows.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use trimtab::film::{Film, film_of};
use trimtab::session::{Session, Setup};
use trimtab_engine::decide::CallConditions;
use trimtab_engine::journal::JournalEntry;
use trimtab_engine::normalise::MessageSource;
use trimtab_engine::trigger::Metric;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Usage};

use super::api::{ApiProblem, ApiRequest, json as to_json};
use super::message_data::{LONGEST_TEXT, plain_text, shortened};
use super::session_access::SessionAccess;
use crate::history::{CallEntry, SessionEntry};

/// How many texts of ours are given with a film; more are not looked at.
const MOST_OWN_TEXTS: usize = 100;

/// A session at a moment. It is taken while requests of the session wait, so it only shares.
struct SessionSnapshot {
    log: Vec<(Arc<Message>, Measure)>,
    entries: Vec<JournalEntry>,
    setup: Setup,
    own_texts: Vec<OwnText>,
}

/// A text of ours in the window: a summary, a digest, a note.
struct OwnText {
    before: usize,
    tokens: u64,
    message: Arc<Message>,
}

/// The answer. It can have thousands of parts, so it is written without a tree of JSON in between.
#[derive(Serialize)]
struct SessionFilm<'a> {
    id: &'a str,
    entry: Option<SessionEntry>,
    calls: Vec<Arc<CallEntry>>,
    messages: usize,
    /// Changes whenever messages can be shown differently.
    decisions: usize,
    film: Film,
    own_texts: Vec<Value>,
    preset: &'a str,
    /// Tokens of the tool definitions, which are in front of every call.
    tools: u64,
    window: Option<u64>,
    answer: Option<u64>,
    thresholds: Vec<Value>,
    prices: Option<Value>,
}

/// `GET session`: the film of a session, its calls and its settings.
pub(super) fn film(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let id = request.field("id").unwrap_or_default();
    let access = SessionAccess::new(request, &id)?;
    let (entry, calls) = request.shared.history.calls(&id).unzip();
    let calls = calls.unwrap_or_default();
    let ended = entry.as_ref().map_or(0, |entry: &SessionEntry| entry.ended);
    let sent = &request.shared.sent_films;
    let (version, known) = access.read(|session| {
        let projection = session.projection();
        let entries = projection.journal().entries().len();
        let version = (projection.log().len(), entries, ended);
        let known = sent.find(&id, version);
        Ok((version, known.ok_or_else(|| SessionSnapshot::of(session))))
    })?;
    let snapshot = match known {
        Ok(answer) => return Ok(answer),
        Err(snapshot) => snapshot,
    };
    let setup = &snapshot.setup;
    let answer = to_json(&SessionFilm {
        id: &id,
        entry,
        calls,
        messages: snapshot.log.len(),
        decisions: snapshot.entries.len(),
        film: film_of(&snapshot.log, &snapshot.entries, setup),
        own_texts: snapshot.own_texts.iter().map(OwnText::json).collect(),
        preset: &setup.policy.preset,
        tools: setup.calibration.tokens(&setup.tools),
        window: setup.limits.window,
        answer: setup.limits.max_output,
        thresholds: thresholds(setup),
        prices: prices(setup),
    })?;
    sent.keep(&id, version, answer.clone());
    Ok(answer)
}

impl OwnText {
    fn json(&self) -> Value {
        json!({
            "before": self.before,
            "kind": self.message.meta.kind,
            "tokens": self.tokens,
            "text": shortened(&plain_text(&self.message), LONGEST_TEXT),
        })
    }
}

impl SessionSnapshot {
    fn of(session: &Session) -> Self {
        let projection = session.projection();
        Self {
            log: projection.measured_log(),
            entries: projection.journal().entries().to_vec(),
            setup: session.setup().clone(),
            own_texts: own_texts(session),
        }
    }
}

fn own_texts(session: &Session) -> Vec<OwnText> {
    let projection = session.projection();
    let slots = projection.slots().iter().enumerate();
    let own_texts = slots.filter_map(|(number, slot)| {
        let MessageSource::Inserted(before) = slot.source else {
            return None;
        };
        let measure = projection.measure_of_slot(number).unwrap_or_default();
        Some(OwnText {
            before,
            tokens: session.calibration().tokens(&measure),
            message: Arc::clone(&slot.message),
        })
    });
    own_texts.take(MOST_OWN_TEXTS).collect()
}

/// The conditions under which the preset shortens a window, with the tokens that they stand for.
fn thresholds(setup: &Setup) -> Vec<Value> {
    let compaction = &setup.policy.compaction;
    let triggers = compaction.when.iter().filter(|_| compaction.auto);
    let in_tokens = triggers.filter(|trigger| trigger.metric != Metric::Messages);
    let conditions = in_tokens.map(|trigger| {
        let tokens = trigger.value.figure(setup.limits.window);
        json!({"text": trigger.to_string(), "tokens": tokens})
    });
    let prefix = &setup.policy.ageing.prefix;
    let cuts_outputs = prefix.enabled && prefix.input_budget > 0;
    let cut =
        cuts_outputs.then(|| json!({"text": "old outputs are cut", "tokens": prefix.input_budget}));
    conditions.chain(cut).chain(high_water(setup)).collect()
}

/// The size of a call above which our own preset rewrites its window.
fn high_water(setup: &Setup) -> Option<Value> {
    let rewrites = &setup.policy.ageing.rewrite;
    let tokens = |measure: &Measure| setup.calibration.tokens(measure);
    let call = CallConditions {
        window: Some(setup.limits.window?),
        max_output: setup.limits.max_output,
        tools: tokens(&setup.tools),
        ..CallConditions::new(&tokens)
    };
    let mark = call.tools + rewrites.high_mark(call.messages_room());
    rewrites
        .enabled
        .then(|| json!({"text": "high-water mark", "tokens": mark}))
}

/// Dollars for a million tokens.
fn prices(setup: &Setup) -> Option<Value> {
    let prices = setup.prices?;
    let million = 1_000_000;
    let cost = |usage: Usage| prices.cost(&usage).dollars();
    Some(json!({
        "input": cost(Usage { input: million, ..Usage::default() }),
        "read": cost(Usage { cache_read: million, ..Usage::default() }),
        "write": cost(Usage { cache_creation: million, ..Usage::default() }),
    }))
}
