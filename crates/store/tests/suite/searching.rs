use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use trimtab_store::{Error, FRAME, Put, Query, SearchResults, SearchStop, SessionId};

use super::{World, noise, session, text};

const FIVE: &str = "alpha\nbeta\ngamma\ndelta\nalpha.2";

/// Line numbers of the matches.
fn numbers(found: &SearchResults) -> Vec<u64> {
    found.matches.iter().map(|found| found.line).collect()
}

fn search(world: &World, text: impl AsRef<[u8]>, query: &Query<'_>) -> SearchResults {
    let s = session("s");
    let found = world.put(&s, "c1", text);
    world.store.grep(&s, Some(found.id()), query).unwrap()
}

pub(crate) fn literal_pattern_is_not_a_regex(world: &World) {
    assert_eq!(
        numbers(&search(world, FIVE, &Query::literal("alpha"))),
        [0, 4]
    );
    assert_eq!(
        numbers(&search(world, FIVE, &Query::literal("alpha.2"))),
        [4]
    );
    assert_eq!(
        numbers(&search(world, FIVE, &Query::literal("a.p"))),
        [0_u64; 0]
    );
    let mut shouted = Query::literal("ALPHA");
    assert!(search(world, FIVE, &shouted).matches.is_empty());
    shouted.ignore_case = true;
    assert_eq!(numbers(&search(world, FIVE, &shouted)), [0, 4]);
}

pub(crate) fn regex_pattern_matches(world: &World) {
    let found = search(world, FIVE, &Query::regex("^(beta|delta)$"));
    assert_eq!(numbers(&found), [1, 3]);
    assert_eq!(found.matches[0].lines[0].text(), "beta");
    assert_eq!(found.stopped, None);
    assert_eq!(
        numbers(&search(world, "über\nuber", &Query::regex("^ü\\w+$"))),
        [0]
    );
}

pub(crate) fn each_match_has_its_context(world: &World) {
    let found = search(world, FIVE, &Query::regex("a$").context(1, 1));
    let shown: Vec<Vec<u64>> = found
        .matches
        .iter()
        .map(|found| found.lines.iter().map(|line| line.number).collect())
        .collect();
    assert_eq!(
        shown,
        [vec![0, 1], vec![0, 1, 2], vec![1, 2, 3], vec![2, 3, 4]]
    );
    let own = found.matches[1].lines.iter().filter(|line| line.matched);
    assert_eq!(own.map(|line| line.number).collect::<Vec<_>>(), [1]);
}

pub(crate) fn reached_limits_are_reported(world: &World) {
    let found = search(world, FIVE, &Query::literal("alpha").max_matches(2));
    assert_eq!((numbers(&found), found.stopped), (vec![0, 4], None));
    let found = search(world, FIVE, &Query::literal("alpha").max_matches(1));
    assert_eq!(
        (numbers(&found), found.stopped),
        (vec![0], Some(SearchStop::Matches))
    );
    // The last match still gets the lines behind it, although they match too.
    let found = search(
        world,
        "a1\na2\na3\na4\n",
        &Query::literal("a").max_matches(1).context(0, 2),
    );
    assert_eq!(found.matches[0].lines.len(), 3);
    let mut large = Query::literal("x").max_matches(usize::MAX);
    large.max_line_bytes = FRAME;
    let lines = vec!["x".repeat(10_000); 500].join("\n");
    let found = search(world, lines, &large);
    assert_eq!(found.stopped, Some(SearchStop::Bytes));
    assert!(found.matches.len() < 120, "{}", found.matches.len());
}

pub(crate) fn search_stops_when_its_time_is_up(world: &World) {
    let asked = Cell::new(0);
    let expired = || {
        asked.set(asked.get() + 1);
        asked.get() > 3
    };
    let text = text(100_000) + "needle";
    let found = search(world, &text, &Query::literal("needle").until(&expired));
    assert_eq!(
        (found.matches.len(), found.stopped),
        (0, Some(SearchStop::Expired))
    );
    let found = search(world, &text, &Query::literal("needle").until(&|| false));
    assert_eq!((numbers(&found), found.stopped), (vec![100_000], None));
}

