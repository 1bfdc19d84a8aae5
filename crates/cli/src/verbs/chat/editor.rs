//! The line editor of the chat.

use std::path::PathBuf;

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use trimtab::engine::policy::PRESETS;
use trimtab_agent::tools::Workspace;

use super::command;

/// The length of the history.
const REMEMBERED: usize = 1_000;

/// The result of reading a line.
pub(super) enum TypedInput {
    /// A line.
    Line(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the end of the input.
    End,
}

/// The line editor with its history.
pub(super) struct InputPrompt {
    editor: Editor<LineHelper, FileHistory>,
    file: Option<PathBuf>,
}

impl InputPrompt {
    /// Loads the history of earlier sessions.
    pub(super) fn new() -> rustyline::Result<Self> {
        let config = Config::builder()
            .max_history_size(REMEMBERED)?
            // As in shells, a line that begins with a space is not remembered.
            .history_ignore_space(true)
            // Answers to questions do not belong to the history.
            .auto_add_history(false)
            .completion_type(CompletionType::List)
            .color_mode(ColorMode::Disabled)
            .build();
        let mut editor = Editor::with_config(config)?;
        editor.set_helper(Some(LineHelper::default()));
        let file = file().filter(|file| {
            let folder = file.parent();
            folder.is_some_and(|folder| std::fs::create_dir_all(folder).is_ok())
        });
        if let Some(file) = &file {
            // If there is no readable history, start with an empty one.
            let _ = editor.load_history(file);
        }
        Ok(Self { editor, file })
    }

    /// Enables completion of file names in `workspace`.
    pub(super) fn complete_in(&mut self, workspace: &Workspace) {
        if let Some(helper) = self.editor.helper_mut() {
            helper.workspace = Some(workspace.clone());
        }
    }

    /// Reads a line and adds it to the history.
    pub(super) fn read(&mut self, prompt: &str) -> rustyline::Result<TypedInput> {
        let read = self.ask(prompt)?;
        if let TypedInput::Line(line) = &read
            && !line.trim().is_empty()
        {
            self.editor.add_history_entry(line)?;
            if let Some(file) = &self.file {
                // A full disk must not end the conversation.
                let _ = self.editor.append_history(file);
            }
        }
        Ok(read)
    }

    /// Reads an answer without adding it to the history.
    pub(super) fn ask(&mut self, prompt: &str) -> rustyline::Result<TypedInput> {
        match self.editor.readline(prompt) {
            // A backslash at the end of a line only continued the input.
            Ok(line) => Ok(TypedInput::Line(line.replace("\\\n", "\n"))),
            Err(ReadlineError::Interrupted) => Ok(TypedInput::Interrupted),
            Err(ReadlineError::Eof) => Ok(TypedInput::End),
            Err(error) => Err(error),
        }
    }
}

/// The history file.
fn file() -> Option<PathBuf> {
    let folder = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = folder("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.filter(|path| path.is_absolute());
    let state = state.or_else(|| Some(PathBuf::from(folder("HOME")?).join(".local/state")));
    Some(state?.join("trimtab").join("typed"))
}

/// Completes commands, presets and file names. A trailing backslash continues the line.
#[derive(Default)]
struct LineHelper {
    workspace: Option<Workspace>,
}

impl Completer for LineHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = line.get(..at).unwrap_or(line);
        let word = typed.rsplit(char::is_whitespace).next().unwrap_or_default();
        if let (Some(begin), Some(workspace)) = (word.strip_prefix('@'), &self.workspace) {
            let paths = workspace.paths_from(begin);
            return Ok((typed.len() - begin.len(), paths));
        }
        Ok(candidates(typed))
    }
}

/// The start of the word at the cursor, and its possible completions.
fn candidates(typed: &str) -> (usize, Vec<String>) {
    let (from, names): (_, Vec<String>) = if let Some(word) = typed.strip_prefix("/preset ") {
        let names = PRESETS.iter().map(|preset| preset.name.to_owned());
        (typed.len() - word.len(), names.collect())
    } else if typed.starts_with('/') {
        (0, command::names().map(|name| format!("/{name}")).collect())
    } else {
        return (0, Vec::new());
    };
    let word = typed.get(from..).unwrap_or_default();
    let begins = |name: &String| name.starts_with(word);
    (from, names.into_iter().filter(begins).collect())
}

impl Validator for LineHelper {
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(if typed.input().ends_with('\\') {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Valid(None)
        })
    }
}

impl Hinter for LineHelper {
    type Hint = String;
}

impl Highlighter for LineHelper {}

impl Helper for LineHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_and_presets_are_completed() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        assert_eq!(
            candidates("/co"),
            (0, words(&["/context", "/compact", "/cost"]))
        );
        assert_eq!(candidates("/preset re"), (8, words(&["refs", "retention"])));
        assert_eq!(candidates("what is /co"), (0, Vec::new()));
    }
}
