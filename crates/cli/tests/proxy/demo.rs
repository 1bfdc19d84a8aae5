//! `trimtab demo`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{finished, kill, say, texts, trimtab};

#[test]
fn demo_session_fits_and_costs_less() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["demo", "--once", "--json", "--listen", "127.0.0.1:0"];
    let output = finished(folder.path(), &args);
    let (stdout, stderr) = texts(&output);
    assert!(output.status.success(), "{stderr}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let number = |pointer: &str| report.pointer(pointer).unwrap().as_f64().unwrap();
    assert_eq!(report["violations"], serde_json::json!([]));
    assert!(report["calls"].as_array().unwrap().len() >= 36);
    assert!(report["overflows_at"].as_u64().is_some());
    assert!(number("/with/largest") <= number("/window"));
    assert!(
        number("/with/tokens") < number("/without/tokens") * 0.6,
        "{stdout}"
    );
    assert!(
        number("/with/dollars") < number("/without/dollars"),
        "{stdout}"
    );
    // The provider's cache keeps hitting.
    assert!(
        number("/with/cached") > number("/with/tokens") * 0.6,
        "{stdout}"
    );
    assert!(number("/retrievals") >= 1.0, "{stdout}");
    assert!(number("/took_ms") < 60_000.0);
    // What the proxy itself says: a call that does not fit counts as a full window there.
    let calls = report["calls"].as_array().unwrap().iter();
    let without = calls.map(|call| call["without"].as_f64().unwrap().min(number("/window")));
    let saved = without.sum::<f64>() - number("/with/tokens");
    let counted = number("/counted/tokens/without") - number("/counted/tokens/with");
    assert!(
        (counted - saved).abs() < saved * 0.05,
        "{counted} counted by the proxy, {saved} by the provider"
    );
    // Against a window that holds everything, it says what the provider says.
    let saved = number("/without/dollars") - number("/with/dollars");
    let counted = number("/counted/saved_unbounded");
    assert!(
        (counted - saved).abs() < saved * 0.1,
        "${counted} counted by the proxy, ${saved} by the provider"
    );
    assert!(number("/counted/saved") < counted, "{stdout}");
    // The README tells two figures.
    for (what, told) in [("tokens", "fewer tokens"), ("dollars", "less money")] {
        let [with, without] = ["with", "without"].map(|run| number(&format!("/{run}/{what}")));
        let percent = (1.0 - with / without) * 100.0;
        let figure = told_percent(told);
        assert!(
            (figure - percent).abs() <= 1.0,
            "README: {figure} % {told}; the demo: {percent:.1} %"
        );
    }
}

/// The percentage that the README tells before these words.
fn told_percent(words: &str) -> f64 {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (before, _) = readme.split_once(&format!(" % {words}")).unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [60, 80] {
        let folder = tempfile::tempdir().unwrap();
        let args = ["demo", "--once", "--listen", "127.0.0.1:0"];
        let mut command = trimtab(folder.path(), &args);
        let output = command.env("COLUMNS", width.to_string()).output().unwrap();
        let (stdout, stderr) = texts(&output);
        assert!(output.status.success(), "{stderr}");
        for line in stdout.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        let rows = stdout.lines().filter(|line| line.contains(['#', '+']));
        assert!(rows.count() >= 38, "{stdout}");
        assert!(stdout.starts_with("An agent looks for a bug"), "{stdout}");
    }
}

#[test]
fn demo_counts_calls_from_one() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["demo", "--once", "--json", "--listen", "127.0.0.1:0"];
    let (stdout, _) = texts(&finished(folder.path(), &args));
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let args = [
        "demo",
        "--once",
        "--preset",
        "none",
        "--listen",
        "127.0.0.1:0",
    ];
    let output = finished(folder.path(), &args);
    let (_, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    let fails_at = format!("call {}: ", report["overflows_at"]);
    assert!(stderr.contains(&fails_at), "no {fails_at:?} in {stderr}");
}

#[test]
fn demo_reports_and_keeps_serving() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["demo", "--listen", "127.0.0.1:0"];
    let mut command = trimtab(folder.path(), &args);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map_while(Result::ok);
    let said: Vec<String> = lines
        .by_ref()
        .take_while(|line| !line.contains("Ctrl-C ends this"))
        .collect();
    assert!(said.iter().any(|line| line.contains("still serving on")));
    let curl = said.iter().position(|line| line.starts_with("curl "));
    let curl = said[curl.unwrap()..].join("\n");
    if Command::new("curl").arg("--version").output().is_ok() {
        // Exactly what is printed.
        let answer = Command::new("sh").args(["-c", &curl]).output().unwrap();
        let answer = texts(&answer).0;
        assert!(answer.contains("the scripted model of"), "{curl}\n{answer}");
        let logged = lines.find(|line| line.contains("claude-sonnet-4-5"));
        assert!(logged.is_some(), "the request is not logged");
    } else {
        say("skipped: there is no curl here to run what the demo prints");
    }
    kill(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let (stdout, _) = texts(&output);
    assert_eq!(output.status.code(), Some(0));
    for text in [
        "larger than the window",
        "overflows at call",
        "saved",
        "scripted",
    ] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
}

#[test]
fn unknown_preset_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = finished(folder.path(), &["demo", "--once", "--preset", "tidy"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("tidy"));
}

#[test]
fn too_small_window_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = finished(folder.path(), &["demo", "--once", "--window", "2k"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("at least 5000 tokens"));
}
