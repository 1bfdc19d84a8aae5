//! Finds the command lines in the arguments of a call.

use std::borrow::Cow;

use trimtab_model::work;

use super::{Fact, FactKind};
use crate::pattern::LazyRegex;
use crate::view::figures::first_bytes;

/// An argument field that contains a command: a string, or a list whose last string is the command.
/// Works on cut arguments too, which are not valid JSON.
static COMMAND: LazyRegex = LazyRegex::new(
    r#"(?xs) "(?:command|cmd|script|commands|shell_command|bash)"\s*:\s*
    (?: "(?<text>(?:[^"\\]|\\.)*) | \[(?:[\s,]*"(?<last>(?:[^"\\]|\\.)*)"?)+ )"#,
);
/// Words in the names of tools whose arguments may be a bare command.
const TOOLS: [&str; 6] = ["bash", "shell", "exec", "terminal", "command", "run"];
/// The maximum of lines of one command.
const MOST_LINES: usize = 8;
/// The maximum of bytes of a line.
const LONGEST: usize = 200;

/// Finds the command lines in the arguments of a call of `tool`.
///
/// They are slices of the arguments as the model wrote them. In JSON, quotes in a command still
/// have their backslash; [`unescaped`] removes it.
///
/// ```
/// # use trimtab_engine::facts;
/// let mut found = Vec::new();
/// let arguments = r#"{"command":"cargo test\ngit commit -m \"fix\""}"#;
/// facts::commands("shell", arguments, &mut |fact| found.push(fact.text));
/// assert_eq!(found, ["cargo test", r#"git commit -m \"fix\""#]);
/// assert_eq!(facts::unescaped(found[1]), r#"git commit -m "fix""#);
/// ```
pub fn commands<'t>(tool: &str, arguments: &'t str, sink: &mut impl FnMut(Fact<'t>)) {
    work::step_text(arguments);
    let bare = !arguments.trim_start().starts_with(['{', '[']);
    if bare {
        if TOOLS.iter().any(|name| tool.contains(name)) {
            lines(arguments, 0, "\n", sink);
        }
        return;
    }
    for found in COMMAND.captures_iter(arguments) {
        if let Some(command) = found.name("text").or(found.name("last")) {
            lines(command.as_str(), command.start(), "\\n", sink);
        }
    }
}

/// `text` without the backslashes of JSON.
pub fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    serde_json::from_str(&format!("\"{text}\"")).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn lines<'t>(command: &'t str, at: usize, end: &str, sink: &mut impl FnMut(Fact<'t>)) {
    let mut from = at;
    let mut taken = 0;
    for line in command.split(end) {
        let text = line.trim();
        let led = line.len() - line.trim_start().len();
        if !text.is_empty() && !text.starts_with('#') {
            let text = head(text);
            sink(Fact {
                kind: FactKind::Command,
                text,
                at: from + led,
            });
            taken += 1;
        }
        from += line.len() + end.len();
        // A here-document follows, which is not a command.
        if taken == MOST_LINES || line.contains("<<") {
            break;
        }
    }
}

/// The head of a line that is too long, not cut inside a character or an escape.
fn head(text: &str) -> &str {
    let head = first_bytes(text, LONGEST);
    // An escape has up to six bytes, as in `\u00e9`.
    match head.rfind('\\') {
        Some(escape) if head.len() < text.len() && escape + 6 > head.len() => {
            first_bytes(head, escape).trim_end_matches('\\')
        }
        _ => head,
    }
}
