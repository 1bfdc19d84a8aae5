//! What the cut makes of the things that tools print.

use trimtab_engine::view::structure::{CutRequest, cut};

fn shown(text: &str, cap: u64) -> String {
    let stored = trimtab_testkit::made_ref("r1", None, None);
    let measure = |text: &str| text.len() as u64;
    let how = CutRequest {
        cap,
        measure: &measure,
        stored: Some(&stored),
    };
    cut(text, &how).into_owned()
}

fn numbered(count: usize, line: impl Fn(usize) -> String) -> String {
    (1..=count).map(line).collect::<Vec<_>>().concat()
}

#[test]
fn a_test_run_keeps_its_failures_and_its_end() {
    let passing = numbered(400, |n| format!("test suite::case_{n:03} ... ok\n"));
    let log = format!(
        "running 401 tests\n{passing}test suite::parses_errors ... FAILED\n{passing}\n\
         ---- suite::parses_errors stdout ----\n\
         thread 'main' panicked at src/lib.rs:7:5:\n  left: 1\n right: 2\n\n\
         test result: FAILED. 400 passed; 1 failed\n"
    );
    assert_eq!(
        shown(&log, 620),
        "running 401 tests\n\
         test suite::case_001 ... ok\n\
         test suite::case_002 ... ok\n\
         test suite::case_003 ... ok\n\
         [… lines 5-400 left out, like line 4 but for numbers]\n\
         test suite::case_400 ... ok\n\
         test suite::parses_errors ... FAILED\n\
         test suite::case_001 ... ok\n\
         [… lines 404-801 left out, like line 403 but for numbers]\n\
         test suite::case_400 ... ok\n\
         \n\
         ---- suite::parses_errors stdout ----\n\
         thread 'main' panicked at src/lib.rs:7:5:\n  left: 1\n right: 2\n\n\
         test result: FAILED. 400 passed; 1 failed\n\
         [trimtab: showing 15 of 809 lines (367 B of 22.1 KB); the rest: \
         tool_output_cache({\"ref_id\":\"r1\",\"offset\":4})]"
    );
}

#[test]
fn a_stack_trace_in_a_log_stays_whole() {
    let quiet = numbered(500, |n| {
        format!("{n:04} worker {} took job {}\n", n % 7, n * n)
    });
    let trace = "Traceback (most recent call last):\n  File \"a.py\", line 3, in run\n    \
                 load(path)\n  File \"b.py\", line 9, in load\n    open(path)\n\
                 FileNotFoundError: 'x.toml'\n";
    let view = shown(&format!("{quiet}{trace}{quiet}"), 1_000);
    assert!(view.contains(trace), "{view}");
}

#[test]
fn repeated_lines_fold() {
    let log = format!("start\n{}end\n", "waiting for the lock\n".repeat(800));
    assert_eq!(
        shown(&log, 240),
        "start\n\
         waiting for the lock\n\
         [… lines 3-800 left out, all equal to line 2]\n\
         waiting for the lock\n\
         end\n\
         [trimtab: showing 4 of 802 lines (52 B of 16.4 KB); the rest: \
         tool_output_cache({\"ref_id\":\"r1\",\"offset\":2})]"
    );
}

#[test]
fn an_error_in_the_middle_survives() {
    let quiet = numbered(2_000, |n| {
        format!("step {} of plan {}\n", n % 13, n * 7 % 101)
    });
    let text = format!("{quiet}connection refused by db:5432\n{quiet}");
    assert!(shown(&text, 700).contains("\nconnection refused by db:5432\n"));
}

#[test]
fn a_long_line_keeps_its_start_and_its_end() {
    let text = "alpha beta gamma ".repeat(100);
    assert_eq!(
        shown(&text, 200),
        "alpha beta gamma alpha beta gamma alpha be[… 1,638 bytes left out]ma alpha beta gamma \n\
         [trimtab: showing 1 of 1 lines (62 B of 1.7 KB); the rest: \
         tool_output_cache({\"ref_id\":\"r1\"})]"
    );
}

#[test]
fn a_cap_too_small_for_the_marker_gets_a_shorter_one() {
    let text = "word ".repeat(1_000);
    let forms = [90, 50, 40, 26, 12, 5, 2].map(|cap| shown(&text, cap));
    assert_eq!(
        forms,
        [
            "[trimtab: output left out; tool_output_cache({\"ref_id\":\"r1\"})]",
            "[trimtab: left out; ref=r1]",
            "[trimtab: left out; ref=r1]",
            "[trimtab: output left out]",
            "[left out]",
            "[…]",
            ""
        ]
    );
}
