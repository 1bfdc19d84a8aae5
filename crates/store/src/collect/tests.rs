use super::*;

fn session(
    name: &str,
    parent: Option<&str>,
    used: u64,
    outputs: &[(&str, u64)],
) -> SnapshotSession {
    SnapshotSession {
        id: id(name),
        parent: parent.map(id),
        used,
        leased: false,
        stream_bytes: 1,
        outputs: outputs.iter().map(|(_, blob)| vec![*blob]).collect(),
    }
}

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn picture(sessions: Vec<SnapshotSession>) -> StoreSnapshot {
    let blobs = sessions
        .iter()
        .flat_map(|session| &session.outputs)
        .flatten()
        .map(|blob| (*blob, 100))
        .collect();
    StoreSnapshot {
        sessions,
        blobs,
        ..StoreSnapshot::default()
    }
}

fn names(removal: &RemovalPlan) -> Vec<&str> {
    removal.sessions.iter().map(SessionId::as_str).collect()
}

fn older_than(millis: u64) -> CollectOptions {
    CollectOptions {
        older_than: Some(Duration::from_millis(millis)),
        ..CollectOptions::default()
    }
}

#[test]
fn empty_request_removes_nothing() {
    let picture = picture(vec![session("a", None, 0, &[("r1", 1)])]);
    let removal = decide(&picture, &CollectOptions::default(), 1_000_000);
    assert!(removal.sessions.is_empty());
    assert_eq!(removal.report.bytes_kept, 101);
}

#[test]
fn age_is_that_of_the_last_use() {
    let picture = picture(vec![
        session("old", None, 100, &[("r1", 1)]),
        session("new", None, 900, &[("r2", 2)]),
    ]);
    let removal = decide(&picture, &older_than(500), 1_000);
    assert_eq!(names(&removal), ["old"]);
    assert_eq!(removal.report.outputs, 1);
    assert_eq!(removal.report.bytes_freed, 101);
    assert_eq!(removal.report.bytes_kept, 101);
}

#[test]
fn live_session_protects_its_parents() {
    let picture = picture(vec![
        session("top", None, 100, &[]),
        session("middle", Some("top"), 100, &[]),
        session("leaf", Some("middle"), 900, &[]),
        session("other leaf", Some("middle"), 100, &[]),
    ]);
    let removal = decide(&picture, &older_than(500), 1_000);
    assert_eq!(names(&removal), ["other leaf"]);
}

#[test]
fn shared_blobs_are_freed_with_their_last_holder() {
    let picture = picture(vec![
        session("a", None, 100, &[("r1", 1)]),
        session("b", None, 900, &[("r2", 1)]),
    ]);
    let removal = decide(&picture, &older_than(500), 1_000);
    assert_eq!(removal.report.bytes_freed, 1, "only the log");
}

#[test]
fn size_limit_removes_oldest_and_skips_live_sessions() {
    let picture = picture(vec![
        session("newest", None, 990, &[("r3", 3)]),
        session("oldest", None, 100, &[("r1", 1)]),
        session("middle", None, 200, &[("r2", 2)]),
    ]);
    let mut request = CollectOptions {
        max_bytes: Some(250),
        live_within: Duration::from_millis(100),
        ..CollectOptions::default()
    };
    assert_eq!(names(&decide(&picture, &request, 1_000)), ["oldest"]);
    request.max_bytes = Some(0);
    let removal = decide(&picture, &request, 1_000);
    assert_eq!(names(&removal), ["oldest", "middle"]);
    assert_eq!(removal.report.bytes_kept, 101);
}

#[test]
fn cyclic_parents_terminate() {
    let picture = picture(vec![
        session("a", Some("b"), 100, &[]),
        session("b", Some("a"), 900, &[]),
    ]);
    assert!(
        decide(&picture, &older_than(500), 1_000)
            .sessions
            .is_empty()
    );
}
