use std::io::{self, Cursor, Read};

use trimtab_store::{CollectOptions, Error, FRAME, OutputForm, Put};

use super::{START, World, noise, session, text};

pub(crate) fn outputs_of_every_size_are_read_back(world: &World) {
    let s = session("s");
    let sizes = [
        0,
        1,
        100,
        FRAME - 1,
        FRAME,
        FRAME + 1,
        3 * FRAME,
        300_000,
        1_000_000,
    ];
    for size in sizes {
        for bytes in [noise(size), text(size / 10).into_bytes()] {
            let found = world.put(&s, "c1", &bytes);
            assert_eq!(found.byte_size(), Some(bytes.len() as u64));
            let lines = bytes.split(|b| *b == b'\n').count();
            assert_eq!(found.line_count(), Some(lines as u64));
            assert_eq!(world.store.get(&s, found.id()).unwrap(), bytes);
        }
    }
}

pub(crate) fn large_outputs_use_several_index_tables(world: &World) {
    let s = session("s");
    let bytes = text(1_000_000).into_bytes();
    assert!(bytes.len() > 17 * 1024 * 1024);
    let found = world.put(&s, "c1", &bytes);
    let stored = world.store.open(&s, found.id(), OutputForm::Whole).unwrap();
    assert_eq!(stored.line_count(), 1_000_001);
    let mut piece = Vec::new();
    let mut reader = stored.reader();
    let mut at = 0;
    while reader
        .by_ref()
        .take(1_000_003)
        .read_to_end(&mut piece)
        .unwrap()
        > 0
    {
        assert!(bytes[at..].starts_with(&piece));
        at += piece.len();
        piece.clear();
    }
    assert_eq!(at, bytes.len());
}

pub(crate) fn streamed_output_gets_the_same_ref(world: &World) {
    let s = session("s");
    for bytes in [
        Vec::new(),
        noise(FRAME),
        noise(500_000),
        text(100_000).into_bytes(),
    ] {
        let whole = world.put(&s, "c1", &bytes);
        // One byte at a time where that is not too slow.
        let mut slow = Slow(
            Cursor::new(&bytes),
            if bytes.len() > FRAME { 777 } else { 1 },
        );
        let read = world
            .store
            .put(&s, Put::from_reader("c1", &mut slow))
            .unwrap();
        assert_eq!(whole, read);
        let again = world
            .store
            .put(&session("t"), Put::from_reader("c1", &mut &bytes[..]))
            .unwrap();
        assert_eq!(world.store.get(&session("t"), again.id()).unwrap(), bytes);
    }
}

struct Slow<'a>(Cursor<&'a Vec<u8>>, usize);

impl Read for Slow<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(self.1);
        self.0.read(&mut into[..len])
    }
}

pub(crate) fn same_put_gives_the_same_ref(world: &World) {
    let (s, t) = (session("s"), session("t"));
    let found = world.put(&s, "c1", "bytes");
    assert_eq!(found.id().len(), 16);
    assert_eq!(found, world.put(&s, "c1", "bytes"));
    assert_eq!(world.store.list(&s).unwrap().len(), 1);
    assert_ne!(found.id(), world.put(&s, "c2", "bytes").id());
    assert_ne!(found.id(), world.put(&s, "c1", "other bytes").id());
    assert_ne!(found.id(), world.put(&t, "c1", "bytes").id());
}

pub(crate) fn equal_bytes_are_stored_once(world: &World) {
    let (s, t) = (session("s"), session("t"));
    let kept = || {
        world
            .store
            .collect(&CollectOptions::default())
            .unwrap()
            .bytes_kept
    };
    let bytes = noise(300_000);
    world.put(&s, "c1", &bytes);
    let once = kept();
    assert!(once >= 300_000);
    world.put(&s, "c2", &bytes);
    assert_eq!(kept(), once, "once in a session");
    let child = session("s/child");
    world.store.link(&child, &s).unwrap();
    world.put(&child, "c1", &bytes);
    assert_eq!(kept(), once, "once in a tree of sessions");
    world.put(&t, "c1", &bytes);
    assert_eq!(kept(), 2 * once, "but once for each owner");
}

pub(crate) fn metadata_has_the_labels_of_the_put(world: &World) {
    let s = session("s");
    let put = Put::new("call/1:x", "one\ntwo")
        .tool("read file")
        .media_type("text/markdown");
    let found = world.store.put(&s, put).unwrap();
    let metadata = world.store.metadata(&s, found.id()).unwrap();
    assert_eq!(metadata.reference, found);
    assert_eq!(metadata.session, s);
    assert_eq!(metadata.labels.call, "call/1:x");
    assert_eq!(metadata.labels.tool, "read file");
    assert_eq!(metadata.labels.media_type, "text/markdown");
    assert_eq!((metadata.byte_size, metadata.line_count), (7, 2));
    assert!(!metadata.has_text);
    assert_eq!(metadata.created, START);
}

pub(crate) fn outputs_are_listed_in_order(world: &World) {
    let s = session("s");
    assert!(world.store.list(&s).unwrap().is_empty());
    let calls = ["c9", "c1", "c5", "c3"];
    for call in calls {
        world.put(&s, call, "the same bytes");
    }
    let listed = world.store.list(&s).unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|found| found.labels.call.as_str())
        .collect();
    assert_eq!(listed, calls);
}

