use super::*;
use proptest::prelude::*;

fn found(text: &str) -> Vec<(FactKind, &str)> {
    let mut found = Vec::new();
    extract(text, &mut |fact| found.push((fact.kind, fact.text)));
    found
}

fn of_kind(kind: FactKind, text: &str) -> Vec<&str> {
    let found = found(text).into_iter();
    found
        .filter(|fact| fact.0 == kind)
        .map(|fact| fact.1)
        .collect()
}

#[track_caller]
fn check(kind: FactKind, text: &str, expected: &[&str]) {
    assert_eq!(of_kind(kind, text), expected, "{kind:?} of {text:?}");
}

#[test]
fn paths() {
    let check = |text, expected: &[&str]| check(FactKind::Path, text, expected);
    check(
        "edit src/main.rs:88 and (./a/b.py).",
        &["src/main.rs:88", "./a/b.py"],
    );
    check(
        "see /etc/hosts, ~/.ssh/config: and ../x_y",
        &["/etc/hosts", "~/.ssh/config", "../x_y"],
    );
    check(
        "open README.md or `Cargo.toml`; .gitignore",
        &["README.md", "Cargo.toml", ".gitignore"],
    );
    check("File \"app/db.py\", line 3", &["app/db.py"]);
    check(r#"{"path":"src/lib.rs","n":1}"#, &["src/lib.rs"]);
    check(r#""a\nsrc/lib.rs\tb/c.rs""#, &["src/lib.rs", "b/c.rs"]);
    check(r"in C:\Users\new\a.txt now", &[r"C:\Users\new\a.txt"]);
    check("main.rs:12:5: error", &["main.rs:12:5"]);
    check("修改src/main.rs文件", &["src/main.rs"]);
    check("“/home/jörg/x.txt”", &["/home/jörg/x.txt"]);
    check("and/or 1/2 I/O </div> // note e.g. done.Then", &[]);
}

#[test]
fn urls() {
    let check = |text, expected: &[&str]| check(FactKind::Url, text, expected);
    check(
        "(https://a.example/x?y=1&z=2#f), http://localhost:8080/.",
        &["https://a.example/x?y=1&z=2#f", "http://localhost:8080/"],
    );
    check("[text](https://x.org/a_b)", &["https://x.org/a_b"]);
    check("ask api.example.com about it.", &["api.example.com"]);
    check("a://", &[]);
}

#[test]
fn ids() {
    let check = |text, expected: &[&str]| check(FactKind::Id, text, expected);
    check(
        "123e4567-e89b-12d3-a456-426614174000 at 3f2a9bc",
        &["123e4567-e89b-12d3-a456-426614174000", "3f2a9bc"],
    );
    check(
        "PROJ-123, #4711 and #W2611340",
        &["PROJ-123", "#4711", "#W2611340"],
    );
    check(
        "call parse_args() or run() on HttpServer2",
        &["parse_args()", "run()", "HttpServer2"],
    );
    check(
        "std::fmt maxTokens max_tokens --keep-turns",
        &["std::fmt", "maxTokens", "max_tokens", "--keep-turns"],
    );
    check("order 4928374 from 10.0.0.7", &["4928374", "10.0.0.7"]);
    check(
        "The one-liner is i32, h1; NASA --- 2026-11-15T04:00:01",
        &[],
    );
    check(r"\u003cdiv\u003e", &[]);
}

#[test]
fn numbers() {
    let check = |text, expected: &[&str]| check(FactKind::Number, text, expected);
    check(
        "took 850ms, 1.5 GB, 85% or $5.20",
        &["850ms", "1.5 GB", "85%", "$5.20"],
    );
    check(
        "v2.0, 1.2.3-rc.1; localhost:8080",
        &["v2.0", "1.2.3-rc.1", "localhost:8080"],
    );
    check("port 8080, line 88, exit code 137", &["8080", "88", "137"]);
    check("in 2026, 3 of 4 were 0.85 at 12:30:05", &[]);
}

#[test]
fn errors() {
    let check = |text, expected: &[&str]| check(FactKind::Error, text, expected);
    check("ok\n  ERROR: disk full \nok", &["ERROR: disk full"]);
    check(
        "ValueError: bad\nmake: *** failed",
        &["ValueError: bad", "make: *** failed"],
    );
    check(
        "cat: x: No such file or directory",
        &["cat: x: No such file or directory"],
    );
    check(
        "0 errors\nno error\n\"error\": null, \"failed\":0\ntest error ... ok",
        &[],
    );
    let long = format!("{}error here{}", "ä ".repeat(300), " ö".repeat(300));
    let lines = of_kind(FactKind::Error, &long);
    assert!(
        lines[0].contains("error here") && lines[0].len() <= 240,
        "{lines:?}"
    );
}

#[test]
fn sentences_with_must_or_never_are_constraints() {
    let said = "Please fix it. You must not rename x.y!\nKeep tests green; and so on. Don’t push";
    let mut found = Vec::new();
    constraints(said, &mut |fact| {
        assert_eq!(
            said.get(fact.at..fact.at + fact.text.len()),
            Some(fact.text)
        );
        found.push(fact.text);
    });
    assert_eq!(
        found,
        [
            "You must not rename x.y!",
            "Keep tests green;",
            "Don’t push"
        ]
    );
}

#[test]
fn commands_of_every_form() {
    let found = |tool: &str, arguments: &str| {
        let mut found = Vec::new();
        commands(tool, arguments, &mut |fact| {
            assert_eq!(
                arguments.get(fact.at..fact.at + fact.text.len()),
                Some(fact.text)
            );
            found.push(fact.text.to_owned());
        });
        found
    };
    assert_eq!(
        found("shell", r#"{"command": ["bash", "-lc", "ls -l"]}"#),
        ["ls -l"]
    );
    assert_eq!(found("x", r#"{"a":"command","cmd":"make"}"#), ["make"]);
    assert_eq!(found("bash", "git status\n# no\n"), ["git status"]);
    assert_eq!(
        found("bash", r#"{"command":"cat <<E > f\nrm x\nE"}"#),
        ["cat <<E > f"]
    );
    assert_eq!(found("bash", r#"{"command":"unfinished"#), ["unfinished"]);
    assert!(found("read", r#"{"path":"x"}"#).is_empty() && found("read", "x").is_empty());
    let cut = found(
        "bash",
        &format!(r#"{{"command":"{}\\\"x"}}"#, "y".repeat(198)),
    );
    assert_eq!(cut, ["y".repeat(198)]);
}

fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "src/a.rs:8",
        "https://x.y/z",
        "\\n",
        "\\",
        "\"",
        "error",
        "ä",
        "中",
        "\u{301}",
        "1.5",
        " GB",
        "://",
        ":",
        "C:\\",
        "../",
        "--x",
        "#1",
        "$",
        "%",
        "()",
        "\n",
        "a_b",
        "\u{1f600}",
        "\\u00",
        "must",
        "ValueError",
        "not",
        " found",
        "failed",
        " ",
    ]);
    prop_oneof![
        prop::collection::vec(pieces, 0..30).prop_map(|pieces| pieces.concat()),
        ".{0,80}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn a_fact_is_a_piece_of_the_text_where_it_says(text in texts(), tool in "(bash|x)") {
        let check = |fact: Fact<'_>| {
            assert_eq!(text.get(fact.at..fact.at + fact.text.len()), Some(fact.text));
            assert!(!fact.text.is_empty() && fact.text.len() <= 600, "{fact:?}");
        };
        extract(&text, &mut |fact| check(fact));
        constraints(&text, &mut |fact| check(fact));
        commands(&tool, &text, &mut |fact| check(fact));
        let arguments = format!("{{\"command\":{text}");
        commands(&tool, &arguments, &mut |_| ());
    }

    #[test]
    fn errors_by_themselves_are_the_same_errors(text in texts()) {
        let mut alone = Vec::new();
        super::errors(&text, &mut |fact: Fact<'_>| alone.push((fact.text, fact.at)));
        let mut among = Vec::new();
        extract(&text, &mut |fact| {
            if fact.kind == FactKind::Error {
                among.push((fact.text, fact.at));
            }
        });
        prop_assert_eq!(alone, among);
    }

    #[test]
    fn facts_of_joined_texts_are_the_facts_of_each(one in texts(), other in texts()) {
        let mut together = found(&one);
        together.extend(found(&other));
        let mut joined = format!("{one}\n{other}");
        // An escape takes the letter behind it along.
        if one.ends_with('\\') { joined = format!("{one} \n{other}"); }
        prop_assert_eq!(found(&joined), together);
    }
}
