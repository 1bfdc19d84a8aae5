use std::cell::Cell;
use std::sync::Arc;

use trimtab_engine::policy::Policy;
use trimtab_model::estimate::Measure;
use trimtab_model::{Call, Message};
use trimtab_store::{MemoryStore, SessionId};

use super::*;
use crate::session::{Moment, Session, Setup};

/// A session of many calls with large outputs in a small window. `look` sees it after every step.
fn watched_session(preset: &str, calls: usize, mut look: impl FnMut(&Session)) -> Session {
    let mut setup = Setup::new(Policy::preset(preset).unwrap());
    setup.limits.window = Some(20_000);
    let id = SessionId::new("film").unwrap();
    let mut session = Session::open(Arc::new(MemoryStore::new()), id, setup).unwrap();
    session.admit(Message::user("look at all files")).unwrap();
    for call in 0..calls {
        look(&session);
        let id = format!("c{call}");
        let asked = Message::assistant("next").with_call(Call::new(&id, "read", "{}"));
        session.admit(asked).unwrap();
        let text = format!("line of file {call} with some words\n").repeat(200);
        session.admit(Message::output(&id, text)).unwrap();
        if let Some(pending) = session.check(Moment::BeforeCall).unwrap() {
            session.finish(pending).unwrap();
        }
        session.ready().unwrap();
    }
    session
}

fn worked_session(calls: usize) -> Session {
    watched_session("steady", calls, |_| {})
}

fn options(session: &Session) -> FilmOptions {
    FilmOptions {
        calibration: session.calibration().clone(),
        ..FilmOptions::default()
    }
}

/// Shows a film what its session has gained; false if the film must be made again.
fn followed(film: &mut LogFilm, session: &Session) -> bool {
    let projection = session.projection();
    let log = projection.log();
    let new = (film.messages().len()..log.len()).map(|at| {
        let measure = projection.measure(at).unwrap();
        (Arc::clone(log.get(at).unwrap()), *measure)
    });
    let log: Vec<_> = new.collect();
    let entries = projection.journal().entries();
    film.follow(&log, &entries[film.entries_read()..])
}

fn film(session: &Session) -> Film {
    let mut film = LogFilm::new(options(session));
    assert!(followed(&mut film, session));
    film.film().clone()
}

#[test]
fn last_column_is_the_window_of_the_session() {
    let mut session = worked_session(40);
    let (tokens, _) = session.window_tokens().unwrap();
    let film = film(&session);
    assert_eq!(film.columns.len(), 41);
    let last = film.columns.last().unwrap();
    let difference = last.tokens.abs_diff(tokens);
    // Rounding of each message.
    assert!(difference < 200, "{} and {tokens}", last.tokens);
    assert!(last.whole > 2 * last.tokens);
    assert!(!film.switches.is_empty());
}

#[test]
fn columns_of_a_scene_only_grow() {
    let film = film(&worked_session(40));
    assert_eq!(film.scenes.len(), film.switches.len() + 1);
    for pair in film.columns.windows(2) {
        if pair[0].scene == pair[1].scene {
            assert!(pair[0].tokens < pair[1].tokens);
        }
    }
    for (number, scene) in film.scenes.iter().enumerate() {
        let tokens: u64 = scene.bands.iter().map(|band| band.tokens).sum();
        let columns = film.columns.iter().filter(|column| column.scene == number);
        assert_eq!(columns.map(|column| column.tokens).max(), Some(tokens));
    }
}

#[test]
fn taken_back_plan_begins_a_scene() {
    let mut session = worked_session(30);
    assert!(session.undo().unwrap());
    session.admit(Message::assistant("done")).unwrap();
    session.admit(Message::user("more")).unwrap();
    let film = film(&session);
    let last = film.switches.last().unwrap();
    assert_eq!(last.reasons, ["taken back by hand"]);
    assert!(last.after > last.before);
}

fn small_band(at: usize) -> FilmBand {
    FilmBand {
        message: Some(at),
        count: 1,
        region: FilmRegion::User,
        state: MessageState::Whole,
        tokens: 10,
    }
}

#[test]
fn small_bands_of_long_scenes_are_joined() {
    let mut builder = FilmBuilder::new(None);
    builder.extend(20_000, 200_000, (0..20_000).map(small_band));
    let film = builder.finish();
    let bands = &film.scenes[0].bands;
    assert!(bands.len() <= 1_200, "{}", bands.len());
    assert_eq!(bands.iter().map(|band| band.count).sum::<usize>(), 20_000);
    assert_eq!(bands.iter().map(|band| band.tokens).sum::<u64>(), 200_000);
}

