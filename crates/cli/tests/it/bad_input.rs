//! Wrong input gives a clear message and exit code 2, never a panic.

use std::fmt::Write as _;

use crate::run::{Home, finish, golden, root, trimtab, with_input};

/// What is given, and what the first line of the message must say.
const CASES: &[(&str, &[u8], &str)] = &[
    (
        "empty",
        b"",
        "standard input: empty: there is no conversation in it",
    ),
    ("blank", b"\n \n\n", "standard input: empty"),
    ("a mark alone", b"\xEF\xBB\xBF", "standard input: empty"),
    (
        "text",
        b"hello",
        "standard input:1:1: broken JSON: expected value",
    ),
    (
        "cut off",
        b"{\"messages\": [",
        "standard input:1:14: broken JSON: EOF while parsing",
    ),
    (
        "cut off later",
        b"{\n \"messages\": [\n",
        "standard input:2:14: broken JSON: EOF",
    ),
    (
        "wrong comma",
        b"{\n \"messages\": [,]}",
        "standard input:2:15: broken JSON: expected value",
    ),
    (
        "second line",
        b"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n{\"messages\":}\n",
        "standard input:2:13: broken JSON: expected value",
    ),
    (
        "trailing",
        b"{\"messages\":[]} x",
        "standard input:1:17: broken JSON: trailing characters",
    ),
    (
        "other JSON",
        b"{\"a\": 1}",
        "standard input:1:1: JSON, but not a transcript",
    ),
    (
        "a number",
        b"17",
        "standard input:1:1: JSON, but not a transcript",
    ),
    (
        "numbers",
        b"[1, 2]",
        "standard input:1:1: JSON, but not a transcript",
    ),
    (
        "an empty list",
        b"[]",
        "standard input:1:1: JSON, but not a transcript",
    ),
    (
        "other objects",
        b"[{\"a\": 1}]",
        "standard input:1:1: JSON, but not a transcript",
    ),
    (
        "not UTF-8",
        b"{\"messages\": [{\"role\": \"user\", \"content\": \"\xFF\"}]}",
        "standard input:1:44: not UTF-8 text",
    ),
    (
        "not UTF-8 on line 2",
        b"{\n\"a\xC3\": 1}",
        "standard input:2:3: not UTF-8 text",
    ),
    (
        "UTF-16",
        b"\xFF\xFE{\0}\0",
        "standard input:1:1: not UTF-8 text",
    ),
    (
        "a broken document with messages on its lines",
        b"[\n{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"b\"}\n",
        "standard input:3:1: broken JSON: expected `,` or `]`",
    ),
    (
        "a log without a single good line",
        b"{\"type\":\"user\",\"uuid\":\n{\"type\":\"assi\n",
        "standard input:2:13: broken JSON: EOF while parsing a string",
    ),
    (
        "a log of nothing",
        b"{\"type\":\"summary\",\"summary\":\"x\",\"leafUuid\":\"1\"}\n",
        "standard input: empty",
    ),
];

#[cfg(target_os = "linux")]
#[test]
fn input_without_an_end_is_refused() {
    for device in ["/dev/zero", "/dev/urandom"] {
        let home = Home::new();
        let done = home.run(&["inspect", device]);
        assert_eq!(done.code, 2, "{}", done.stderr);
        assert!(done.stderr.contains("it is a device"), "{}", done.stderr);
        // On standard input it cannot be told from a pipe that ends.
        let endless = std::fs::File::open("/dev/zero").unwrap();
        let mut command = home.command();
        let command = command.args(["inspect", "-"]).stdin(endless);
        let done = command.output().unwrap();
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{told}");
        assert!(told.contains("a line of more than 256 MiB"), "{told}");
    }
}

#[test]
fn bad_transcripts_give_specific_errors() {
    let mut wrong = String::new();
    for (name, input, expected) in CASES {
        let outcome = with_input(&["inspect", "-"], input);
        let first = outcome.stderr.lines().next().unwrap_or_default();
        let told = first.starts_with(&format!("error: {expected}"));
        if !told || !outcome.stderr.contains("\nhint: ") || outcome.code != 2 {
            let _ = writeln!(wrong, "{name}: exit code {}, {first:?}", outcome.code);
        }
    }
    assert_eq!(wrong, "");
}

#[test]
fn unknown_form_error_lists_the_supported_forms() {
    golden(
        "unknown_form.txt",
        &with_input(&["inspect", "-"], b"{\"a\": 1}"),
    );
}

#[test]
fn missing_file_is_an_error() {
    let outcome = trimtab(&["inspect", "no/such/file.json"]);
    assert!(
        outcome
            .stderr
            .starts_with("error: no/such/file.json: cannot read: ")
    );
    assert_eq!(outcome.code, 2);
}

#[test]
fn folder_is_not_a_transcript() {
    let outcome = trimtab(&["inspect", "examples"]);
    assert!(
        outcome.stderr.starts_with("error: examples: cannot read: "),
        "{}",
        outcome.stderr
    );
    assert_eq!(outcome.code, 2);
}

