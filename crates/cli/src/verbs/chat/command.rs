//! Parses a typed line: a message or a command.

use super::text::nearest;

/// The commands: name, argument, description.
const COMMANDS: [(&str, &str, &str); 11] = [
    (
        "context",
        "",
        "show how the window is filled, and when it is compacted",
    ),
    (
        "compact",
        "[INSTRUCTIONS]",
        "compact now, and show the savings",
    ),
    ("undo", "", "revert the last compaction or trim"),
    (
        "output",
        "[REF]",
        "open a stored output in the pager, or list all",
    ),
    ("model", "[NAME]", "show or change the model"),
    ("preset", "[NAME]", "show or change the preset"),
    ("retry", "", "ask again after an error or an interrupt"),
    ("clear", "", "start a new session; this one can be resumed"),
    ("cost", "", "show calls, tokens and money"),
    ("help", "", "this"),
    ("quit", "", "quit; the session can be resumed"),
];

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed<'t> {
    /// A message to the model.
    Message(&'t str),
    /// A command and its argument.
    Command(Command, &'t str),
    /// An unknown command, with the most similar one if there is one.
    Unknown(&'t str, Option<&'static str>),
    /// An empty line.
    Nothing,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Context,
    Compact,
    Undo,
    Output,
    Model,
    Preset,
    Retry,
    Clear,
    Cost,
    Help,
    Quit,
}

/// Parses a line.
pub(super) fn read(line: &str) -> Typed<'_> {
    let line = line.trim();
    let Some(slashed) = line.strip_prefix('/') else {
        return if line.is_empty() {
            Typed::Nothing
        } else {
            Typed::Message(line)
        };
    };
    let (name, behind) = match slashed.split_once(char::is_whitespace) {
        Some((name, behind)) => (name, behind.trim()),
        None => (slashed, ""),
    };
    if !name.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
        // Probably a path that begins with a slash.
        return Typed::Message(line);
    }
    match named(&name.to_ascii_lowercase()) {
        Some(command) => Typed::Command(command, behind),
        None => Typed::Unknown(name, nearest(name, names())),
    }
}

fn named(name: &str) -> Option<Command> {
    Some(match name {
        "context" => Command::Context,
        "compact" => Command::Compact,
        "undo" => Command::Undo,
        "output" => Command::Output,
        "model" => Command::Model,
        "preset" => Command::Preset,
        "retry" => Command::Retry,
        "clear" => Command::Clear,
        "cost" => Command::Cost,
        "help" | "" => Command::Help,
        "quit" | "exit" => Command::Quit,
        _ => return None,
    })
}

/// The names of all commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    COMMANDS.iter().map(|(name, _, _)| *name)
}

/// All commands with their arguments and descriptions.
pub(super) fn help() -> Vec<[String; 2]> {
    let row = |(name, takes, does): &(&str, &str, &str)| {
        let typed = format!("/{name} {takes}");
        [typed.trim_end().to_owned(), (*does).to_owned()]
    };
    COMMANDS.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_distinguished_from_messages() {
        for (line, expected) in [
            ("  ", Typed::Nothing),
            ("hello /undo", Typed::Message("hello /undo")),
            (
                "/etc/hosts: what is it?",
                Typed::Message("/etc/hosts: what is it?"),
            ),
            (
                "/compact  keep the numbers ",
                Typed::Command(Command::Compact, "keep the numbers"),
            ),
            ("/QUIT", Typed::Command(Command::Quit, "")),
            ("/exit", Typed::Command(Command::Quit, "")),
            ("/", Typed::Command(Command::Help, "")),
            ("/compcat x", Typed::Unknown("compcat", Some("compact"))),
            ("/ctx", Typed::Unknown("ctx", None)),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn help_lists_existing_commands() {
        assert!(names().all(|name| named(name).is_some()));
    }
}