pub(crate) fn all_outputs_of_a_session_are_searched(world: &World) {
    let (s, t) = (session("s"), session("t"));
    let first = world.put(&s, "c1", "one needle");
    world.put(&s, "c2", "nothing");
    let third = world.put(&s, "c3", "a\nb\nneedle");
    world.put(&t, "c1", "needle of another session");
    let found = world
        .store
        .grep(&s, None, &Query::literal("needle"))
        .unwrap();
    let ids: Vec<_> = found
        .matches
        .iter()
        .map(|found| found.id.as_str())
        .collect();
    assert_eq!(ids, [first.id(), third.id()]);
    let capped = Query::literal("needle").max_matches(1);
    let found = world.store.grep(&s, None, &capped).unwrap();
    assert_eq!(
        (found.matches.len(), found.stopped),
        (1, Some(SearchStop::Matches))
    );
    let unknown = world.store.grep(&session("nobody"), None, &capped).unwrap();
    assert!(unknown.matches.is_empty());
    let error = world.store.grep(&t, Some(first.id()), &capped).unwrap_err();
    assert!(error.is_not_found());
}

pub(crate) fn binary_outputs_are_searched(world: &World) {
    let mut bytes = noise(200_000);
    bytes.splice(150_000..150_006, *b"needle");
    let found = search(world, &bytes, &Query::literal("needle").context(2, 2));
    assert_eq!(found.matches.len(), 1);
    let before = bytes[..150_000].split(|b| *b == b'\n').count() - 1;
    assert_eq!(numbers(&found), [before as u64]);
    let line = found.matches[0]
        .lines
        .iter()
        .find(|line| line.matched)
        .unwrap();
    assert!(line.text().contains("needle"));
}

pub(crate) fn invalid_patterns_are_rejected(world: &World) {
    let s = session("s");
    let found = world.put(&s, "c1", FIVE);
    let long = "x".repeat(5_000);
    for query in [
        Query::regex("("),
        Query::regex("a\\"),
        Query::literal(""),
        Query::regex(""),
        Query::literal("two\nlines"),
        Query::literal(long.as_str()),
        Query::regex(&long[..257]),
    ] {
        let error = world.store.grep(&s, Some(found.id()), &query).unwrap_err();
        assert!(
            matches!(error, Error::Pattern { .. }),
            "{:?}: {error}",
            query.pattern
        );
    }
}

pub(crate) fn expensive_patterns_are_rejected(world: &World) {
    let s = session("s");
    let found = world.put(&s, "c1", "ab".repeat(FRAME));
    for pattern in [
        "(?:[ab]{1000}){7}c",
        "(?:[ab]{1000}){60}c",
        "(?u)(?:\\w{100}){10}",
    ] {
        let error = world
            .store
            .grep(&s, Some(found.id()), &Query::regex(pattern))
            .unwrap_err();
        assert!(matches!(error, Error::Pattern { .. }), "{pattern}: {error}");
    }
    for pattern in ["(a+)+$", "(?:a|aa)+c", r"\b\w{1,200}Error\b"] {
        world
            .store
            .grep(&s, Some(found.id()), &Query::regex(pattern))
            .unwrap();
    }
}

pub(crate) fn long_lines_are_searched_in_windows(world: &World) {
    // A needle across every place at which a window could end, and one in the open.
    for at in [2 * FRAME - 3, 3 * FRAME - 6, 4 * FRAME, 5 * FRAME + 1000] {
        let mut line = vec![b'x'; 6 * FRAME];
        line.splice(at..at + 6, *b"needle");
        let bytes = [b"first\n", &line[..], b"\nlast"].concat();
        let found = search(world, &bytes, &Query::literal("needle").context(1, 1));
        assert_eq!(numbers(&found), [1], "at {at}");
        let lines = &found.matches[0].lines;
        let hit = lines.iter().find(|line| line.matched).unwrap();
        assert!(hit.clipped && hit.bytes.len() <= 2_000);
        let place = hit.text().find("needle").unwrap() as u64 + hit.start;
        assert_eq!(place, 6 + at as u64, "the place is true");
        assert_eq!(lines.last().unwrap().text(), "last");
    }
    let many = format!("{}\nneedle", "x".repeat(10 * FRAME));
    assert_eq!(
        numbers(&search(world, many, &Query::literal("needle"))),
        [1]
    );
}

pub(crate) fn crlf_line_ends_are_handled(world: &World) {
    let found = search(world, "one\r\ntwo\r\n", &Query::regex("^two$"));
    assert_eq!(numbers(&found), [1]);
    assert_eq!(found.matches[0].lines[0].text(), "two");
    assert_eq!(
        numbers(&search(world, "a\r\nb\r\n", &Query::literal("b\r"))),
        [1]
    );
}

