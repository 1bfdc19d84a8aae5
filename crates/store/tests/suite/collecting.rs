use std::time::Duration;

use trimtab_store::{CollectOptions, SessionId, Stream};

use super::{START, World, noise, session};

const HOUR: u64 = 60 * 60 * 1000;

fn names(sessions: &[SessionId]) -> Vec<&str> {
    sessions.iter().map(SessionId::as_str).collect()
}

pub(crate) fn empty_collection_removes_nothing(world: &World) {
    let found = world.put(&session("s"), "c1", "bytes");
    world.advance(1_000_000 * HOUR);
    let report = world.store.collect(&CollectOptions::default()).unwrap();
    assert_eq!(
        (report.outputs, report.sessions.len(), report.bytes_freed),
        (0, 0, 0)
    );
    assert_eq!(
        world.store.get(&session("s"), found.id()).unwrap(),
        b"bytes"
    );
}

fn older_than(hours: u64) -> CollectOptions {
    CollectOptions {
        older_than: Some(Duration::from_millis(hours * HOUR)),
        ..CollectOptions::default()
    }
}

pub(crate) fn old_sessions_are_removed(world: &World) {
    let (old, touched, parent, child) = (
        session("old"),
        session("touched"),
        session("parent"),
        session("child"),
    );
    let gone = world.put(&old, "c1", noise(200_000));
    let by_touch = world.put(&touched, "c1", "touched");
    let by_child = world.put(&parent, "c1", "named by the child");
    world.store.link(&child, &parent).unwrap();
    world.advance(10 * HOUR);
    world.store.touch(&touched).unwrap();
    world
        .store
        .append(&child, Stream::Log, 0, &[b"still here"])
        .unwrap();
    world.advance(HOUR);
    let report = world.store.collect(&older_than(5)).unwrap();
    assert_eq!(names(&report.sessions), ["old"]);
    assert_eq!(report.outputs, 1);
    assert!(report.bytes_freed >= 200_000);
    assert!(world.store.get(&old, gone.id()).unwrap_err().is_not_found());
    assert_eq!(
        world.store.get(&touched, by_touch.id()).unwrap(),
        b"touched"
    );
    assert_eq!(
        world.store.get(&child, by_child.id()).unwrap(),
        b"named by the child"
    );
}

pub(crate) fn dry_run_changes_nothing(world: &World) {
    let s = session("s");
    let found = world.put(&s, "c1", noise(200_000));
    world.advance(10 * HOUR);
    let mut request = older_than(5);
    request.dry_run = true;
    let dry = world.store.collect(&request).unwrap();
    assert_eq!((names(&dry.sessions), dry.outputs), (vec!["s"], 1));
    assert_eq!(world.store.get(&s, found.id()).unwrap(), noise(200_000));
    request.dry_run = false;
    assert_eq!(
        world.store.collect(&request).unwrap(),
        dry,
        "it said the truth"
    );
    assert!(world.store.get(&s, found.id()).unwrap_err().is_not_found());
}

pub(crate) fn size_limit_removes_the_oldest_sessions(world: &World) {
    for name in ["first", "second", "third"] {
        world.put(&session(name), "c1", noise(200_000));
        world.advance(2 * HOUR);
    }
    // The first comes back into use.
    world.store.touch(&session("first")).unwrap();
    let mut request = CollectOptions {
        max_bytes: Some(450_000),
        ..CollectOptions::default()
    };
    let report = world.store.collect(&request).unwrap();
    assert_eq!(names(&report.sessions), ["second"]);
    assert!(report.bytes_kept <= 450_000);
    request.max_bytes = Some(0);
    let report = world.store.collect(&request).unwrap();
    assert_eq!(names(&report.sessions), ["third"], "the first is live");
    assert!(report.bytes_kept >= 200_000);
}

pub(crate) fn sessions_are_listed(world: &World) {
    let (a, b) = (session("a"), session("b"));
    world.put(&b, "c1", "12345");
    world.put(&b, "c2", "12345");
    world.advance(HOUR);
    world.store.link(&a, &b).unwrap();
    let infos = world.store.sessions().unwrap();
    assert_eq!(infos.len(), 2);
    assert_eq!(
        (&infos[0].session, &infos[0].parent),
        (&a, &Some(b.clone()))
    );
    assert_eq!((infos[1].outputs, infos[1].byte_size), (2, 10));
    assert_eq!((infos[1].created, infos[1].used), (START, START + HOUR));
}

pub(crate) fn age_of_a_prefix_replaces_the_general_age(world: &World) {
    let hours = |count: u64| Duration::from_hours(count);
    let names = ["a/old", "b/old", "b/kept/old", "c/old"].map(session);
    for name in &names {
        world.put(name, "c", name.as_str());
    }
    world.advance(u64::try_from(hours(10).as_millis()).unwrap());
    let request = CollectOptions {
        older_than: Some(hours(20)),
        older_than_by_prefix: vec![
            ("b/kept/".to_owned(), None),
            ("b/".to_owned(), Some(hours(5))),
            ("c/".to_owned(), Some(hours(15))),
        ],
        ..CollectOptions::default()
    };
    let done = world.store.collect(&request).unwrap();
    assert_eq!(done.sessions, [session("b/old")]);
    assert_eq!(world.store.sessions().unwrap().len(), 3);
}
