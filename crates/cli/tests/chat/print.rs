//! `--print`: one turn for scripts.

use serde_json::Value;

use crate::run::{Place, READS, golden};

#[test]
fn print_writes_only_the_answer_to_standard_output() {
    let place = Place::new();
    let model = place.script(READS);
    let outcome = place.chat(&["--model", &model, "--print", "what is the answer to 42?"]);
    golden("print.txt", &place, &outcome);
    assert_eq!(outcome.stdout, "The answer to question 42 is 294.\n");
}

#[test]
fn quiet_suppresses_standard_error() {
    let place = Place::new();
    let model = place.script(READS);
    let outcome = place.chat(&["--model", &model, "--quiet", "--print", "hello"]);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn print_dash_reads_the_prompt_from_standard_input() {
    let place = Place::new();
    let model = place.script(r#"[{"text": "I hear you"}]"#);
    let outcome = place.chat_with(&["--model", &model, "--print", "-"], "a long\nprompt\n");
    assert_eq!((outcome.code, outcome.stdout.as_str()), (0, "I hear you\n"));
    let list = place.chat(&["--list", "--json"]);
    let line: Value = serde_json::from_str(list.stdout.trim()).unwrap();
    assert_eq!(line["first"], "a long prompt");
    assert_eq!(line["messages"], 3);
}

#[test]
fn json_prints_one_event_per_line() {
    let place = Place::new();
    let model = place.script(READS);
    let args = [
        "--model",
        &model,
        "--print",
        "what is the answer?",
        "--json",
    ];
    let outcome = place.chat(&args);
    let lines: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let of_type = |name: &str| lines.iter().find(|line| line["type"] == name).unwrap();
    assert_eq!(lines[0]["type"], "start");
    assert_eq!(of_type("start")["window"], 200_000);
    assert_eq!(of_type("call")["tool"], "read_file");
    let output = of_type("output");
    assert_eq!(
        (&output["line_count"], &output["is_error"]),
        (&300.into(), &false.into())
    );
    assert!(output["view"].as_str().unwrap().contains("note 1:"));
    let said: String = lines
        .iter()
        .filter(|line| line["type"] == "text")
        .map(|line| line["text"].as_str().unwrap())
        .collect();
    assert_eq!(
        said,
        "I look at the notes.The answer to question 42 is 294."
    );
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["type"], &end["end"]),
        (&"end".into(), &"answered".into())
    );
    assert_eq!((&end["rounds"], outcome.code), (&2.into(), 0));
    assert!(end["usage"]["input"].as_u64().unwrap() > 100);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn output_verb_reads_refs_of_a_chat() {
    let place = Place::new();
    let model = place.script(READS);
    let outcome = place.chat(&["--model", &model, "--print", "hello", "--json"]);
    let lines: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let session = lines[0]["session"].as_str().unwrap();
    let output = lines.iter().find(|line| line["type"] == "output").unwrap();
    let id = output["ref"].as_str().unwrap();
    let mut read = std::process::Command::new(env!("CARGO_BIN_EXE_trimtab"));
    read.args([
        "output",
        "read",
        "--session",
        session,
        id,
        "--offset",
        "299",
    ]);
    read.env("TRIMTAB_STORE", place.store());
    let read = crate::run::finish(read, "");
    assert!(
        read.stdout.contains("is 2100"),
        "{}{}",
        read.stdout,
        read.stderr
    );
}

#[test]
fn cut_off_answer_exits_with_1() {
    let place = Place::new();
    let model = place.script(r#"[{"text": "half an ans", "stop": "length"}]"#);
    let outcome = place.chat(&["--model", &model, "--print", "hello"]);
    golden("cut_off.txt", &place, &outcome);
    assert_eq!(outcome.code, 1);
}

#[test]
fn commands_need_permission_without_a_terminal() {
    let place = Place::new();
    let script = r#"[
      {"calls": [{"name": "shell", "arguments": {"command": "echo ran > ran.txt"}}]},
      {"text": "so be it"}
    ]"#;
    let model = place.script(script);
    let ran = place.workspace().join("ran.txt");
    let outcome = place.chat(&["--model", &model, "--print", "run it", "--json"]);
    assert!(
        outcome
            .stdout
            .contains("the user did not allow this command")
    );
    assert!(!ran.exists());
    place.chat(&["--model", &model, "--print", "run it", "--allow-shell"]);
    assert!(ran.exists());
}

#[test]
fn compaction_of_a_full_window_is_reported() {
    let place = Place::new();
    let mut script = String::from("[");
    for _ in 0..6 {
        script += r#"{"calls": [{"name": "read_file", "arguments": {"path": "notes.txt"}}]},"#;
    }
    script += r#"{"text": "done reading"}, {"text": "done reading"}]"#;
    let model = place.script(&script);
    let window = [
        "--preset",
        "checkpoint",
        "--window",
        "12k",
        "--max-output",
        "1k",
    ];
    let args = ["--model", &model, "--print", "read it all", "--json"];
    let outcome = place.chat(&[&args[..], &window[..]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.stdout);
    let told: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["type"] == "session")
        .collect();
    let kinds: Vec<&str> = told
        .iter()
        .map(|line| line["kind"].as_str().unwrap())
        .collect();
    assert!(kinds.contains(&"compacted"), "{kinds:?}");
    // The design warns of summaries of summaries: that event is no plan.
    for line in told.iter().filter(|line| line["kind"] != "warning") {
        assert!(
            line["tokens_before"].as_u64() > line["tokens_after"].as_u64(),
            "{line}"
        );
    }
    let plain = place.chat(&[&args[..4], &window[..]].concat());
    assert_eq!(plain.stdout, "done reading\n");
    assert!(
        plain.stderr.contains("compacted: saved "),
        "{}",
        plain.stderr
    );
}
