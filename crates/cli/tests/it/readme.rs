//! The README: short, with commands that run and a picture that is up to date.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::documented::commands;
use crate::run::{Home, root};

/// The longest README, in lines.
const MOST_LINES: usize = 120;
const PICTURE: &str = "docs/session.svg";

/// The lines of the README with figures: how they begin, and what measures or checks them: a file,
/// and a text in it.
const FIGURES: [(&str, &str, &str); 13] = [
    ("![What 38 calls", PICTURE, "Under steady, 38 calls send"),
    (
        "<sub>Each call is a column",
        "crates/cli/tests/it/readme.rs",
        "fn picture_of_the_readme_is",
    ),
    (
        "It plays the session twice",
        "crates/cli/tests/proxy/demo.rs",
        "fn told_percent",
    ),
    (
        "This needs Rust 1.91",
        "Cargo.toml",
        "rust-version = \"1.91\"",
    ),
    (
        "OPENAI_BASE_URL=http://127.0.0.1:8787",
        "crates/proxy/src/config/mod.rs",
        "PORT: u16 = 8787",
    ),
    (
        "agent = create_agent(",
        "crates/python/tests/package.py",
        "test_documented_code_compiles",
    ),
    (
        "The table compares",
        "crates/python/tests/compare_windows.py",
        "\"calls\": re.compile",
    ),
    (
        "295 times",
        "crates/python/tests/compare_windows.py",
        "\"needed\": re.compile",
    ),
    (
        "| ",
        "crates/python/tests/compare_windows.py",
        "def is_about",
    ),
    (
        "Cost counts",
        "crates/python/tests/compare_windows.py",
        "def row",
    ),
    (
        "The proxy adds about half a millisecond",
        "docs/performance.md",
        "| a body of 500 KB |",
    ),
    (
        "The proxy adds about half a millisecond",
        "docs/steady.md",
        "more than 3.4 % above",
    ),
    (
        "Licensed under",
        "Cargo.toml",
        "license = \"MIT OR Apache-2.0\"",
    ),
];

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

#[test]
fn readme_stays_short_and_tells_how_to_install() {
    let readme = readme();
    let lines = readme.lines().count();
    assert!(lines <= MOST_LINES, "{lines}");
    assert!(readme.contains("cargo install --path crates/cli"));
    let manifest = fs::read_to_string(root().join("crates/cli/Cargo.toml")).unwrap();
    assert!(manifest.contains("name = \"trimtab\""), "{manifest}");
}

/// What README prints that needs neither a key nor a port, run as it is printed.
#[test]
fn commands_of_the_readme_run_in_the_repository() {
    let home = Home::new();
    let mut ran = BTreeSet::new();
    for words in commands(&readme()) {
        let args: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let (verb, input) = match args.as_slice() {
            ["inspect", ..] => ("inspect", ""),
            // A person who asks one thing and leaves.
            ["chat", ..] => ("chat", "what is this?\nand more?\n"),
            _ => continue,
        };
        let done = home.run_with(&args, input.as_bytes());
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        let all = format!("{}{}", done.stdout, done.stderr);
        for trouble in ["error", "warning", "No such file", "no faults could"] {
            assert!(!all.contains(trouble), "{args:?}: {all}");
        }
        ran.insert(verb);
    }
    assert_eq!(ran, BTreeSet::from(["chat", "inspect"]));
}

#[test]
fn figures_of_the_readme_are_measured_or_checked() {
    let readme = readme();
    for line in readme
        .lines()
        .filter(|line| line.contains(|c: char| c.is_ascii_digit()))
    {
        let known = FIGURES.iter().any(|(start, ..)| line.starts_with(start));
        assert!(known, "nothing checks: {line}");
    }
    for (start, file, text) in FIGURES {
        let there = fs::read_to_string(root().join(file)).unwrap();
        assert!(there.contains(text), "{start}: {file} has no {text}");
        assert!(
            readme.lines().any(|line| line.starts_with(start)),
            "{start}"
        );
    }
}

/// The README has the commands that made its picture. `TRIMTAB_BLESS=1` makes it anew.
#[test]
fn picture_of_the_readme_is_what_its_commands_draw() {
    let readme = readme();
    let command = readme.split('`').find(|text| text.ends_with(PICTURE));
    let (session, drawing) = command.unwrap().split_once(" | ").unwrap();
    let home = Home::new();
    let args = |line: &str| -> Vec<String> {
        let words = line.strip_prefix("trimtab ").unwrap().split(' ');
        words.map(str::to_owned).collect()
    };
    let run = |line: &str, place: &str, input: &str| {
        let args = args(line);
        let args: Vec<&str> = args
            .iter()
            .map(|word| if word == PICTURE { place } else { word })
            .collect();
        let done = home.run_with(&args, input.as_bytes());
        assert_eq!(done.code, 0, "{args:?}: {}", done.stderr);
        done.stdout
    };
    let place = home.path().join("session.svg").display().to_string();
    run(drawing, &place, &run(session, &place, ""));
    let drawn = fs::read_to_string(place).unwrap();
    check(&root().join(PICTURE), &drawn);
}

fn check(path: &Path, made: &str) {
    if std::env::var_os("TRIMTAB_BLESS").is_some() {
        fs::write(path, made).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == made,
        "{PICTURE} is stale: run the tests with TRIMTAB_BLESS=1"
    );
}