#[test]
fn replayed_film_shows_whole_and_shortened_outputs() {
    let session = worked_session(40);
    let log = session.projection().log().messages();
    let settings = crate::replay::ReplaySettings::new(20_000);
    let policy = Policy::preset("steady").unwrap();
    let (film, report) = replayed_film(log, policy, &settings).unwrap();
    assert_eq!(film.columns.len() as u64, report.calls);
    let bands = film.scenes.iter().flat_map(|scene| &scene.bands);
    let states: Vec<_> = bands.map(|band| (band.region, band.state)).collect();
    assert!(states.contains(&(FilmRegion::Output, MessageState::Whole)));
    assert!(states.contains(&(FilmRegion::Assistant, MessageState::Whole)));
    assert!(states.contains(&(FilmRegion::Ours, MessageState::Summary)));
    assert!(!states.contains(&(FilmRegion::User, MessageState::View)));
}

/// A film as a screen has it: from parts.
#[derive(Default)]
struct ScreenFilm {
    film: Film,
    mark: FilmMark,
}

impl ScreenFilm {
    fn add(&mut self, film: &Film) -> usize {
        let part = film.since(&self.mark);
        let bands = part.scenes.iter().map(|scene| scene.bands.len());
        let size = bands.sum::<usize>() + part.columns.len() + part.switches.len();
        self.film.columns.truncate(part.columns_from);
        self.film.columns.extend_from_slice(part.columns);
        self.film.switches.truncate(part.switches_from);
        self.film.switches.extend_from_slice(part.switches);
        self.film.scenes.truncate(part.scenes_from + 1);
        for (number, scene) in part.scenes.iter().enumerate() {
            let stays = if number == 0 { part.bands_from } else { 0 };
            let at = part.scenes_from + number;
            if at == self.film.scenes.len() {
                self.film.scenes.push(FilmScene::default());
            }
            self.film.scenes[at].bands.truncate(stays);
            self.film.scenes[at].bands.extend_from_slice(scene.bands);
            self.film.scenes[at].joins = film.scenes[at].joins;
        }
        self.mark = film.mark();
        size
    }
}

#[test]
fn film_that_follows_a_session_is_the_film_of_all_of_it() {
    for preset in ["steady", "refs", "retention", "archive", "turns"] {
        let mut live = None;
        let mut screen = ScreenFilm::default();
        let made_again = Cell::new(0);
        let mut watch = |session: &Session| {
            let live = live.get_or_insert_with(|| LogFilm::new(options(session)));
            if !followed(live, session) {
                made_again.set(made_again.get() + 1);
                *live = LogFilm::new(options(session));
                assert!(followed(live, session));
                screen = ScreenFilm::default();
            }
            assert_eq!(*live.film(), film(session), "{preset}");
            screen.add(live.film());
            assert_eq!(screen.film, *live.film(), "{preset}");
        };
        let mut session = watched_session(preset, 40, &mut watch);
        watch(&session);
        // A late plan can change what was drawn before, but that is rare.
        assert!(made_again.get() <= 3, "{preset}: {}", made_again.get());
        // A second user message without an answer in between.
        session.admit(Message::user("one more question")).unwrap();
        watch(&session);
        session.admit(Message::assistant("done")).unwrap();
        watch(&session);
        session.undo().unwrap();
        watch(&session);
        session.admit(Message::user("thanks")).unwrap();
        watch(&session);
    }
}

#[test]
fn part_of_a_long_film_has_only_what_is_new() {
    let mut builder = FilmBuilder::new(None);
    let mut screen = ScreenFilm::default();
    let mut sizes = Vec::new();
    for call in 0..10_000 {
        builder.extend(2 * call, 0, (2 * call..2 * call + 2).map(small_band));
        sizes.push(screen.add(builder.film()));
    }
    assert_eq!(screen.film, builder.finish());
    // Now and then small bands are joined, and the scene is sent again.
    let long = sizes.iter().filter(|size| **size > 3).count();
    assert!(long < 10_000 / 250, "{long}");
    assert!(sizes.iter().all(|size| *size < 1_300));
}

#[test]
fn film_is_drawn_again_only_if_the_model_counts_differently() {
    let session = worked_session(10);
    let options = options(&session);
    let mut film = LogFilm::new(options.clone());
    assert!(followed(&mut film, &session));
    let text = Message::user("some words of a user ".repeat(500));
    let measure = Measure::of(&text);
    let learned = |percent| {
        let mut calibration = options.calibration.clone();
        for _ in 0..50 {
            calibration.observe(&measure, measure.tokens() * percent / 100);
        }
        FilmOptions {
            calibration,
            ..options.clone()
        }
    };
    assert!(film.looks_like(&learned(101)));
    assert!(!film.looks_like(&learned(120)));
}
