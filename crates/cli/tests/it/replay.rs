//! `trimtab replay` on a generated conversation.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use trimtab_cli::ui::number::short;

use crate::run::{Outcome, command, finish, trimtab};

/// A folder of the test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A conversation of many rounds whose last call uses a path from the first output.
fn conversation() -> Value {
    let mut messages = vec![
        json!({"role": "system", "content": "be brief"}),
        json!({"role": "user", "content": "tidy the parser"}),
    ];
    let mut round = |id: &str, arguments: &Value, output: &str| {
        let function = json!({"name": "read", "arguments": arguments.to_string()});
        let call = json!({"id": id, "type": "function", "function": function});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": output}));
    };
    round(
        "first",
        &json!({}),
        "src/parser/unusual_lexer.rs\nsrc/parser/tokens.rs\n",
    );
    for number in 0..40 {
        let lines: Vec<String> = (0..60)
            .map(|line| format!("{line}: a line of module {number} that says nothing much\n"))
            .collect();
        let lines = lines.concat();
        round(&format!("c{number}"), &json!({"number": number}), &lines);
    }
    round(
        "last",
        &json!({"path": "src/parser/unusual_lexer.rs"}),
        "fn lex() {}",
    );
    messages.push(json!({"role": "assistant", "content": "done"}));
    json!({"id": "made", "messages": messages})
}

fn file(folder: &Path) -> String {
    let path = folder.join("made.jsonl");
    fs::write(&path, format!("{}\n", conversation())).unwrap();
    path.display().to_string()
}

fn sums(outcome: &Outcome) -> Vec<Value> {
    let lines = outcome.stdout.lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["id"].is_null()).collect()
}