#[test]
fn bad_file_does_not_hide_the_others() {
    let outcome = trimtab(&[
        "inspect",
        "no/such/file.json",
        "examples/fix-failing-test.json",
    ]);
    assert!(outcome.stdout.contains("fix-failing-test"));
    assert_eq!(outcome.code, 2);
}

#[test]
fn unknown_model_error_suggests_the_window_flag() {
    let args = [
        "inspect",
        "examples/fix-failing-test.json",
        "--model",
        "no-such-model-at-all",
    ];
    let outcome = trimtab(&args);
    assert!(
        outcome
            .stderr
            .contains("hint: give the size of its window in tokens instead: --window N")
    );
    assert_eq!((outcome.code, outcome.stdout.as_str()), (2, ""));
}

#[test]
fn wrong_arguments_are_rejected() {
    for args in [
        &["inspect"][..],
        &["inspect", "x", "--window", "many"],
        &["inspect", "x", "--color", "sometimes"],
        &["no-such-verb"],
        &[],
    ] {
        assert_eq!(trimtab(args).code, 2, "{args:?}");
    }
}

#[test]
fn byte_order_mark_is_skipped() {
    let input = b"\xEF\xBB\xBF[{\"role\":\"user\",\"content\":\"hello\"}]";
    let outcome = with_input(&["inspect", "-"], input);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
}

#[test]
fn incomplete_log_is_read_with_a_warning() {
    let log = std::fs::read(root().join("examples/forms/codex.jsonl")).unwrap();
    let cut = &log[..log.len() - 40];
    let outcome = with_input(&["inspect", "-"], cut);
    let expected =
        "warning: standard input:15: the last line is cut off: the agent may still be writing\n";
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, expected));
    let quiet = with_input(&["inspect", "-", "--quiet"], cut);
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""));
}

#[test]
fn line_of_100_megabytes_is_read() {
    let mut line = String::from("{\"messages\":[{\"role\":\"user\",\"content\":\"");
    while line.len() < 100_000_000 {
        line.push_str("all work and no play makes jack a dull boy \\u00e9\\n");
    }
    let _ = write!(line, "\"}}]}}");
    let outcome = with_input(&["inspect", "-", "--json"], line.as_bytes());
    assert_eq!((outcome.code, outcome.stderr.as_str()), (0, ""));
    let report: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert!(report["window"]["tokens"].as_u64().unwrap() > 10_000_000);
}

#[test]
fn deeply_nested_json_is_kept() {
    let depth = 100_000;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let input = format!("[{{\"role\":\"user\",\"content\":\"hi\",\"x\":{deep}}}]");
    assert_eq!(with_input(&["inspect", "-"], input.as_bytes()).code, 0);
}

#[test]
fn result_file_never_replaces_the_transcript() {
    let home = Home::new();
    let original = std::fs::read(root().join("examples/fix-failing-test.json")).unwrap();
    let file = home.file("session.json", &original);
    let other = home.file("other.json", &original);
    for (verb, flag) in [
        ("inspect", "--html"),
        ("inspect", "--svg"),
        ("replay", "--html"),
        ("replay", "--windows"),
    ] {
        let done = home.run(&[verb, &other, &file, flag, &file]);
        let told = done.stderr.lines().next().unwrap_or_default();
        assert!(
            told.ends_with("is the transcript itself"),
            "{verb} {flag}: {told}"
        );
        assert_eq!(done.code, 2, "{verb} {flag}");
        assert_eq!(std::fs::read(&file).unwrap(), original, "{verb} {flag}");
    }
}

#[test]
fn errors_name_the_file_that_cannot_be_written() {
    let home = Home::new();
    let plain = home.file("plain", b"");
    let (below, folder) = (format!("{plain}/file"), home.path().to_str().unwrap());
    let registry = br#"{"m": {"max_input_tokens": 1000, "mode": "chat"}}"#;
    for (args, file) in [
        (&["models", "update", "-"][..], below.as_str()),
        (&["models", "reset"], folder),
        (&["hook", "install", "claude", "--file", folder], folder),
        (
            &["hook", "install", "claude", "--yes", "--file", &below],
            &below,
        ),
    ] {
        let mut command = home.command();
        let done = finish(command.args(args).env("TRIMTAB_MODELS", file), registry);
        let told = format!("error: {file}: cannot ");
        assert!(done.stderr.starts_with(&told), "{args:?}: {}", done.stderr);
        assert!(
            done.stderr.contains("\nhint: name another"),
            "{}",
            done.stderr
        );
        assert_eq!(done.code, 1, "{args:?}");
    }
}

#[test]
fn misspelt_option_of_wrap_is_not_taken_for_a_client() {
    let done = Home::new().run(&["wrap", "--preste", "refs", "true"]);
    assert!(
        done.stderr
            .starts_with("error: unknown option --preste\nhint: ")
    );
    assert_eq!(done.code, 2);
}
