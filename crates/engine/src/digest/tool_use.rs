//! What a call does, from its name and arguments: its command lines, the files that it names, how
//! it ended.

use serde_json::Value;
use trimtab_model::{Call, Output, work};

use crate::pattern::LazyRegex;
use crate::view::figures::{first_bytes, last_bytes};

/// Larger arguments are not parsed: they are contents of files.
const PARSED: usize = 256 << 10;

/// Parts of the names of tools that run commands.
const SHELLS: [&str; 6] = ["bash", "shell", "exec", "terminal", "command", "python"];
/// Parts of the names of tools that run one thing.
const RUNS: [&str; 4] = ["test", "build", "compile", "lint"];
/// Parts of the names of tools that change something and report only the result.
const CHANGES: [&str; 13] = [
    "edit", "write", "patch", "replace", "create", "update", "delete", "insert", "stdin", "test",
    "build", "compile", "lint",
];
/// Programs that print existing data.
const READERS: [&str; 22] = [
    "cat", "sed", "head", "tail", "nl", "less", "more", "bat", "rg", "grep", "egrep", "ag", "ack",
    "find", "fd", "ls", "tree", "awk", "jq", "curl", "type", "cut",
];
/// Programs that print existing data if one of their arguments says so.
const QUERIED: [&str; 6] = ["git", "gh", "glab", "kubectl", "docker", "podman"];
const QUERIES: [&str; 18] = [
    "show", "diff", "status", "log", "blame", "grep", "ls-files", "branch", "view", "list", "api",
    "search", "get", "describe", "logs", "ps", "inspect", "images",
];
/// The fields of arguments that contain a command.
const COMMANDS: [&str; 7] = [
    "command",
    "cmd",
    "script",
    "commands",
    "shell_command",
    "code",
    "input",
];
/// The fields of arguments that name a file.
const FILES: [&str; 8] = [
    "file_path",
    "filePath",
    "file",
    "filename",
    "target_file",
    "notebook_path",
    "absolute_path",
    "path",
];
/// The lines of a patch that name a file.
const PATCHED: [&str; 4] = [
    "*** Update File: ",
    "*** Add File: ",
    "*** Delete File: ",
    "+++ b/",
];
/// Parts of the names of tools that search in a folder and have a field `path` for it.
const SEARCHES: [&str; 5] = ["grep", "glob", "search", "list", "find"];

fn is_one_of(name: &str, words: &[&str]) -> bool {
    let name = name.to_ascii_lowercase();
    words.iter().any(|word| name.contains(word))
}

/// True for a call that does something: a build, a test, an edit. The outputs of all others are to
/// be read: a file, a search, a page, a query result.
pub(crate) fn runs(call: &Call) -> bool {
    match command(call) {
        Some(command) => !reads_only(&command),
        None => is_one_of(&call.name, &CHANGES),
    }
}

/// True if one of the programs of a command line prints existing data.
fn reads_only(command: &str) -> bool {
    let mut parts = command.split(['|', ';', '&', '\n']);
    // A pipe such as `make | tail` prints a part of something, and is read.
    parts.any(|part| {
        let mut words = part.split_whitespace();
        let program = words.next().unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or(program);
        let is_query = |word: &str| QUERIES.contains(&word);
        READERS.contains(&program) || (QUERIED.contains(&program) && words.any(is_query))
    })
}

/// The command line of a call; none if it runs none.
pub(super) fn command(call: &Call) -> Option<String> {
    if !is_one_of(&call.name, &SHELLS) {
        return None;
    }
    let Some(Value::Object(members)) = parsed(&call.arguments) else {
        return Some(call.arguments.clone());
    };
    let found = COMMANDS.iter().find_map(|name| members.get(*name));
    Some(match found {
        Some(Value::String(command)) => command.clone(),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            // Some clients send `["bash", "-lc", "cat a"]`. On a line of its own, the last word is
            // split as a command.
            words.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    })
}

fn parsed(arguments: &str) -> Option<Value> {
    if arguments.len() > PARSED {
        return None;
    }
    work::step_text(arguments);
    serde_json::from_str(arguments).ok()
}

/// The files that a call names, and whether it changes them. A command may do anything, so it names
/// none.
pub(super) fn files(call: &Call) -> (Vec<String>, bool) {
    let patched = patched_files(&call.arguments);
    if !patched.is_empty() {
        return (patched, true);
    }
    let changes = is_one_of(&call.name, &CHANGES);
    if is_one_of(&call.name, &SHELLS) || is_one_of(&call.name, &SEARCHES) {
        return (Vec::new(), changes);
    }
    let Some(Value::Object(members)) = parsed(&call.arguments) else {
        return (Vec::new(), changes);
    };
    let named = FILES
        .iter()
        .filter_map(|field| members.get(*field)?.as_str());
    let named = named.map(str::trim).filter(|path| !path.is_empty());
    (named.map(str::to_owned).collect(), changes)
}

