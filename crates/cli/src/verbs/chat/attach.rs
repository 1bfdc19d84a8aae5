//! `@file` in what the user says: the file goes along.

use trimtab_agent::tools::{NamedFile, Workspace};
use trimtab_model::{Message, Part};

use crate::ui::number::counted;

/// The most files of one message.
const MOST_FILES: usize = 20;
/// What may stand behind the name of a file in a sentence.
const PUNCTUATION: [char; 9] = ['.', ',', ';', ':', '!', '?', ')', '\'', '"'];

/// What the user says, with the files that it names.
pub(super) struct Attached {
    /// The message.
    pub(super) message: Message,
    /// What was put in, and what was not and why, a line each.
    pub(super) notes: Vec<String>,
}

/// Puts the files that `said` names as `@path` behind it, each in a part of its own.
pub(super) fn attach(said: &str, workspace: &Workspace) -> Attached {
    let mut attached = Attached {
        message: Message::user(said),
        notes: Vec::new(),
    };
    let mut names: Vec<&str> = Vec::new();
    for name in said
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
            // A path that was mistyped; other words may begin with an @, too.
            NamedFile::Missing if name.contains('/') => {
                let note = format!("without a file: there is no `{name}` in the workspace");
                attached.notes.push(note);
            }
            NamedFile::Missing => {}
        }
    }
    attached
}

/// The file that is meant: the word as it is, else without punctuation behind it.
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
    fn files_that_are_named_go_along() {
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
