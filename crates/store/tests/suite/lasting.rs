use std::collections::BTreeSet;
use std::time::Duration;

use trimtab_store::{CollectOptions, Stream};

use super::{World, session};

const HOUR: u64 = 60 * 60 * 1000;

fn all_old() -> CollectOptions {
    CollectOptions {
        older_than: Some(Duration::from_millis(HOUR)),
        max_bytes: Some(0),
        ..CollectOptions::default()
    }
}

pub(crate) fn secret_stays_the_same(world: &World) {
    let secret = world.store.secret().unwrap();
    assert_ne!(secret, [0; 32]);
    world.put(&session("s"), "c1", "bytes");
    world.advance(1_000 * HOUR);
    let gone = world.store.collect(&all_old()).unwrap();
    assert_eq!(gone.sessions.len(), 1);
    assert_eq!(world.store.secret().unwrap(), secret);
    assert_eq!(world.store.sessions().unwrap().len(), 0);
}

pub(crate) fn removals_are_counted(world: &World) {
    let removals = || world.store.status().unwrap().removals;
    let s = session("s");
    let found = world.put(&s, "c1", "bytes");
    world.put(&s, "c2", "more");
    world.store.append(&s, Stream::Log, 0, &[b"entry"]).unwrap();
    world.store.collect(&CollectOptions::default()).unwrap();
    assert_eq!(removals(), 0, "nothing was removed");
    world.store.delete(&s, found.id()).unwrap();
    assert_eq!(removals(), 1);
    world.store.delete_session(&s).unwrap();
    assert_eq!(removals(), 2);
    world.put(&s, "c1", "bytes");
    world.advance(10 * HOUR);
    let mut request = all_old();
    request.dry_run = true;
    world.store.collect(&request).unwrap();
    assert_eq!(removals(), 2);
    world.store.collect(&all_old()).unwrap();
    assert_eq!(removals(), 3);
}

pub(crate) fn leased_sessions_are_kept(world: &World) {
    let (parent, child, other) = (session("parent"), session("child"), session("other"));
    let shown = world.put(&parent, "c1", "shown by the child");
    world.store.link(&child, &parent).unwrap();
    world.put(&other, "c1", "other");
    world.advance(10 * HOUR);
    let leased = [child.clone(), session("not there")];
    let lease = Duration::from_millis(HOUR);
    world.store.lease(&leased, lease).unwrap();
    let report = world.store.collect(&all_old()).unwrap();
    assert_eq!(report.sessions, [other]);
    assert_eq!(
        world.store.get(&child, shown.id()).unwrap(),
        b"shown by the child"
    );
    world.advance(2 * HOUR);
    let report = world.store.collect(&all_old()).unwrap();
    assert_eq!(report.sessions.len(), 2, "the lease is over");
}

pub(crate) fn lease_of_zero_ends_an_earlier_one(world: &World) {
    let s = session("s");
    world.put(&s, "c1", "bytes");
    world.advance(10 * HOUR);
    let (long, none) = (Duration::from_millis(9 * HOUR), Duration::ZERO);
    world.store.lease(std::slice::from_ref(&s), long).unwrap();
    assert_eq!(world.store.collect(&all_old()).unwrap().sessions, []);
    world.store.lease(std::slice::from_ref(&s), none).unwrap();
    assert_eq!(world.store.collect(&all_old()).unwrap().sessions, [s]);
}

pub(crate) fn named_sessions_are_removed_even_if_live(world: &World) {
    let (gone, kept) = (session("gone"), session("kept"));
    let reference = world.put(&gone, "c1", "bytes");
    world.put(&kept, "c1", "bytes");
    world
        .store
        .lease(std::slice::from_ref(&gone), Duration::from_hours(1))
        .unwrap();
    let request = CollectOptions {
        sessions: BTreeSet::from([gone.clone(), session("not there")]),
        scrub: true,
        ..CollectOptions::default()
    };
    let report = world.store.collect(&request).unwrap();
    assert_eq!(report.sessions, std::slice::from_ref(&gone));
    assert_eq!((report.outputs, report.traces_left), (1, false));
    let error = world.store.get(&gone, reference.id()).unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(world.store.list(&kept).unwrap().len(), 1);
}
