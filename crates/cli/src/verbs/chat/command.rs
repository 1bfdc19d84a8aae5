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
pub(super) enum TypedLine<'t> {
    /// A message to the model.
    Message(&'t str),
    /// A command and its argument.
    Command(ChatCommand, &'t str),
    /// An unknown command, with the most similar one if there is one.
    Unknown(&'t str, Option<&'static str>),
    /// An empty line.
    Nothing,
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChatCommand {
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
pub(super) fn read(line: &str) -> TypedLine<'_> {
    let line = line.trim();
    let Some(slashed) = line.strip_prefix('/') else {
        return if line.is_empty() {
            TypedLine::Nothing
        } else {
            TypedLine::Message(line)
        };
    };
    let (name, argument) = match slashed.split_once(char::is_whitespace) {
        Some((name, argument)) => (name, argument.trim()),
        None => (slashed, ""),
    };
    if !name.chars().all(|c| c.is_ascii_alphabetic() || c == '-') {
        // Probably a path that begins with a slash.
        return TypedLine::Message(line);
    }
    match named(&name.to_ascii_lowercase()) {
        Some(command) => TypedLine::Command(command, argument),
        None => TypedLine::Unknown(name, nearest(name, names())),
    }
}

fn named(name: &str) -> Option<ChatCommand> {
    Some(match name {
        "context" => ChatCommand::Context,
        "compact" => ChatCommand::Compact,
        "undo" => ChatCommand::Undo,
        "output" => ChatCommand::Output,
        "model" => ChatCommand::Model,
        "preset" => ChatCommand::Preset,
        "retry" => ChatCommand::Retry,
        "clear" => ChatCommand::Clear,
        "cost" => ChatCommand::Cost,
        "help" | "" => ChatCommand::Help,
        "quit" | "exit" => ChatCommand::Quit,
        _ => return None,
    })
}

/// The names of all commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> + Clone {
    COMMANDS.iter().map(|(name, _, _)| *name)
}

/// All commands with their arguments and descriptions.
pub(super) fn help() -> Vec<[String; 2]> {
    let row = |(name, argument, does): &(&str, &str, &str)| {
        let typed = format!("/{name} {argument}");
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
            ("  ", TypedLine::Nothing),
            ("hello /undo", TypedLine::Message("hello /undo")),
            (
                "/etc/hosts: what is it?",
                TypedLine::Message("/etc/hosts: what is it?"),
            ),
            (
                "/compact  keep the numbers ",
                TypedLine::Command(ChatCommand::Compact, "keep the numbers"),
            ),
            ("/QUIT", TypedLine::Command(ChatCommand::Quit, "")),
            ("/exit", TypedLine::Command(ChatCommand::Quit, "")),
            ("/", TypedLine::Command(ChatCommand::Help, "")),
            ("/compcat x", TypedLine::Unknown("compcat", Some("compact"))),
            ("/ctx", TypedLine::Unknown("ctx", None)),
        ] {
            assert_eq!(read(line), expected, "{line}");
        }
    }

    #[test]
    fn help_lists_existing_commands() {
        assert!(names().all(|name| named(name).is_some()));
    }
}
