//! A session as a film strip, with everything that the picture shows.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use trimtab::film::{Film, FilmOptions, film_of};
use trimtab::session::{Session, Setup};
use trimtab_engine::journal::Journal;
use trimtab_engine::normalise::{MessageSource, NormaliseOptions};
use trimtab_engine::trigger::Metric;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Usage};

use super::api::{ApiProblem, ApiRequest, json as to_json};
use super::message_data::{LONGEST_TEXT, plain_text, shortened};
use super::session_access::SessionAccess;
use crate::history::{CallEntry, SessionEntry};

/// How many texts of ours are given with a film; more are not looked at.
const MOST_OWN_TEXTS: usize = 100;

/// What a film is made from. It is taken while requests of the session wait, so it only shares.
struct SessionSnapshot {
    log: Vec<(Arc<Message>, Measure)>,
    journal: Journal,
    setup: Setup,
    own_texts: Vec<OwnText>,
    pins: Vec<usize>,
}

/// A text of ours in the window: a summary, a digest, a note.
struct OwnText {
    before: usize,
    tokens: u64,
    message: Arc<Message>,
}

/// The answer. It has thousands of parts, so it is written without a tree of JSON in between.
#[derive(Serialize)]
struct SessionFilm<'a> {
    id: &'a str,
    entry: Option<SessionEntry>,
    calls: Vec<Arc<CallEntry>>,
    messages: usize,
    film: Film,
    own_texts: Vec<Value>,
    pins: Vec<usize>,
    undoable: usize,
    preset: &'a str,
    presets: Vec<&'a str>,
    is_loaded: bool,
    tools: Option<Value>,
    window: Option<u64>,
    answer: Option<u64>,
    thresholds: Vec<Value>,
    prices: Option<Value>,
}

/// `GET session`: the film of a session, its calls and its settings.
pub(super) fn film(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let id = request.field("id").unwrap_or_default();
    let access = SessionAccess::new(request, &id)?;
    let snapshot = access.read(|session| Ok(SessionSnapshot::of(session)))?;
    let tools = access.with_branch(|branch| json!(branch.server_tools()));
    let (entry, calls) = request.shared.history.session(&id).unzip();
    to_json(&SessionFilm {
        id: &id,
        entry,
        calls: calls.unwrap_or_default(),
        messages: snapshot.log.len(),
        film: snapshot.film(),
        own_texts: snapshot.own_texts.iter().map(OwnText::json).collect(),
        undoable: snapshot.journal.undoable(),
        preset: &snapshot.setup.policy.preset,
        presets: request.settings.policy_names(),
        is_loaded: tools.is_some(),
        tools,
        window: snapshot.setup.limits.window,
        answer: snapshot.setup.limits.max_output,
        thresholds: thresholds(&snapshot.setup),
        prices: prices(&snapshot.setup),
        pins: snapshot.pins,
    })
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
        let log = projection.measured_log();
        Self {
            own_texts: own_texts.take(MOST_OWN_TEXTS).collect(),
            log: log
                .map(|(came, measure)| (Arc::clone(came), *measure))
                .collect(),
            journal: projection.journal().clone(),
            setup: session.setup().clone(),
            pins: session.pins().collect(),
        }
    }

    fn film(&self) -> Film {
        let options = FilmOptions {
            normalise: NormaliseOptions {
                dialect: self.setup.dialect,
                habit: self.setup.policy.repair,
            },
            calibration: self.setup.calibration.clone(),
            prices: self.setup.prices,
        };
        film_of(&self.log, &self.journal, options)
    }
}

/// The conditions under which the preset compacts, with the tokens that they stand for.
fn thresholds(setup: &Setup) -> Vec<Value> {
    let compaction = &setup.policy.compaction;
    let triggers = compaction.when.iter().filter(|_| compaction.auto);
    let in_tokens = triggers.filter(|trigger| trigger.metric != Metric::Messages);
    in_tokens
        .map(|trigger| {
            let tokens = trigger.value.figure(setup.limits.window);
            json!({"text": trigger.to_string(), "tokens": tokens})
        })
        .collect()
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
