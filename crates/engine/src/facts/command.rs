//! The command lines in the arguments of a call.

use std::borrow::Cow;

use trimtab_model::work;

use super::{Fact, FactKind};

/// The fields of a call's arguments that hold a command.
const FIELDS: [&str; 6] = [
    "command",
    "cmd",
    "script",
    "commands",
    "shell_command",
    "bash",
];
/// Parts of the names of tools whose arguments may be a bare command.
const TOOLS: [&str; 6] = ["bash", "shell", "exec", "terminal", "command", "run"];
/// Lines of one command that are taken.
const MOST_LINES: usize = 8;
/// Bytes of a line that are taken.
const LONGEST: usize = 200;

/// Finds the command lines in the arguments of a call of `tool`.
///
/// They are slices of the arguments as the model wrote them: where those are JSON, quotes in
/// a command still have their backslash. [`unescaped`] takes it away.
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
    for field in FIELDS {
        if let Some((at, command)) = value_of(arguments, field) {
            lines(command, at, "\\n", sink);
        }
    }
}

/// `text` without the backslashes that JSON needs.
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
        // What follows is a document, not a command.
        if taken == MOST_LINES || line.contains("<<") {
            break;
        }
    }
}

/// The head of a line that is too long, not cut inside a character or an escape.
fn head(text: &str) -> &str {
    if text.len() <= LONGEST {
        return text;
    }
    let end = (0..=LONGEST)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    let head = text.get(..end).unwrap_or_default();
    match head.rfind('\\') {
        Some(escape) if escape + 6 > head.len() => head
            .get(..escape)
            .unwrap_or_default()
            .trim_end_matches('\\'),
        _ => head,
    }
}

/// Where the string behind `"field":` begins and what is in it; of a list, its last string.
fn value_of<'t>(arguments: &'t str, field: &str) -> Option<(usize, &'t str)> {
    let key = format!("\"{field}\"");
    let mut from = 0;
    while let Some(found) = arguments.get(from..)?.find(&key) {
        from += found + key.len();
        let rest = arguments.get(from..)?;
        let Some(value) = rest.trim_start().strip_prefix(':') else {
            continue;
        };
        let value = value.trim_start();
        let at = arguments.len() - value.len();
        if value.starts_with('"') {
            return string(value, at);
        }
        if value.starts_with('[') {
            return last_string(value, at);
        }
    }
    None
}

/// The string that `text` begins with, without its quotes.
fn string(text: &str, at: usize) -> Option<(usize, &str)> {
    let inner = text.strip_prefix('"')?;
    let mut escaped = false;
    for (end, byte) in inner.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return Some((at + 1, inner.get(..end)?)),
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    // Arguments that were cut off are still worth reading.
    Some((at + 1, inner))
}

fn last_string(list: &str, at: usize) -> Option<(usize, &str)> {
    let mut newest = None;
    let mut from = 1;
    loop {
        let rest = list.get(from..)?;
        let next = rest.trim_start_matches([' ', '\n', '\t', ',']);
        let start = from + rest.len() - next.len();
        if !next.starts_with('"') {
            return newest;
        }
        let (inner, found) = string(next, at + start)?;
        from = inner - at + found.len() + 1;
        newest = Some((inner, found));
        if from >= list.len() {
            return newest;
        }
    }
}
