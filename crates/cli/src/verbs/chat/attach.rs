//! Attaches the files that a user's message names as `@file`.

use trimtab_agent::tools::{NamedFile, Workspace};
use trimtab_model::{Message, Part};

use crate::ui::number::counted;

/// The maximum number of files in one message.
const MOST_FILES: usize = 20;
/// Punctuation that may follow a file name in a sentence.
const PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', '\'', '"'];

/// A user's message with its attached files.
pub(super) struct AttachedMessage {
    /// The message.
    pub(super) message: Message,
    /// One line for each file that was attached or could not be, with the reason.
    pub(super) notes: Vec<String>,
}

/// Appends the files that `typed` names as `@path`, each as a separate part.
pub(super) fn attach(typed: &str, workspace: &Workspace) -> AttachedMessage {
    let mut attached = AttachedMessage {
        message: Message::user(typed),
        notes: Vec::new(),
    };
    let mut names: Vec<&str> = Vec::new();
    for name in typed
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('@'))
    {
        if !name.is_empty() && !names.contains(&name) && names.len() < MOST_FILES {
            names.push(name);
        }
    }
    let mut done = Vec::new();
    for name in names {
        let (name, found) = find(name, workspace);
        // Two words may name one file, with and without punctuation.
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        match found {
            NamedFile::Text(text) => {
                let lines = counted(text.lines().count(), "line");
                attached.notes.push(format!("with {name}, {lines}"));
                let end = if text.ends_with('\n') { "" } else { "\n" };
                let part = format!("<file path=\"{name}\">\n{text}{end}</file>");
                attached.message.parts.push(Part::text(part));
            }
            NamedFile::Refused(why) => attached.notes.push(format!("without a file: {why}")),
            // Probably a mistyped path. Words without a slash may begin with @ for other reasons.
            NamedFile::Missing if name.contains('/') => {
                let note = format!("without a file: there is no `{name}` in the workspace");
                attached.notes.push(note);
            }
            NamedFile::Missing => {}
        }
    }
    attached
}

/// Finds the file: first with the word as it is, then without trailing punctuation.
fn find<'n>(name: &'n str, workspace: &Workspace) -> (&'n str, NamedFile) {
    let found = workspace.named_file(name);
    let bare = name.trim_end_matches(PUNCTUATION);
    if found == NamedFile::Missing && bare != name && !bare.is_empty() {
        return (bare, workspace.named_file(bare));
    }
    (name, found)
}

#[cfg(test)]
mod tests {
    use trimtab_agent::tools::Confirm;

    use super::*;

    #[test]
    fn named_files_are_attached() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.txt"), "one\ntwo\n").unwrap();
        let workspace = Workspace::new(folder.path(), Confirm::Never).unwrap();
        let attached = attach("look at @a.txt, @a.txt and @b/c; ask @ann", &workspace);
        assert_eq!(
            attached.notes,
            [
                "with a.txt, 2 lines",
                "without a file: there is no `b/c;` in the workspace"
            ]
            .map(|note| note.replace("b/c;", "b/c"))
        );
        assert_eq!(attached.message.parts.len(), 2);
        let text = attached.message.text();
        assert!(
            text.contains("<file path=\"a.txt\">\none\ntwo\n</file>"),
            "{text}"
        );
    }
}