fn patched_files(arguments: &str) -> Vec<String> {
    if !PATCHED.iter().any(|header| arguments.contains(header)) {
        return Vec::new();
    }
    // A patch is a text, or a string in JSON.
    let lines = arguments.split('\n').flat_map(|line| line.split("\\n"));
    let files = lines.filter_map(|line| {
        let path = PATCHED
            .iter()
            .find_map(|header| line.strip_prefix(header))?;
        Some(path.split(['"', '\t', '\\']).next()?.to_owned())
    });
    files.collect()
}

/// True if the output of a call says that the call failed: the client says so, a command reports
/// an exit code, or a command without an exit code prints `errors`.
///
/// What a file contains or a search finds says nothing about the call: a search that finds nothing
/// has an exit code too.
pub(super) fn has_failed(call: Option<&Call>, output: &Output, errors: bool) -> bool {
    let code = may_fail(call, output).then(|| exit_code(&output.text()));
    let is_run = call.is_some_and(is_run);
    output.is_error || code.flatten().map_or(errors && is_run, |code| code != 0)
}

/// True if the output can be that of a failed run.
pub(super) fn may_fail(call: Option<&Call>, output: &Output) -> bool {
    // A tool with this word in its name writes to a running command, and shows what it prints.
    let shows_run = |call: &Call| is_one_of(&call.name, &["stdin"]) || is_run(call);
    output.is_error || call.is_some_and(shows_run)
}

fn is_run(call: &Call) -> bool {
    (is_one_of(&call.name, &SHELLS) || is_one_of(&call.name, &RUNS)) && runs(call)
}

/// True if an output of `bytes` only says that something was done.
pub(super) fn is_receipt(call: Option<&Call>, bytes: usize) -> bool {
    let is_change = |call: &Call| {
        let runs = is_one_of(&call.name, &SHELLS) || is_one_of(&call.name, &RUNS);
        is_one_of(&call.name, &CHANGES) && !runs
    };
    bytes < LONGEST_RECEIPT && call.is_some_and(is_change)
}

/// A longer output says more than that something was done.
const LONGEST_RECEIPT: usize = 400;

/// An exit code is in one of this many lines at the beginning or the end of an output.
const LINES: usize = 6;
/// Longer lines contain none.
const LINE_BYTES: usize = 200;
/// The bytes at the beginning and at the end of an output that are searched for it.
const SEARCHED: usize = 4 << 10;

/// The names of JSON fields that contain an exit code, with the code.
static EXIT_FIELD: LazyRegex = LazyRegex::new(
    r#""(?:exit_code|exitCode|returncode|return_code|exit_status)"\s*:\s*(?<code>-?[0-9]+)"#,
);

/// A line that states an exit code.
static EXIT_LINE: LazyRegex = LazyRegex::new(
    r#"(?xi) ^[\s\[<(*\#]* (?:the\s)? (?:(?:process|command|shell|program)\s)?
    (?: (?:exited|failed|completed|finished|terminated)\swith\s
        (?: exit[\s_]?code | exit\sstatus | return\s?code | status | code | exit )
      | exit[\s_]?code | exit\sstatus | return\s?code | exit )
    [>:=\s"]* (?<code>-?[0-9]+) (?: \s*$ | \s?\( | [\])><.,;*"] )"#,
);

/// The exit code that an output states.
fn exit_code(text: &str) -> Option<i64> {
    let text = text.trim();
    let (head, tail) = (first_bytes(text, SEARCHED), last_bytes(text, SEARCHED));
    let code = |found: regex::Captures<'_>| found.name("code")?.as_str().parse().ok();
    if text.starts_with('{') {
        let found = EXIT_FIELD
            .captures(head)
            .or_else(|| EXIT_FIELD.captures(tail));
        if let Some(code) = found.and_then(code) {
            return Some(code);
        }
    }
    let of_line = |line: &str| {
        EXIT_LINE
            .captures(first_bytes(line, LINE_BYTES))
            .and_then(code)
    };
    let first = head.lines().take(LINES).find_map(of_line);
    first.or_else(|| tail.lines().rev().take(LINES).find_map(of_line))
}

/// What a call was asked, on one line of at most `bytes`: the command, or the values of its
/// arguments. A long value keeps its end, where a path has its file name.
pub(super) fn asked(call: &Call, bytes: usize) -> String {
    if let Some(command) = command(call) {
        return format!("{}({})", call.name, first_part(&command, bytes));
    }
    let mut values = Vec::new();
    match parsed(&call.arguments) {
        Some(value) => collect(&value, &mut values),
        None => values.push(call.arguments.clone()),
    }
    let mut text = String::new();
    for value in values {
        let left = bytes.saturating_sub(text.len());
        if left < LEAST_VALUE {
            break;
        }
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(&last_part(&value, left));
    }
    format!("{}({text})", call.name)
}

/// A value is not shown in fewer bytes than this.
const LEAST_VALUE: usize = 12;
/// Marks a cut.
const CUT: &str = "\u{2026}";

