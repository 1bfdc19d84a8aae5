use std::sync::Arc;

use trimtab_engine::policy::Policy;
use trimtab_model::{Call, Message};
use trimtab_store::{MemoryStore, SessionId};

use super::*;
use crate::session::{Moment, Session, Setup};

/// A session of many calls with large outputs in a small window.
fn worked_session(calls: usize) -> Session {
    let mut setup = Setup::new(Policy::preset("steady").unwrap());
    setup.limits.window = Some(20_000);
    let id = SessionId::new("film").unwrap();
    let mut session = Session::open(Arc::new(MemoryStore::new()), id, setup).unwrap();
    session.admit(Message::user("look at all files")).unwrap();
    for call in 0..calls {
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

fn film(session: &Session) -> Film {
    let projection = session.projection();
    film_of(
        &projection.measured_log(),
        projection.journal().entries(),
        session.setup(),
    )
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
