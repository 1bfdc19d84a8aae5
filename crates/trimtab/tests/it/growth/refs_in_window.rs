//! A session of thousands of rounds is compacted hundreds of times. Its window must not fill with
//! the refs of what was removed, and everything must stay in reach.

use std::collections::HashSet;

use trimtab::engine::policy::PRESETS;
use trimtab::model::Dialect;
use trimtab::store::SessionId;

use super::talk::{Room, Talk};
use crate::lossless::{in_reach, stored, words};

/// The rounds before the windows that are compared.
const EARLY: usize = 900;
const LATE: usize = 2_700;

fn session() -> SessionId {
    SessionId::new("growth").unwrap()
}

/// The most refs in one of the next windows. There are enough of them for two compactions under
/// every preset; one in ten is read.
fn most_refs(talk: &mut Talk) -> usize {
    let counts = (0..40).map(|_| {
        (0..10).for_each(|_| {
            talk.call();
        });
        let window = talk.window().join("\n");
        let refs: HashSet<&str> = words(&window).collect();
        let is_ref = |id: &&&str| stored(&*talk.store, &session(), id).is_some();
        refs.iter().filter(is_ref).count()
    });
    counts.max().unwrap()
}

/// The numbers of the rounds whose outputs are neither in the window nor behind its refs.
fn lost(talk: &mut Talk, rounds: usize) -> Vec<usize> {
    let window = talk.window().join("\n");
    let read = in_reach(&*talk.store, &session(), window);
    let found: HashSet<&str> = read
        .split('"')
        .filter(|key| key.starts_with("key-"))
        .collect();
    let is_lost = |round: &usize| !found.contains(format!("key-{round:05}-9").as_str());
    (0..rounds).filter(is_lost).collect()
}

#[test]
fn refs_of_a_window_stay_few_and_reach_all_outputs_under_every_preset() {
    let presets = PRESETS.iter().filter(|preset| preset.fit());
    for (at, preset) in presets.enumerate() {
        let name = preset.name;
        let talk = Talk::new(name, Dialect::ALL[at % 3], Room::Compacts);
        let mut talk = talk.at_round(EARLY);
        let early = most_refs(&mut talk);
        let mut talk = talk.at_round(LATE);
        let late = most_refs(&mut talk);
        // Refs are drawn at random, so compactions happen at other rounds in each run, and a window
        // has a few refs more or less. If refs were never dropped, there would be three times as
        // many.
        assert!(
            late * 2 <= early * 3 + 4,
            "{name}: {early} refs in a window, then {late}"
        );
        let lost = lost(&mut talk, LATE);
        assert!(
            lost.is_empty(),
            "{name}: outputs of {} rounds are out of reach, first {:?}",
            lost.len(),
            &lost[..lost.len().min(5)]
        );
    }
}