pub(crate) fn text_projections_are_searched(world: &World) {
    let s = session("s");
    let put = Put::new("c1", b"\x89PNG needle")
        .media_type("image/png")
        .text("a\nred square");
    let found = world.store.put(&s, put).unwrap();
    let grep = |pattern| {
        world
            .store
            .grep(&s, Some(found.id()), &Query::literal(pattern))
            .unwrap()
    };
    assert_eq!(numbers(&grep("square")), [1]);
    assert!(grep("needle").matches.is_empty());
}

pub(crate) fn search_agrees_with_a_naive_search(world: &World) {
    let s: SessionId = session("s");
    let piece = prop_oneof![
        "[ab]{0,3}",
        Just("needle".to_owned()),
        Just("x".repeat(350))
    ];
    let line = prop::collection::vec(piece, 0..5).prop_map(|pieces| pieces.concat());
    let case = (
        prop::collection::vec(line, 0..250),
        "[ab]{1,3}|needle",
        0..3_usize,
        0..3_usize,
    );
    let mut runner = TestRunner::new(ProptestConfig::with_cases(60));
    let result = runner.run(&case, |(lines, pattern, before, after)| {
        let text = lines.join("\n");
        let found = world.put(&s, "c1", &text);
        let query = Query::literal(pattern.as_str())
            .context(before, after)
            .max_matches(100_000);
        let got = world.store.grep(&s, Some(found.id()), &query).unwrap();
        // A final empty line is no line for the searcher.
        let lines: Vec<&str> = text.lines().collect();
        let expected = (0..lines.len()).filter(|n| lines[*n].contains(&pattern));
        let expected: Vec<usize> = expected.collect();
        for (found, n) in got.matches.iter().zip(&expected) {
            let shown: Vec<&[u8]> = found.lines.iter().map(|line| &line.bytes[..]).collect();
            let last = (n + after + 1).min(lines.len());
            let context = lines[n.saturating_sub(before)..last]
                .iter()
                .map(|line| line.as_bytes());
            prop_assert_eq!(shown, context.collect::<Vec<_>>());
            prop_assert_eq!(found.line, *n as u64);
        }
        prop_assert_eq!(got.stopped, None);
        prop_assert_eq!(got.matches.len(), expected.len());
        Ok(())
    });
    result.unwrap();
}

/// Text on which a pattern needs ever new states.
fn costly_text(len: usize) -> Vec<u8> {
    let mut text: Vec<u8> = noise(len);
    for (at, byte) in text.iter_mut().enumerate() {
        let newline = at % 65_536 == 65_535;
        *byte = if newline {
            b'\n'
        } else {
            b"ab"[usize::from(*byte & 1)]
        };
    }
    text
}

pub(crate) fn search_gives_up_if_it_becomes_too_expensive(world: &World) {
    let s = session("s");
    let first = world.put(&s, "c1", "ababac\n");
    world.put(&s, "c2", costly_text(4 << 20));
    world.put(&s, "c3", "never reached: ababac\n");
    let pattern = "[ab]*a[ab]{200}c|bac";
    let found = world.store.grep(&s, None, &Query::regex(pattern)).unwrap();
    assert_eq!(found.stopped, Some(SearchStop::Work));
    let ids: Vec<&str> = found
        .matches
        .iter()
        .map(|found| found.id.as_str())
        .collect();
    assert_eq!(ids, [first.id()], "what was found before is told");
    // The same text is no trouble for other patterns.
    let found = world.store.grep(&s, None, &Query::regex("[ab]*c")).unwrap();
    assert_eq!((found.stopped, found.matches.len()), (None, 2));
}

pub(crate) fn work_is_counted_over_all_outputs(world: &World) {
    let s = session("s");
    for call in ["c1", "c2", "c3"] {
        world.put(&s, call, text(10_000) + "needle\n" + call);
    }
    let size = world.store.list(&s).unwrap()[0].byte_size;
    for (mut query, cost) in [(Query::literal("needle"), 1), (Query::regex("ne+dle"), 4)] {
        query.max_work = u64::MAX;
        let found = world.store.grep(&s, None, &query).unwrap();
        assert_eq!((found.stopped, found.matches.len()), (None, 3));
        query.max_work = (2 * size + 65_536) * cost;
        let found = world.store.grep(&s, None, &query).unwrap();
        assert_eq!(
            (found.stopped, found.matches.len()),
            (Some(SearchStop::Work), 2)
        );
    }
}