pub(crate) fn text_projection_is_stored_beside_the_bytes(world: &World) {
    let s = session("s");
    let image = noise(200_000);
    let put = Put::new("c1", &image)
        .media_type("image/png")
        .text("a red\nsquare");
    let found = world.store.put(&s, put).unwrap();
    assert_eq!(
        (found.byte_size(), found.line_count()),
        (Some(200_000), Some(2))
    );
    assert_eq!(world.store.get(&s, found.id()).unwrap(), image);
    let text = world.store.open(&s, found.id(), OutputForm::Text).unwrap();
    assert_eq!(text.bytes().unwrap(), b"a red\nsquare");
    assert!(world.store.metadata(&s, found.id()).unwrap().has_text);
}

pub(crate) fn failing_input_stores_nothing(world: &World) {
    let s = session("s");
    let mut failing = noise(200_000).chain_error();
    let error = world
        .store
        .put(&s, Put::from_reader("c1", &mut failing))
        .unwrap_err();
    assert!(matches!(error, Error::Input(_)), "{error}");
    assert!(world.store.list(&s).unwrap().is_empty());
    assert_eq!(
        world
            .store
            .collect(&CollectOptions::default())
            .unwrap()
            .bytes_kept,
        0
    );
}

trait ChainError {
    fn chain_error(self) -> impl Read;
}

impl ChainError for Vec<u8> {
    fn chain_error(self) -> impl Read {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the pipe broke"))
            }
        }
        Cursor::new(self).chain(Fails)
    }
}

pub(crate) fn deleted_output_is_not_found(world: &World) {
    let s = session("s");
    let bytes = noise(200_000);
    let first = world.put(&s, "c1", &bytes);
    let second = world.put(&s, "c2", &bytes);
    world.store.delete(&s, first.id()).unwrap();
    assert!(world.store.get(&s, first.id()).unwrap_err().is_not_found());
    assert!(
        world
            .store
            .delete(&s, first.id())
            .unwrap_err()
            .is_not_found()
    );
    assert_eq!(
        world.store.get(&s, second.id()).unwrap(),
        bytes,
        "the bytes are shared"
    );
    world.store.delete(&s, second.id()).unwrap();
    assert_eq!(
        world
            .store
            .collect(&CollectOptions::default())
            .unwrap()
            .bytes_kept,
        0
    );
    assert_eq!(world.put(&s, "c1", &bytes), first, "and may come back");
}

pub(crate) fn deleting_a_session_keeps_other_sessions(world: &World) {
    let (s, t) = (session("s"), session("t"));
    let gone = world.put(&s, "c1", "bytes");
    let kept = world.put(&t, "c1", "bytes");
    world.store.delete_session(&s).unwrap();
    assert!(world.store.get(&s, gone.id()).unwrap_err().is_not_found());
    assert!(world.store.delete_session(&s).unwrap_err().is_not_found());
    assert_eq!(world.store.get(&t, kept.id()).unwrap(), b"bytes");
    let anew = world.put(&s, "c1", "bytes");
    assert_ne!(anew.id(), gone.id(), "a new session has a new secret");
}

pub(crate) fn many_threads_put_and_get(world: &World) {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || {
                let s = session(&format!("s{}", thread % 2));
                for n in 0..10 {
                    let bytes = text(n * 500 + thread % 2);
                    let found = world.put(&s, &format!("c{n}"), &bytes);
                    let back = world.store.get(&s, found.id()).unwrap();
                    assert_eq!(back, bytes.as_bytes());
                }
            });
        }
    });
    assert_eq!(world.store.list(&session("s0")).unwrap().len(), 10);
    assert_eq!(world.store.list(&session("s1")).unwrap().len(), 10);
}

pub(crate) fn spilled_file_is_private(world: &World) {
    let s = session("s");
    let bytes = noise(300_000);
    let found = world.put(&s, "c1", &bytes);
    assert!(
        world
            .store
            .spill(&s, "nonsense")
            .unwrap_err()
            .is_not_found()
    );
    if !world.keeps_files {
        let refused = world.store.spill(&s, found.id()).unwrap_err();
        assert!(matches!(refused, Error::Unsupported(_)), "{refused}");
        return;
    }
    let spilled = world.store.spill(&s, found.id()).unwrap();
    assert_eq!(std::fs::read(&spilled.path).unwrap(), bytes);
    assert_eq!(spilled.sha256.len(), 64);
    assert_eq!(
        world.store.spill(&s, found.id()).unwrap(),
        spilled,
        "the same path each time"
    );
    std::fs::remove_file(&spilled.path).unwrap();
    assert_eq!(world.store.spill(&s, found.id()).unwrap(), spilled);
    assert_eq!(std::fs::read(&spilled.path).unwrap(), bytes);
    let child = session("child");
    world.store.link(&child, &s).unwrap();
    assert_eq!(world.store.spill(&child, found.id()).unwrap(), spilled);
    world.store.delete(&s, found.id()).unwrap();
    assert!(!spilled.path.exists(), "it goes with its output");
}

pub(crate) fn storing_an_output_again_marks_the_session_as_used(world: &World) {
    let s = session("s");
    let put = || Put::new("c1", b"\x89PNG").text("a picture");
    let first = world.store.put(&s, put()).unwrap();
    world.advance(10 * 60 * 1000);
    assert_eq!(world.store.put(&s, put()).unwrap(), first);
    let again = world.store.put(&s, put().text("another text")).unwrap();
    assert_eq!(again, first);
    let text = world.store.open(&s, first.id(), OutputForm::Text).unwrap();
    assert_eq!(
        text.bytes().unwrap(),
        b"a picture",
        "the text that came first stays"
    );
    assert_eq!(world.store.get(&s, first.id()).unwrap(), b"\x89PNG");
    let info = &world.store.sessions().unwrap()[0];
    assert_eq!(info.used, START + 10 * 60 * 1000);
}
