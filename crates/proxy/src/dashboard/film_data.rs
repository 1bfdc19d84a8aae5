//! A session as a film strip, with everything that the picture shows.
//!
//! A screen says what it has already, and gets what is new. So a look at a session costs what has
//! happened since the last one, however long the session is.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use trimtab::film::{FilmMark, FilmOptions, FilmPart};
use trimtab::session::{Session, Setup};
use trimtab_engine::journal::JournalEntry;
use trimtab_engine::normalise::MessageSource;
use trimtab_engine::planner::CallConditions;
use trimtab_engine::trigger::Metric;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Usage};

use super::api::{ApiProblem, ApiRequest, json as to_json};
use super::message_data::{LONGEST_TEXT, plain_text, shortened};
use super::screen_version::ScreenVersion;
use super::session_access::SessionAccess;
use crate::history::{CallEntry, CallHistory, NumberedFilm, SessionEntry};

/// How many texts of ours are given with a film; more are not looked at.
const MOST_OWN_TEXTS: usize = 100;

/// What a film lacks, and the settings of its session. It is taken while requests of the session
/// wait, so it only shares.
struct SessionSnapshot {
    /// True if these are the messages and entries after those that the film has; false if they are
    /// all.
    continues: bool,
    log: Vec<(Arc<Message>, Measure)>,
    entries: Vec<JournalEntry>,
    messages: usize,
    undoable: usize,
    setup: Setup,
    /// None if the screen has them.
    own_texts: Option<Vec<OwnText>>,
    pins: Vec<usize>,
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
    /// What the screen names to get the next changes.
    version: String,
    id: &'a str,
    entry: Option<SessionEntry>,
    /// The calls that the screen lacks.
    calls: Vec<Arc<CallEntry>>,
    messages: usize,
    /// Changes whenever messages can be shown differently.
    shown: (u64, usize),
    film: FilmPart<'a>,
    own_texts: Option<Vec<Value>>,
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

/// `GET session`: the film of a session, its calls and its settings, as far as a screen lacks them.
pub(super) fn film(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let id = request.field("id").unwrap_or_default();
    let since = request.number("since", ScreenVersion::default());
    let access = SessionAccess::new(request, &id)?;
    let history = &request.shared.history;
    let (film, snapshot) = current_film(&access, history, &since)?;
    let tools = access.with_branch(|branch| json!(branch.server_tools()));
    let changed = history.calls_since(&id, since.calls);
    let calls_version = changed.as_ref().map_or(0, |changed| changed.version);
    let (entry, calls) = changed
        .map(|changed| (changed.entry, changed.calls))
        .unzip();
    let drawn = film.film.film();
    let entries = film.film.entries_read();
    let mark = if film.number == since.film {
        since.mark
    } else {
        FilmMark::default()
    };
    let version = ScreenVersion {
        film: film.number,
        mark: drawn.mark(),
        entries,
        calls: calls_version,
    };
    let own_texts = snapshot.own_texts.as_deref();
    let answer = to_json(&SessionFilm {
        version: version.to_string(),
        id: &id,
        entry,
        calls: calls.unwrap_or_default(),
        messages: snapshot.messages,
        shown: (film.number, entries),
        film: drawn.since(&mark),
        own_texts: own_texts.map(|texts| texts.iter().map(OwnText::json).collect()),
        undoable: snapshot.undoable,
        preset: &snapshot.setup.policy.preset,
        presets: request.settings.policy_names(),
        is_loaded: tools.is_some(),
        tools,
        window: snapshot.setup.limits.window,
        answer: snapshot.setup.limits.max_output,
        thresholds: thresholds(&snapshot.setup),
        prices: prices(&snapshot.setup),
        pins: snapshot.pins,
    });
    history.keep_film(&id, film);
    answer
}

/// The film of a session as it is now: the one that was kept, if it can follow.
fn current_film(
    access: &SessionAccess<'_>,
    history: &CallHistory,
    since: &ScreenVersion,
) -> Result<(NumberedFilm, SessionSnapshot), ApiProblem> {
    let mut kept = history.take_film(access.id.as_str());
    loop {
        let taken = access.read(|session| Ok(SessionSnapshot::of(session, kept.as_ref(), since)));
        let snapshot = taken?;
        let kept = kept.take().filter(|_| snapshot.continues);
        let mut film = kept.unwrap_or_else(|| history.begin_film(FilmOptions::of(&snapshot.setup)));
        let is_current = film.film.follow(&snapshot.log, &snapshot.entries);
        // A new film can always follow.
        if is_current || !snapshot.continues {
            return Ok((film, snapshot));
        }
    }
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
    fn of(session: &Session, kept: Option<&NumberedFilm>, since: &ScreenVersion) -> Self {
        let projection = session.projection();
        let (log, entries) = (projection.log(), projection.journal().entries());
        let kept = kept.filter(|kept| continues(kept, session));
        let has_texts =
            kept.is_some_and(|kept| kept.number == since.film && entries.len() == since.entries);
        let (messages_from, entries_from) = kept.map_or((0, 0), |kept| {
            (kept.film.messages().len(), kept.film.entries_read())
        });
        let new = (messages_from..log.len()).filter_map(|at| {
            let measure = projection.measure(at)?;
            Some((Arc::clone(log.get(at)?), *measure))
        });
        Self {
            continues: kept.is_some(),
            log: new.collect(),
            entries: entries.get(entries_from..).unwrap_or_default().to_vec(),
            messages: log.len(),
            undoable: projection.journal().undoable(),
            setup: session.setup().clone(),
            own_texts: (!has_texts).then(|| own_texts(session)),
            pins: session.pins().collect(),
        }
    }
}

/// True if a film can follow a session: its log and its journal have only grown since.
fn continues(kept: &NumberedFilm, session: &Session) -> bool {
    let projection = session.projection();
    let followed = kept.film.messages();
    let same_log = followed.last().is_none_or(|last| {
        let now = projection.log().get(followed.len() - 1);
        now.is_some_and(|now| Arc::ptr_eq(now, last))
    });
    same_log
        && kept.film.entries_read() <= projection.journal().entries().len()
        && kept.film.looks_like(&FilmOptions::of(session.setup()))
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
