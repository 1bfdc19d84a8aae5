use trimtab_store::{Error, LineRange, OutputForm, Query, Stream};

use super::{World, noise, session};

pub(crate) fn foreign_refs_are_not_found(world: &World) {
    let (s, t) = (session("s"), session("t"));
    let found = world.put(&s, "c1", "secret");
    world.put(&t, "c1", "secret");
    let upper = found.id().to_uppercase();
    let hostile = [
        found.id(),
        "",
        "aaaaaaaaaaaaaaaa",
        "../../../etc/passwd",
        "a\0aaaaaaaaaaaaaa",
        upper.as_str(),
        "' OR 1=1 --     ",
        "CON",
        "ääääääää",
        &"x".repeat(100_000),
    ];
    let mut answers = Vec::new();
    for id in hostile {
        let store = &world.store;
        answers.push(store.get(&t, id).unwrap_err());
        answers.push(store.open(&t, id, OutputForm::Text).unwrap_err());
        answers.push(store.metadata(&t, id).unwrap_err());
        answers.push(store.lines(&t, id, LineRange::new(0, 1)).unwrap_err());
        answers.push(store.grep(&t, Some(id), &Query::literal("s")).unwrap_err());
        answers.push(store.delete(&t, id).unwrap_err());
        answers.push(store.spill(&t, id).unwrap_err());
        answers.push(store.get(&session("nobody"), id).unwrap_err());
    }
    for answer in answers {
        assert!(matches!(answer, Error::NotFound), "{answer}");
        assert_eq!(answer.to_string(), "ref not found in this session");
    }
    assert_eq!(world.store.get(&s, found.id()).unwrap(), b"secret");
}

pub(crate) fn child_sessions_redeem_refs_of_their_parents(world: &World) {
    let (top, middle, leaf) = (session("top"), session("middle"), session("leaf"));
    let found = world.put(&top, "c1", "of the top");
    world.store.link(&middle, &top).unwrap();
    world.store.link(&leaf, &middle).unwrap();
    for below in [&middle, &leaf] {
        assert_eq!(world.store.get(below, found.id()).unwrap(), b"of the top");
        let metadata = world.store.metadata(below, found.id()).unwrap();
        assert_eq!(metadata.session, top);
        assert!(
            world
                .store
                .delete(below, found.id())
                .unwrap_err()
                .is_not_found()
        );
    }
    let own = world.put(&leaf, "c1", "of the leaf");
    assert!(world.store.get(&top, own.id()).unwrap_err().is_not_found());
    assert!(world.store.list(&leaf).unwrap().len() == 1, "only its own");
    world.store.delete_session(&middle).unwrap();
    assert!(
        world
            .store
            .get(&leaf, found.id())
            .unwrap_err()
            .is_not_found()
    );
    assert_eq!(world.store.get(&leaf, own.id()).unwrap(), b"of the leaf");
    world.put(&middle, "c1", "anew");
    assert_eq!(
        world.store.parent(&leaf).unwrap(),
        None,
        "the link went with the session"
    );
}

pub(crate) fn session_reads_refs_of_any_number_of_parents(world: &World) {
    let sessions: Vec<_> = (0..100).map(|at| session(&format!("run-{at}"))).collect();
    let first = world.put(&sessions[0], "c1", "of the first");
    for pair in sessions.windows(2) {
        world.store.link(&pair[1], &pair[0]).unwrap();
    }
    let read = world.store.get(&sessions[99], first.id()).unwrap();
    assert_eq!(read, b"of the first");
    let ring = world.store.link(&sessions[0], &sessions[99]);
    assert!(ring.is_err());
}

pub(crate) fn impossible_links_are_rejected(world: &World) {
    let (a, b, c) = (session("a"), session("b"), session("c"));
    world.store.link(&b, &a).unwrap();
    world.store.link(&b, &a).unwrap();
    world.store.link(&c, &b).unwrap();
    for (child, parent) in [(&a, &a), (&a, &b), (&a, &c), (&c, &a)] {
        let error = world.store.link(child, parent).unwrap_err();
        assert!(matches!(error, Error::Link { .. }), "{error}");
    }
}

pub(crate) fn parent_of_a_session_is_returned(world: &World) {
    let (a, b) = (session("a"), session("b"));
    assert_eq!(world.store.parent(&b).unwrap(), None);
    world.store.link(&b, &a).unwrap();
    assert_eq!(world.store.parent(&b).unwrap(), Some(a.clone()));
    assert_eq!(world.store.parent(&a).unwrap(), None);
}