fn collect(value: &Value, values: &mut Vec<String>) {
    match value {
        Value::String(text) => values.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, values)),
        Value::Object(members) => members.values().for_each(|member| collect(member, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text without line breaks, of which more than `bytes` is not looked at.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn first_part(text: &str, bytes: usize) -> String {
    let text = flat(first_bytes(text, bytes * 4));
    match first_bytes(&text, bytes) {
        start if start.len() == text.len() => text,
        start => format!("{start}{CUT}"),
    }
}

fn last_part(text: &str, bytes: usize) -> String {
    let text = flat(last_bytes(text, bytes * 4));
    match last_bytes(&text, bytes) {
        end if end.len() == text.len() => text,
        end => format!("{CUT}{end}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_print_files_are_read_and_builds_are_run() {
        for (name, arguments, expected) in [
            ("Read", r#"{"path":"a.rs"}"#, false),
            ("get_user_details", "{}", false),
            ("str_replace_editor", "{}", true),
            ("bash", r#"{"command":"cargo test --all"}"#, true),
            ("bash", r#"{"command":"cd x && sed -n 1,90p a.rs"}"#, false),
            (
                "shell",
                r#"{"command":["bash","-lc","rg -n fn src | head"]}"#,
                false,
            ),
            ("exec_command", r#"{"cmd":"/usr/bin/make"}"#, true),
            ("bash", r#"{"command":"git -C x diff --stat"}"#, false),
            ("bash", r#"{"command":"git commit -m x"}"#, true),
            ("write_stdin", r#"{"chars":"y"}"#, true),
        ] {
            let call = Call::new("c", name, arguments);
            assert_eq!(runs(&call), expected, "{name} {arguments}");
        }
    }

    #[test]
    fn exit_codes_are_read_in_the_forms_of_all_clients() {
        for (output, code) in [
            (
                "Chunk ID: 4f\nWall time: 0.0512 seconds\nProcess exited with code 1\nOriginal token count: 9\nOutput:\nx",
                1,
            ),
            ("Exit code: 2\nWall time: 0.1 seconds\nOutput:\nx", 2),
            (
                r#"{"output":"x","metadata":{"exit_code":101,"duration_seconds":0.1}}"#,
                101,
            ),
            (r#"{"stdout":"","exitCode":0}"#, 0),
            ("Exit code 127\nsh: foo: not found", 127),
            ("<returncode>1</returncode>\n<output>\nx</output>", 1),
            (
                "x\n[The command completed with exit code 3.]\n[Python interpreter: /usr/bin/python]",
                3,
            ),
            (
                "Command: ls\nDirectory: (root)\nOutput: x\nError: (none)\nExit Code: 2\nSignal: (none)",
                2,
            ),
            ("oops\n[exit status 3]", 3),
            ("oops\n[exit 4]", 4),
            ("x\n<exited with exit code 5>", 5),
            ("x\n\nCommand exited with code 6", 6),
            ("Command failed with exit code -1.", -1),
        ] {
            assert_eq!(exit_code(output), Some(code), "{output}");
        }
    }

    #[test]
    fn text_that_only_mentions_an_exit_code_is_no_statement() {
        for output in [
            "exit code 3 means that nothing was found",
            "code 1",
            "status: 200",
            "the worker process exited with code 1 at noon",
            "exit",
            "Process running with session ID 7",
            "",
        ] {
            assert_eq!(exit_code(output), None, "{output}");
        }
    }

    #[test]
    fn files_are_those_of_fields_and_patches() {
        let named = |tool: &str, arguments: &str| files(&Call::new("c", tool, arguments));
        let patch =
            r#"{"input":"*** Begin Patch\n*** Update File: src/a.ts\n@@\n-x\n*** End Patch"}"#;
        let changed = |path: &str| (vec![path.to_owned()], true);
        assert_eq!(named("apply_patch", patch), changed("src/a.ts"));
        let bare = "*** Begin Patch\n*** Add File: b.rs\n+foo.log\n*** End Patch";
        assert_eq!(named("apply_patch", bare), changed("b.rs"));
        assert_eq!(
            named("edit", r#"{"file_path":"a.py","new":"see b.py"}"#),
            changed("a.py")
        );
        assert_eq!(
            named("read_file", r#"{"path":"Makefile"}"#),
            (vec!["Makefile".to_owned()], false)
        );
        assert_eq!(named("grep", r#"{"pattern":"x","path":"src"}"#).0, [""; 0]);
        assert_eq!(named("bash", r#"{"command":"cat a.rs"}"#).0, [""; 0]);
    }

    #[test]
    fn what_was_asked_is_told_in_few_bytes() {
        let asked = |tool: &str, arguments: &str| asked(&Call::new("c", tool, arguments), 40);
        let long = format!(r#"{{"path":"src/{}/main.rs","limit":20}}"#, "x".repeat(90));
        let told = asked("read", &long);
        assert!(
            told.starts_with("read(\u{2026}") && told.ends_with("x/main.rs)"),
            "{told}"
        );
        let command = format!(r#"{{"command":"cargo  test\n {}"}}"#, "y".repeat(90));
        assert!(asked("bash", &command).starts_with("bash(cargo test yyy"));
        assert_eq!(asked("list", "{}"), "list()");
    }
}
