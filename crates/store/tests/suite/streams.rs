use std::sync::atomic::{AtomicU64, Ordering};

use trimtab_store::{Error, Stream};

use super::{World, noise, session};

pub(crate) fn entries_are_read_in_order(world: &World) {
    let s = session("s");
    let store = &world.store;
    assert_eq!(store.position(&s, Stream::Log).unwrap(), 0);
    assert!(store.read(&s, Stream::Log, 0, 10).unwrap().is_empty());
    assert_eq!(
        store
            .append(&s, Stream::Log, 0, &[b"one", b"", b"three"])
            .unwrap(),
        3
    );
    assert_eq!(store.append(&s, Stream::Log, 3, &[b"four"]).unwrap(), 4);
    assert_eq!(store.append(&s, Stream::Log, 4, &[]).unwrap(), 4);
    let all = store.read(&s, Stream::Log, 0, usize::MAX).unwrap();
    assert_eq!(all, [&b"one"[..], b"", b"three", b"four"]);
    assert_eq!(
        store.read(&s, Stream::Log, 1, 2).unwrap(),
        [&b""[..], b"three"]
    );
    assert!(store.read(&s, Stream::Log, 4, 10).unwrap().is_empty());
    assert!(store.read(&s, Stream::Log, 99, 10).unwrap().is_empty());
}

pub(crate) fn stale_position_is_a_conflict(world: &World) {
    let s = session("s");
    world
        .store
        .append(&s, Stream::Journal, 0, &[b"plan"])
        .unwrap();
    for stale in [0, 2, u64::MAX] {
        let error = world
            .store
            .append(&s, Stream::Journal, stale, &[b"late"])
            .unwrap_err();
        let told = matches!(error, Error::Conflict { stream: "journal", expected, actual: 1 } if expected == stale);
        assert!(told, "{error}");
    }
    assert_eq!(
        world.store.read(&s, Stream::Journal, 0, 10).unwrap(),
        [b"plan"]
    );
}

pub(crate) fn streams_and_sessions_are_separate(world: &World) {
    let (s, t) = (session("s"), session("t"));
    world
        .store
        .append(&s, Stream::Log, 0, &[b"message"])
        .unwrap();
    world
        .store
        .append(&s, Stream::Journal, 0, &[b"plan"])
        .unwrap();
    world.store.append(&t, Stream::Log, 0, &[b"other"]).unwrap();
    assert_eq!(
        world.store.read(&s, Stream::Log, 0, 9).unwrap(),
        [b"message"]
    );
    assert_eq!(
        world.store.read(&s, Stream::Journal, 0, 9).unwrap(),
        [b"plan"]
    );
    world.store.delete_session(&s).unwrap();
    assert_eq!(world.store.position(&s, Stream::Log).unwrap(), 0);
    assert_eq!(world.store.read(&t, Stream::Log, 0, 9).unwrap(), [b"other"]);
}

pub(crate) fn one_of_two_concurrent_writers_gets_a_conflict(world: &World) {
    let won = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for writer in 0..4_u8 {
            let won = &won;
            scope.spawn(move || {
                let s = session("s");
                for position in 0..50 {
                    match world.store.append(&s, Stream::Log, position, &[&[writer]]) {
                        Ok(next) => {
                            assert_eq!(next, position + 1);
                            won.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Error::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let position = world.store.position(&session("s"), Stream::Log).unwrap();
    assert_eq!(position, won.load(Ordering::Relaxed));
    assert!(position >= 1);
}

pub(crate) fn large_entries_are_read_back(world: &World) {
    let s = session("s");
    let entries = [
        noise(1_000_000),
        vec![b'a'; 1_000_000],
        vec![0; 255],
        vec![0; 256],
    ];
    let slices: Vec<&[u8]> = entries.iter().map(Vec::as_slice).collect();
    world.store.append(&s, Stream::Log, 0, &slices).unwrap();
    assert_eq!(world.store.read(&s, Stream::Log, 0, 10).unwrap(), entries);
}