pub(crate) fn redeemers_of_a_ref_are_found_by_prefix(world: &World) {
    let (top, below, other) = (session("a/top"), session("a/below"), session("b/other"));
    let found = world.put(&top, "c1", "of the top");
    world.advance(1_000);
    world.store.link(&below, &top).unwrap();
    world.advance(1_000);
    world.put(&other, "c1", "of the top");
    world.store.touch(&below).unwrap();
    let redeemers = |prefix: &str, id: &str| world.store.sessions_with_ref(prefix, id).unwrap();
    assert_eq!(redeemers("a/", found.id()), [below.clone(), top.clone()]);
    assert_eq!(redeemers("", found.id()), [below.clone(), top]);
    assert_eq!(redeemers("a/b", found.id()), [below]);
    for (prefix, id) in [("b/", found.id()), ("a/", "aaaaaaaaaaaaaaaa"), ("a/", "\0")] {
        assert_eq!(redeemers(prefix, id), [], "{prefix} {id}");
    }
}

/// A session that moves to another tree shares bytes with its former siblings.
pub(crate) fn relinked_session_keeps_shared_bytes(world: &World) {
    let [parent, moved, sibling, other] = ["parent", "moved", "sibling", "other"].map(session);
    world.store.link(&moved, &parent).unwrap();
    world.store.link(&sibling, &parent).unwrap();
    let kept = world.put(&moved, "c1", "shared bytes");
    let deleted = world.put(&sibling, "c1", "shared bytes");
    world.store.delete_session(&parent).unwrap();
    world.store.link(&moved, &other).unwrap();
    world.store.delete(&sibling, deleted.id()).unwrap();
    assert_eq!(world.store.get(&moved, kept.id()).unwrap(), b"shared bytes");
}

pub(crate) fn fork_begins_like_its_origin(world: &World) {
    let (store, origin, fork) = (&world.store, session("origin"), session("fork"));
    let kept = world.put(&origin, "c", "of the origin");
    let log: Vec<Vec<u8>> = (0..600_u32).map(|at| at.to_le_bytes().to_vec()).collect();
    let log: Vec<&[u8]> = log.iter().map(Vec::as_slice).collect();
    store.append(&origin, Stream::Log, 0, &log).unwrap();
    let journal: &[&[u8]] = &[b"one", b"two", b"three"];
    store.append(&origin, Stream::Journal, 0, journal).unwrap();
    let copied = |log_end: usize, journal_end: usize| {
        let of = |stream| store.read(&fork, stream, 0, 1_000).unwrap();
        assert_eq!(of(Stream::Log), log[..log_end]);
        assert_eq!(of(Stream::Journal), journal[..journal_end]);
    };
    store.fork(&origin, &fork, (0, 0), (399, 1)).unwrap();
    copied(399, 1);
    store.fork(&origin, &fork, (399, 1), (500, 3)).unwrap();
    copied(500, 3);
    assert_eq!(store.parent(&fork).unwrap(), Some(origin.clone()));
    assert_eq!(store.get(&fork, kept.id()).unwrap(), b"of the origin");
    // Its own entries follow, and those of the origin no longer do.
    store.append(&fork, Stream::Log, 500, &[b"own"]).unwrap();
    let again = store.fork(&origin, &fork, (500, 3), (600, 3));
    assert!(matches!(again, Err(Error::Conflict { .. })), "{again:?}");
    // A fork has everything that it was promised, or it fails.
    let longer = store.fork(&origin, &session("longer"), (0, 0), (601, 3));
    assert!(matches!(longer, Err(Error::Conflict { .. })), "{longer:?}");
}

pub(crate) fn several_outputs_are_opened_at_once(world: &World) {
    let (parent, child) = (session("parent"), session("child"));
    world.store.link(&child, &parent).unwrap();
    let large = noise(200_000);
    let of_parent = world.put(&parent, "a", &large);
    let of_child = world.put(&child, "b", "small");
    let ids = [of_child.id(), of_parent.id(), of_child.id()];
    let opened = world.store.open_all(&child, &ids).unwrap();
    let bytes: Vec<Vec<u8>> = opened.iter().map(|one| one.bytes().unwrap()).collect();
    assert_eq!(bytes, [b"small".to_vec(), large, b"small".to_vec()]);
    let missing = world.store.open_all(&parent, &ids);
    assert!(missing.unwrap_err().is_not_found());
    assert_eq!(world.store.open_all(&parent, &[]).unwrap().len(), 0);
}
