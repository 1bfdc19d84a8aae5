//! Every command in the guides and the README is run by a test: here, or by one that is named here.

use std::fs;
use std::path::Path;

use crate::documented::{blocks, words};
use crate::run::{Home, finish, root};

/// Who runs a command of a guide.
enum Runner {
    /// This test, in a home with recorded sessions of clients.
    Here,
    /// Another one: its file, and a text that is in it as long as the test is.
    Other(&'static str, &'static str),
}
use Runner::{Here, Other};

/// `wrapped.rs` does it with the real clients, where they are wanted.
const WRAP: Runner = Other(
    "crates/cli/tests/proxy/documented.rs",
    "documented_wraps_start_their_client_before_the_proxy",
);

/// The beginning of each command, and who runs it.
static COMMANDS: [(&str, Runner); 26] = [
    ("trimtab wrap claude", WRAP),
    ("trimtab wrap --preset steady claude --resume", WRAP),
    ("trimtab wrap codex", WRAP),
    ("trimtab wrap codex exec", WRAP),
    ("trimtab wrap opencode", WRAP),
    ("trimtab hook install claude", Here),
    ("trimtab hook install claude --yes", Here),
    ("trimtab hook uninstall claude --yes", Here),
    ("trimtab inspect", Here),
    ("trimtab compact", Here),
    ("trimtab replay", Here),
    // The session and the ref are those of a view.
    (
        "trimtab output read",
        Other(
            "crates/cli/tests/it/hook.rs",
            "long_output_is_replaced_in_its_shape_and_read_back_by_the_named_command",
        ),
    ),
    // It does not end by itself.
    (
        "trimtab serve",
        Other(
            "crates/cli/tests/proxy/serve.rs",
            "three_dialects_are_managed",
        ),
    ),
    (
        "trimtab serve --listen",
        Other(
            "crates/cli/tests/proxy/documented.rs",
            "documented_compression_is_answered_by_the_documented_proxy",
        ),
    ),
    (
        "curl -s http://127.0.0.1:8787/v1/compress",
        Other(
            "crates/cli/tests/proxy/documented.rs",
            "documented_compression_is_answered_by_the_documented_proxy",
        ),
    ),
    // The SDKs of the providers are given the address of the proxy.
    (
        "OPENAI_BASE_URL=http://127.0.0.1:8787/v1 python",
        Other(
            "crates/cli/tests/proxy/sdk.rs",
            "python_sdks_run_to_the_end",
        ),
    ),
    // It keeps serving without `--once`.
    (
        "cargo run --release -- demo",
        Other(
            "crates/cli/tests/proxy/demo.rs",
            "demo_session_fits_and_costs_less",
        ),
    ),
    // A person types what it answers.
    (
        "trimtab chat",
        Other(
            "crates/cli/tests/it/readme.rs",
            "commands_of_the_readme_run_in_the_repository",
        ),
    ),
    ("./test", Other(".ci/run", "exec ./test")),
    (
        "cargo install --path crates/cli",
        Other("test", "cargo install --path crates/cli"),
    ),
    // These build and install the packages, which takes minutes.
    (
        "./package python",
        Other("test", "./package --dev --out \"$built/python\" python"),
    ),
    (
        "./package node",
        Other("test", "./package --dev --out \"$built/node\" node"),
    ),
    (
        "pip install dist/",
        Other("test", "--force-reinstall \"$built\"/python/*.whl"),
    ),
    (
        "npm install",
        Other("test", "npm install --prefix \"$adapters/fresh\""),
    ),
    (
        "cargo run -p trimtab --example three_dialects",
        Other("crates/trimtab/examples/three_dialects.rs", "#[test]"),
    ),
    (
        "cargo run -p trimtab --example custom_summariser",
        Other("crates/trimtab/examples/custom_summariser.rs", "#[test]"),
    ),
];

/// The logs that the guides name, in a user's home.
const LOGS: [(&str, &str); 2] = [
    (
        "claude-code.jsonl",
        ".claude/projects/PROJECT/SESSION.jsonl",
    ),
    ("codex.jsonl", ".codex/sessions/2026/01/01/rollout.jsonl"),
];

fn home() -> Home {
    let home = Home::new();
    for (form, place) in LOGS {
        let place = home.path().join(place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::copy(root().join("examples/forms").join(form), place).unwrap();
    }
    home
}

/// The commands of a guide: the lines of its blocks of shell.
fn commands(guide: &Path) -> Vec<String> {
    let text = fs::read_to_string(guide).unwrap();
    let shell = blocks(&text).into_iter().filter(|(kind, _)| kind == "sh");
    let lines = shell.map(|(_, block)| block.replace("\\\n", " "));
    let lines: Vec<String> = lines.collect();
    let lines = lines.iter().flat_map(|block| block.lines());
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Runs a command of ours as a shell would.
fn run(home: &Home, line: &str, guide: &str) {
    let folder = home.path().display().to_string();
    let words: Vec<String> = words(line)
        .iter()
        .map(|word| match word.as_str() {
            // What a command writes belongs to the test.
            "compacted.jsonl" => format!("{folder}/compacted-{}", guide.replace('/', "-")),
            word => word.replacen('~', &folder, 1),
        })
        .collect();
    let args = words.iter().skip(1);
    let done = finish(home.command().env("HOME", home.path()).args(args), b"");
    assert_eq!(done.code, 0, "{guide}: {line}: {}", done.stderr);
}

#[test]
fn commands_of_the_guides_and_the_readme_are_run() {
    let home = home();
    let mut used = vec![false; COMMANDS.len()];
    let guides = fs::read_dir(root().join("docs/guides")).unwrap();
    let guides = guides.map(|entry| entry.unwrap().path());
    for guide in guides.chain([root().join("README.md")]) {
        let name = guide.file_name().unwrap().to_string_lossy().into_owned();
        for line in commands(&guide) {
            // The longest beginning is the command itself.
            let known = COMMANDS.iter().enumerate();
            let known = known.filter(|(_, (start, _))| line.starts_with(start));
            let (at, (_, runner)) = known
                .max_by_key(|(_, (start, _))| start.len())
                .unwrap_or_else(|| panic!("{name}: no test runs: {line}"));
            used[at] = true;
            match runner {
                Here => run(&home, &line, &name),
                Other(file, text) => {
                    let file = fs::read_to_string(root().join(file)).unwrap();
                    assert!(
                        file.contains(text),
                        "{name}: the test of {line} is gone: {text}"
                    );
                }
            }
        }
    }
    let unused = COMMANDS.iter().zip(used).find(|(_, used)| !*used);
    assert!(
        unused.is_none(),
        "no guide has the command {}",
        unused.unwrap().0.0
    );
}
