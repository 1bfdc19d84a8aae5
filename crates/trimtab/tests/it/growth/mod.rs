//! A call costs what is new: one more call of a long session takes as much work as one of a
//! short session, under every preset. Work is counted (`model::work`), not timed.

mod refs_in_window;
mod talk;

use std::sync::Arc;

use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::model::work::counted;
use trimtab::model::{Call, Dialect, Message};
use trimtab::session::{Moment, Session, Setup};
use trimtab::store::{MemoryStore, SessionId};
use trimtab_testkit::is_long;

use talk::{Room, Talk};

/// Calls that are counted: several compactions are among them.
const CALLS: usize = 600;
/// The most that the later call may take, in percent of the earlier one.
const MOST_PERCENT: u64 = 130;

/// The units of work of one more call, at the median and on average.
#[derive(Debug)]
struct Units {
    median: u64,
    mean: u64,
}

fn units(talk: &mut Talk) -> Units {
    let mut each: Vec<u64> = (0..CALLS).map(|_| counted(|| talk.call()).1).collect();
    each.sort_unstable();
    Units {
        median: each[CALLS / 2],
        mean: each.iter().sum::<u64>() / CALLS as u64,
    }
}

#[test]
fn one_more_call_costs_the_same_however_long_the_log_is() {
    let (early, late) = (100, if is_long() { 5_000 } else { 1_000 });
    let mut dearer = Vec::new();
    let presets = PRESETS.iter().filter(|preset| preset.fit());
    let rooms = presets.flat_map(|preset| Room::ALL.map(|room| (preset, room)));
    for (at, (preset, room)) in rooms.enumerate() {
        // The short form takes the dialects in turn.
        let first = if is_long() { 0 } else { at % 3 };
        let last = if is_long() { 2 } else { first };
        for dialect in &Dialect::ALL[first..=last] {
            let talk = Talk::new(preset.name, *dialect, room);
            let mut talk = talk.at_round(early);
            let first = units(&mut talk);
            let mut talk = talk.at_round(late);
            let later = units(&mut talk);
            let grows = |first: u64, later: u64| later * 100 > first * MOST_PERCENT;
            if grows(first.median, later.median) || grows(first.mean, later.mean) {
                let name = preset.name;
                dearer.push(format!(
                    "{name}, {room:?}, {dialect}: {first:?}, then {later:?}"
                ));
            }
        }
    }
    assert!(dearer.is_empty(), "{dearer:#?}");
}

#[test]
fn long_output_is_archived_behind_short_ones_that_are_not() {
    let setup = Setup::new(Policy::preset("archive").unwrap());
    let store = Arc::new(MemoryStore::new());
    let mut session = Session::open(store, SessionId::new("s").unwrap(), setup).unwrap();
    session.admit(Message::user("begin")).unwrap();
    let long = "a long line of output\n".repeat(500);
    let mut archived = 0;
    for round in 0..40 {
        let id = format!("call_{round}");
        let asks = Message::assistant("").with_call(Call::new(&id, "read", "{}"));
        session.admit(asks).unwrap();
        let text = if round == 20 { &long } else { "short" };
        session.admit(Message::output(&id, text)).unwrap();
        if let Some(pending) = session.check(Moment::AfterOutputs).unwrap() {
            archived += usize::from(session.finish(pending).unwrap());
        }
    }
    let window = session.window().unwrap();
    let shown = window.messages().any(|message| message.text() == long);
    assert_eq!((archived, shown), (1, false));
}