#[test]
fn presets_are_compared() {
    let file = file(&folder("compare"));
    let presets = "refs,checkpoint,turns,archive,retention,steady,none";
    let outcome = trimtab(&[
        "replay",
        &file,
        "--window",
        "12k",
        "--compare",
        presets,
        "--json",
    ]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let sums = sums(&outcome);
    assert_eq!(sums.len(), 7);
    for sum in &sums {
        assert_eq!(sum["report"]["calls"], 43, "{sum}");
    }
    let steady = sums.iter().find(|sum| sum["preset"] == "steady").unwrap();
    let report = &steady["report"];
    let figures = [&report["refused"], &report["over"]];
    assert!(figures.iter().all(|figure| **figure == 0), "{report}");
    assert!(report["hidden"].as_u64() > Some(0), "{report}");
    assert!(steady["saved"].as_f64() > Some(0.0), "{steady}");
    let none = sums.iter().find(|sum| sum["preset"] == "none").unwrap();
    assert!(none["report"]["over"].as_u64() > Some(0), "{none}");
    assert!(
        (none["billed_ratio"].as_f64().unwrap() - 1.0).abs() < 1e-9,
        "{none}"
    );
}

#[test]
fn replay_sends_the_same_windows_in_every_run() {
    let folder = folder("repeated");
    let file = file(&folder);
    let windows = |run: &str| {
        let path = folder.join(run).display().to_string();
        let args = ["replay", &file, "--window", "12k", "--preset", "archive"];
        let outcome = trimtab(&[&args[..], &["--windows", &path, "--quiet"]].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        fs::read_to_string(path).unwrap()
    };
    let first = windows("first");
    assert!(first.contains("ref_id"), "a window shows a ref");
    assert_eq!(first, windows("second"));
}

/// A call without a window costs nothing: it must not make a preset look cheap.
#[test]
fn conversation_without_a_window_is_left_out_of_the_sums() {
    let folder = folder("left_out");
    let mut huge = conversation();
    huge["id"] = json!("huge");
    huge["messages"][0]["content"] = json!("always be brief and exact. ".repeat(4_000));
    let path = folder.join("two.jsonl").display().to_string();
    fs::write(&path, format!("{}\n{huge}\n", conversation())).unwrap();
    let alone = file(&folder);
    let replayed = |path: &str| {
        let args = ["replay", path, "--window", "12k", "--compare"];
        let outcome = trimtab(&[&args[..], &["steady,turns", "--json"]].concat());
        sums(&outcome)
    };
    let (both, one) = (replayed(&path), replayed(&alone));
    for (both, one) in both.iter().zip(&one) {
        assert_eq!(both["report"]["calls"], one["report"]["calls"]);
        // Refs are random, and so are a few of their tokens.
        let billed = |sum: &Value| sum["billed_ratio"].as_f64().unwrap();
        assert!((billed(both) - billed(one)).abs() < 0.02, "{both} {one}");
    }
    let told = trimtab(&["replay", &path, "--window", "12k"]).stdout;
    assert!(told.starts_with("1 conversation, 43 calls"), "{told}");
    assert!(
        told.contains("no window for a call: 1 conversation: huge"),
        "{told}"
    );
    assert!(told.contains("what must stay in the window"), "{told}");
}

#[test]
fn headline_of_a_picture_is_the_sum_of_its_windows() {
    let folder = folder("picture-sum");
    let (file, out) = (file(&folder), folder.join("w.jsonl").display().to_string());
    let image = folder.join("s.svg").display().to_string();
    let sent = |preset: &str| -> u64 {
        let args = ["replay", &file, "--window", "12k", "--windows", &out];
        let outcome = trimtab(&[&args[..], &["--preset", preset]].concat());
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        let text = fs::read_to_string(&out).unwrap();
        let tokens = text.lines().map(|line| {
            let window: Value = serde_json::from_str(line).unwrap();
            window["tokens"].as_u64().unwrap()
        });
        tokens.sum()
    };
    let outcome = trimtab(&["inspect", &file, "--window", "12k", "--svg", &image]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let image = fs::read_to_string(&image).unwrap();
    let expected = format!(
        "send {} tokens instead of {}.",
        short(sent("steady")),
        short(sent("none"))
    );
    assert!(image.contains(&expected), "{expected}: {image}");
}

#[test]
fn other_settings_apply_to_the_preset() {
    let file = file(&folder("set"));
    let tokens = |set: &str| {
        let args = ["replay", &file, "--window", "20k", "--json", "--set", set];
        let outcome = trimtab(&args);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        sums(&outcome)[0]["report"]["tokens"].as_u64().unwrap()
    };
    assert!(tokens("ageing.rewrite.economy=1") < tokens("ageing.rewrite.economy=20"));
    let wrong = trimtab(&["replay", &file, "--window", "12k", "--set", "ageing.card=1"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("ageing.card"), "{}", wrong.stderr);
    let wrong = trimtab(&["replay", &file, "--set", "ageing.rewrite.economy=0"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("1 to 20"), "{}", wrong.stderr);
}

#[test]
fn every_window_is_written_with_the_refs_it_shows() {
    let folder = folder("windows");
    let (file, out) = (file(&folder), folder.join("out.jsonl"));
    let out = out.display().to_string();
    let outcome = trimtab(&["replay", &file, "--window", "12k", "--windows", &out]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let written = fs::read_to_string(&out).unwrap();
    let lines: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 43);
    for line in &lines {
        assert_eq!(line["id"], "made");
        let call = usize::try_from(line["call"].as_u64().unwrap()).unwrap();
        assert_eq!(conversation()["messages"][call]["role"], "assistant");
        assert!(
            line["tokens"].as_u64() <= Some(12_000),
            "{}",
            line["tokens"]
        );
        let window = line["messages"].to_string();
        assert!(window.len() / 4 <= 12_000);
        for stored in line["refs"].as_object().unwrap().values() {
            assert!(
                window.contains(stored.as_str().unwrap()),
                "{stored} is not in the window"
            );
        }
    }
    let last = lines.last().unwrap();
    assert!(!last["refs"].as_object().unwrap().is_empty());
}

#[test]
fn page_loads_nothing_and_runs_no_script() {
    let folder = folder("page");
    let (file, out) = (file(&folder), folder.join("out.html").display().to_string());
    let args = [
        "replay",
        &file,
        "--window",
        "12k",
        "--compare",
        "steady,none",
        "--html",
        &out,
    ];
    let outcome = trimtab(&args);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("1 conversation, 43 calls"),
        "{}",
        outcome.stdout
    );
    let page = fs::read_to_string(&out).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("<polyline"));
    assert!(
        !page.contains("http") && !page.contains("<script"),
        "something is fetched"
    );
}

#[test]
fn wrong_arguments_are_reported() {
    let file = file(&folder("wrong"));
    let outcome = trimtab(&["replay", &file, "--preset", "tidy"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.contains("tidy") && outcome.stderr.contains("steady"));
    let outcome = trimtab(&["replay", &file, "--compare", "refs,foo"]);
    assert_eq!(outcome.code, 2);
    for expected in ["--compare", "foo", "steady"] {
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
    let outcome = trimtab(&["replay", "no-such-file.jsonl", "--window", "12k"]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("no-such-file.jsonl"),
        "{}",
        outcome.stderr
    );
    let none = trimtab(&["replay", &file, "--window", "12k", "--min", "1M"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("no conversation to replay"),
        "{}",
        none.stderr
    );
}

#[test]
fn unwritable_page_is_reported_before_the_replay() {
    let folder = folder("replay-unwritable");
    // The transcript is not there either: it is not even looked for.
    let page = folder.join("none/page.html").display().to_string();
    let outcome = trimtab(&["replay", "no-such-file.jsonl", "--html", &page]);
    assert_eq!(outcome.code, 2);
    assert!(
        outcome.stderr.contains("cannot write"),
        "{}",
        outcome.stderr
    );
    assert!(
        !outcome.stderr.contains("no-such-file"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn existing_page_stays_if_the_replay_fails() {
    let folder = folder("replay-kept");
    let page = folder.join("page.html");
    fs::write(&page, "before").unwrap();
    let path = page.display().to_string();
    let outcome = trimtab(&["replay", "no-such-file.jsonl", "--html", &path]);
    assert_eq!(outcome.code, 2);
    assert_eq!(fs::read_to_string(&page).unwrap(), "before");
}

#[test]
fn report_fits_the_width_of_the_terminal() {
    let folder = folder("replay-narrow");
    let file = file(&folder);
    let run = |width: &str, more: &[&str]| {
        let presets = ["--compare", "steady,checkpoint,turns,refs"];
        let mut command = command();
        let example = "examples/fix-failing-test.json";
        command.args(["replay", &file, example, "--window", "20k", "--all"]);
        command.args(presets).args(more);
        finish(command.env("COLUMNS", width), b"").stdout
    };
    let narrow = run("80", &[]);
    for line in narrow.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // Every figure is there: only their places differ.
    let sorted = |text: &str| {
        let words = text.split_whitespace().map(str::to_owned);
        words.collect::<BTreeSet<String>>()
    };
    assert_eq!(sorted(&narrow), sorted(&run("400", &[])));
    assert_eq!(run("80", &["--json"]), run("400", &["--json"]));
}

#[test]
fn every_column_is_explained_in_report_page_and_help() {
    let folder = folder("replay-columns");
    let page = folder.join("page.html").display().to_string();
    let file = file(&folder);
    let args = ["replay", &file, "--window", "20k", "--html", &page];
    let report = trimtab(&args).stdout;
    let page = fs::read_to_string(&page).unwrap();
    let help = trimtab(&["replay", "--help"]).stdout;
    let head = report
        .lines()
        .find(|line| line.starts_with("preset"))
        .unwrap();
    let columns = head
        .split("  ")
        .map(str::trim)
        .filter(|name| !name.is_empty());
    for column in columns.skip(1) {
        let explained = format!("\n  {column} ");
        for (text, what) in [(&report, "report"), (&page, "page"), (&help, "help")] {
            assert!(
                text.contains(&explained),
                "{column} is not explained in the {what}"
            );
        }
    }
}

/// The headline of the picture that a verb draws.
fn headline(verb: &str, args: &[&str], out: &str) -> String {
    let outcome = trimtab(&[&[verb], args, &["--html", out]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let page = fs::read_to_string(out).unwrap();
    let (_, rest) = page.split_once("class=\"headline\">").unwrap();
    rest.split('<').next().unwrap().to_owned()
}

#[test]
fn picture_of_a_session_has_the_same_costs_in_inspect_and_replay() {
    let out = folder("replay-costs")
        .join("out.html")
        .display()
        .to_string();
    // The last one names no model that has a price.
    for file in [
        "claude-code.jsonl",
        "messages.json",
        "codex.jsonl",
        "chat.jsonl",
    ] {
        let file = format!("examples/forms/{file}");
        let flags: [&[&str]; 4] = [
            &[],
            &["--window", "2k"],
            &["--model", "gpt-4o"],
            &["--model", "gpt-4o", "--window", "2k"],
        ];
        for flags in flags {
            let args = [&[file.as_str()], flags].concat();
            let inspected = headline("inspect", &args, &out);
            assert!(inspected.contains('$'), "{inspected}");
            assert_eq!(inspected, headline("replay", &args, &out), "{args:?}");
        }
        let by_flag = headline("inspect", &[&file, "--model", "gpt-4o"], &out);
        let own = headline("inspect", &[&file], &out);
        assert_ne!(by_flag, own, "{file}");
    }
}
