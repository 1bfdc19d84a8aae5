//! A session as a film strip, with everything that the picture shows.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use trimtab::film::{FilmOptions, film_of};
use trimtab::session::{Session, Setup};
use trimtab_engine::journal::Journal;
use trimtab_engine::normalise::{MessageSource, NormaliseOptions};
use trimtab_engine::trigger::Metric;
use trimtab_model::{Message, Usage};

use super::api::{ApiProblem, ApiRequest, json as to_json};
use super::message_data::{LONGEST_TEXT, plain_text, shortened};
use super::session_access::SessionAccess;

/// How many texts of ours are given with a film; more are not looked at.
const MOST_OWN_TEXTS: usize = 100;

/// What a film is made from.
struct SessionSnapshot {
    log: Vec<Arc<Message>>,
    journal: Journal,
    setup: Setup,
    own_texts: Vec<Value>,
    pins: Vec<usize>,
}

/// `GET session`: the film of a session, its calls and its settings.
pub(super) fn film(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let id = request.field("id").unwrap_or_default();
    let access = SessionAccess::new(request, &id)?;
    let history = request.shared.history.session(&id);
    let key = access.read(|session| {
        let calls = history.as_ref().map_or(0, |(entry, _)| entry.calls);
        let preset = &session.setup().policy.preset;
        Ok(format!("{id} {:?} {calls} {preset}", session.positions()))
    })?;
    // Many screens that show the same session cost one film.
    if let Some(known) = request.shared.history.rendered(&key) {
        return Ok(known);
    }
    let snapshot = access.read(|session| Ok(SessionSnapshot::of(session)))?;
    let branch = access.with_branch(|branch| json!(branch.server_tools()));
    let (entry, calls) = history.unzip();
    let whole = json!({
        "id": id,
        "entry": entry,
        "calls": calls.unwrap_or_default(),
        "messages": snapshot.log.len(),
        "film": snapshot.film(),
        "own_texts": snapshot.own_texts,
        "pins": snapshot.pins,
        "undoable": snapshot.journal.undoable(),
        "preset": snapshot.setup.policy.preset,
        "presets": request.settings.policy_names(),
        "is_loaded": branch.is_some(),
        "tools": branch,
        "window": snapshot.setup.limits.window,
        "answer": snapshot.setup.limits.max_output,
        "thresholds": thresholds(&snapshot.setup),
        "prices": prices(&snapshot.setup),
    });
    let whole = to_json(&whole)?;
    request.shared.history.keep_rendered(key, whole.clone());
    Ok(whole)
}

impl SessionSnapshot {
    fn of(session: &Session) -> Self {
        let projection = session.projection();
        let inserted = projection.slots().iter().enumerate();
        let inserted = inserted.filter_map(|(number, slot)| match slot.source {
            MessageSource::Inserted(before) => Some((number, before, &slot.message)),
            MessageSource::Log(_) => None,
        });
        let own_texts = inserted
            .take(MOST_OWN_TEXTS)
            .map(|(number, before, message)| {
                let measure = projection.measure_of_slot(number).unwrap_or_default();
                json!({
                    "before": before,
                    "kind": message.meta.kind,
                    "tokens": session.calibration().tokens(&measure),
                    "text": shortened(&plain_text(message), LONGEST_TEXT),
                })
            });
        Self {
            own_texts: own_texts.collect(),
            log: projection.log().messages().to_vec(),
            journal: projection.journal().clone(),
            setup: session.setup().clone(),
            pins: session.pins().collect(),
        }
    }

    fn film(&self) -> trimtab::film::Film {
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
