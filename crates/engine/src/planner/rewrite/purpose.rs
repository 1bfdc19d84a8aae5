//! Decides why an output was requested: to be read, or to see whether something worked.
//!
//! Later calls copy lines from files, searches and query results. From the outputs of builds, tests
//! and edits, they hardly ever use more than the result.

use serde_json::Value;
use trimtab_model::Call;

/// Why an output was requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputPurpose {
    /// To be read: a file, a search, a page, a query result; everything that is not known to be a
    /// run.
    Reading,
    /// To do something: a build, a test, an edit.
    Running,
}

/// Words in the names of tools that run a command.
const SHELLS: [&str; 6] = ["bash", "shell", "exec", "terminal", "command", "powershell"];
/// Words in the names of tools that change something, write to a running program, or test it.
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

/// The purpose of the output of a call.
pub(super) fn purpose(call: Option<&Call>) -> OutputPurpose {
    // An observation, or an output whose call is gone. Keeping too much is the smaller mistake.
    let Some(call) = call else {
        return OutputPurpose::Reading;
    };
    let name = call.name.to_ascii_lowercase();
    let is_one_of = |words: &[&str]| words.iter().any(|word| name.contains(word));
    let runs = if is_one_of(&SHELLS) {
        !reads_only(&call.arguments)
    } else {
        is_one_of(&CHANGES)
    };
    if runs {
        OutputPurpose::Running
    } else {
        OutputPurpose::Reading
    }
}

/// True if one of the programs of a command line prints existing data.
fn reads_only(arguments: &str) -> bool {
    let command = command(arguments);
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

/// The command line in the arguments of a call: a string, or a list of words.
fn command(arguments: &str) -> String {
    let Ok(Value::Object(members)) = serde_json::from_str(arguments) else {
        return arguments.to_owned();
    };
    let named = ["command", "cmd", "script", "code", "input"];
    let found = named.iter().find_map(|name| members.get(*name));
    match found {
        Some(Value::String(command)) => command.clone(),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            // Some clients send `["bash", "-lc", "cat a"]`. On a line of its own, the last word is
            // split as a command.
            words.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_print_files_are_read_and_builds_are_run() {
        for (name, arguments, expected) in [
            ("Read", r#"{"path":"a.rs"}"#, OutputPurpose::Reading),
            ("get_user_details", "{}", OutputPurpose::Reading),
            ("str_replace_editor", "{}", OutputPurpose::Running),
            (
                "bash",
                r#"{"command":"cargo test --all"}"#,
                OutputPurpose::Running,
            ),
            (
                "bash",
                r#"{"command":"cd x && sed -n 1,90p a.rs"}"#,
                OutputPurpose::Reading,
            ),
            (
                "shell",
                r#"{"command":["bash","-lc","rg -n fn src | head"]}"#,
                OutputPurpose::Reading,
            ),
            (
                "exec_command",
                r#"{"cmd":"/usr/bin/make"}"#,
                OutputPurpose::Running,
            ),
            (
                "bash",
                r#"{"command":"git -C x diff --stat"}"#,
                OutputPurpose::Reading,
            ),
            (
                "bash",
                r#"{"command":"git commit -m x"}"#,
                OutputPurpose::Running,
            ),
            ("write_stdin", r#"{"chars":"y"}"#, OutputPurpose::Running),
        ] {
            let call = Call::new("c", name, arguments);
            assert_eq!(purpose(Some(&call)), expected, "{name} {arguments}");
        }
        assert_eq!(purpose(None), OutputPurpose::Reading);
    }
}
