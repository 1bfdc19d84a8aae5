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
        outputs: outputs
            .iter()
            .map(|(id, blob)| SnapshotOutput {
                id: (*id).to_owned(),
                blobs: vec![*blob],
            })
            .collect(),
    }
}

fn id(name: &str) -> SessionId {
    SessionId::new(name).unwrap()
}

fn picture(sessions: Vec<SnapshotSession>) -> StoreSnapshot {
    let blobs = sessions
        .iter()
        .flat_map(|session| &session.outputs)
        .flat_map(|output| &output.blobs)
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
    assert!(removal.sessions.is_empty() && removal.outputs.is_empty());
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
fn output_stays_while_a_child_names_it() {
    let picture = picture(vec![
        session("top", None, 0, &[("r1", 1), ("r2", 2), ("r3", 3)]),
        session("child", Some("top"), 0, &[("r4", 4)]),
    ]);
    let reach = |sessions: &[(&str, &[&str])]| CollectOptions {
        reachable: Some(
            sessions
                .iter()
                .map(|(name, ids)| (id(name), ids.iter().map(|id| (*id).to_owned()).collect()))
                .collect(),
        ),
        ..CollectOptions::default()
    };
    let all = reach(&[("top", &["r1"]), ("child", &["r2", "r4"])]);
    let removal = decide(&picture, &all, 1_000);
    assert_eq!(removal.outputs, [(id("top"), "r3".to_owned())]);
    let only_top = decide(&picture, &reach(&[("top", &[])]), 1_000);
    assert!(only_top.outputs.is_empty(), "the child was not asked");
    let only_child = decide(&picture, &reach(&[("child", &[])]), 1_000);
    assert_eq!(only_child.outputs, [(id("child"), "r4".to_owned())]);
}

#[test]
fn removed_bytes_are_counted_once() {
    let picture = picture(vec![session("a", None, 100, &[("r1", 1), ("r2", 2)])]);
    let request = CollectOptions {
        reachable: Some(BTreeMap::from([(id("a"), BTreeSet::new())])),
        max_bytes: Some(0),
        live_within: Duration::ZERO,
        ..CollectOptions::default()
    };
    let removal = decide(&picture, &request, 1_000);
    assert_eq!(removal.report.outputs, 2);
    assert_eq!(removal.report.bytes_freed, 201);
    assert!(removal.outputs.is_empty(), "they go with their session");
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
