//! Finds out how a call ended, as far as its output says.

use serde_json::Value;
use trimtab_model::{Call, Output};

use crate::facts;
use crate::pattern::LazyRegex;
use crate::view::figures::first_bytes;

/// Clients write the exit status of a command into this many lines at either end of an output.
const LINES: usize = 6;
/// The bytes of a line that are read.
const LINE_BYTES: usize = 200;
/// A longer output is not parsed as JSON.
const PARSED: usize = 1 << 20;

/// The outcome of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallOutcome {
    /// There is no output.
    Unanswered,
    /// There is an output, and it does not say how the call ended.
    Answered,
    /// The output says that the call succeeded.
    Succeeded,
    /// The output says that the call failed, with its exit code if there is one.
    Failed(Option<i64>),
}

impl CallOutcome {
    /// The outcome of `call` with this `output`.
    ///
    /// Only outputs of commands are searched for an exit code. Outputs of other tools, such as the
    /// text of a file, may contain one that is not theirs.
    pub(super) fn of(call: &Call, output: Option<&Output>) -> Self {
        let Some(output) = output else {
            return Self::Unanswered;
        };
        let code = runs_command(call).then(|| exit_code(&output.text()));
        match (output.is_error, code.flatten()) {
            // An error with exit code 0 has failed all the same: the client says so itself.
            (true, Some(0) | None) => Self::Failed(None),
            (false, Some(0)) => Self::Succeeded,
            (_, Some(code)) => Self::Failed(Some(code)),
            (false, None) => Self::Answered,
        }
    }

    /// The outcome as text.
    pub(super) fn text(self) -> String {
        match self {
            Self::Unanswered => "no output yet".to_owned(),
            Self::Answered => "answered".to_owned(),
            Self::Succeeded => "ok".to_owned(),
            Self::Failed(None) => "failed".to_owned(),
            Self::Failed(Some(code)) => format!("failed (exit {code})"),
        }
    }
}

/// True if the call runs a command.
pub(super) fn runs_command(call: &Call) -> bool {
    let mut has_command = false;
    facts::commands(&call.name, &call.arguments, &mut |_| has_command = true);
    has_command
}

/// The exit code that a client wrote into the output of a command, in one of the usual forms: a
/// field of a JSON object, or a separate line at either end.
fn exit_code(text: &str) -> Option<i64> {
    let trimmed = text.trim();
    if trimmed.starts_with('{') && trimmed.len() <= PARSED {
        let parsed: Option<Value> = serde_json::from_str(trimmed).ok();
        if let Some(code) = parsed.as_ref().and_then(code_in) {
            return Some(code);
        }
    }
    let head = trimmed.lines().take(LINES).find_map(code_of_line);
    head.or_else(|| trimmed.lines().rev().take(LINES).find_map(code_of_line))
}

/// The names of fields that contain an exit code.
static EXIT_FIELD: LazyRegex =
    LazyRegex::new("^(?:exit_code|exitCode|returncode|return_code|exit_status|exit)$");

/// The exit code in an object, or in the nested object that describes its result.
fn code_in(value: &Value) -> Option<i64> {
    let mut fields = value.as_object()?.iter();
    let own = fields.find_map(|(name, code)| code.as_i64().filter(|_| EXIT_FIELD.is_match(name)));
    own.or_else(|| {
        // Some clients put the exit code into a nested object.
        let parts = ["metadata", "result", "details"];
        parts.iter().find_map(|part| code_in(value.get(part)?))
    })
}

/// A line that states only how a command ended. `code 1` and `status 1` are too vague without a
/// verb. After the number, a sentence would continue, but the line of a client does not.
static EXIT_LINE: LazyRegex = LazyRegex::new(
    r#"(?xi) ^[\s\[<(*\#]* (?:the\s)? (?:(?:process|command|shell|program)\s)?
    (?: (?:exited|failed|completed|finished|terminated)\swith\s
        (?: exit[\s_]?code | exit\sstatus | return\s?code | status | code | exit )
      | exit[\s_]?code | exit\sstatus | return\s?code | exit )
    [>:=\s"]* (?<code>-?[0-9]+) (?: \s*$ | \s?\( | [\])><.,;*"] )"#,
);

/// The exit code of such a line.
fn code_of_line(line: &str) -> Option<i64> {
    let found = EXIT_LINE.captures(first_bytes(line, LINE_BYTES))?;
    found.name("code")?.as_str().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
