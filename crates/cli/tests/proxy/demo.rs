//! `trimtab demo`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::run::{finished, kill, texts, trimtab};

#[test]
fn the_whole_session_fits_and_costs_less() {
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
}

#[test]
fn it_is_shown_and_then_served() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["demo", "--listen", "127.0.0.1:0"];
    let mut command = trimtab(folder.path(), &args);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let serving = lines
        .map_while(Result::ok)
        .find(|line| line.contains("still serving on"));
    assert!(serving.is_some());
    kill(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let (stdout, _) = texts(&output);
    assert_eq!(output.status.code(), Some(0));
    for text in ["too large", "overflows at call", "saved", "nothing is lost"] {
        assert!(stdout.contains(text), "{text}: {stdout}");
    }
}

#[test]
fn a_preset_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = finished(folder.path(), &["demo", "--once", "--preset", "tidy"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("tidy"));
}

#[test]
fn a_window_that_is_too_small_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let output = finished(folder.path(), &["demo", "--once", "--window", "2k"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(texts(&output).1.contains("5000 tokens at least"));
}
