//! The `PostToolUse` hook of Claude Code.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use trimtab::session::{SessionError, Setup};
use trimtab::single_output::show_output;
use trimtab::store::{SessionId, Store};
use trimtab::store_place::StorePlace;
use trimtab_engine::view::tools::is_retrieval;

use crate::common::{CommonArgs, StoreArgs};
use crate::exit::Failure;
use crate::settings;

/// The window of the client's models, where the settings name none.
const WINDOW: u64 = 200_000;
/// The client does not shorten outputs later, when the window fills up. So they are shown as in a
/// window that is smaller by this factor: with the usual window, 15 to 21 KB of each.
const SHARE: u64 = 8;
/// Shorter texts are never replaced, in bytes.
const LEAST_TEXT: usize = 4_000;
/// The number of lines that the command in a view reads.
const LINES: u64 = 200;
/// Tools whose results repeat what the model wrote. Only the client shows them, not the model.
const ECHO_TOOLS: [&str; 5] = ["Edit", "MultiEdit", "NotebookEdit", "TodoWrite", "Write"];
/// The command that reads an output back. Its output must not be shortened again.
const READ_COMMAND: &str = "trimtab output ";

/// The event that the client sends after a tool has run.
#[derive(Debug, Deserialize)]
struct ToolEvent {
    session_id: String,
    hook_event_name: String,
    tool_name: String,
    #[serde(default)]
    tool_use_id: String,
    #[serde(default)]
    tool_input: Value,
    tool_response: Value,
}

/// The answer to an event; none if the output stays unchanged.
pub(super) fn replacement(event: &str, common: &CommonArgs) -> Result<Option<Value>, Failure> {
    let event: ToolEvent = serde_json::from_str(event).map_err(|error| {
        let hint = "this command is meant to be run by Claude Code; see `trimtab hook --help`";
        Failure::input(format!("the event cannot be read: {error}"), hint)
    })?;
    if event.hook_event_name != "PostToolUse" || !may_replace(&event) {
        return Ok(None);
    }
    let mut response = event.tool_response.clone();
    let mut outputs = OutputHook::new(&event, common);
    outputs.shorten(&mut response)?;
    Ok(outputs.replaced.then(|| {
        json!({"hookSpecificOutput": {
            "hookEventName": "PostToolUse",
            "updatedToolOutput": response,
        }})
    }))
}

fn may_replace(event: &ToolEvent) -> bool {
    let command = event.tool_input.get("command").and_then(Value::as_str);
    let reads_back = command.is_some_and(|command| command.contains(READ_COMMAND));
    let tool = event.tool_name.as_str();
    !reads_back && !is_retrieval(tool) && !ECHO_TOOLS.contains(&tool)
}

/// Replaces the long texts of one tool's response.
struct OutputHook<'a> {
    event: &'a ToolEvent,
    common: &'a CommonArgs,
    /// Opened at the first long text, because most outputs are short and the tool waits for us.
    opened: Option<OpenedStore>,
    replaced: bool,
}

/// The store for the outputs of this session.
struct OpenedStore {
    store: Arc<dyn Store>,
    /// Its folder, for commands. None for the default folder, and for a database, whose URL may
    /// hold a password.
    folder: Option<PathBuf>,
    session: SessionId,
    setup: Setup,
}

impl<'a> OutputHook<'a> {
    fn new(event: &'a ToolEvent, common: &'a CommonArgs) -> Self {
        Self {
            event,
            common,
            opened: None,
            replaced: false,
        }
    }

    /// Replaces long texts. The shape of the response stays, because the client checks it.
    fn shorten(&mut self, value: &mut Value) -> Result<(), Failure> {
        match value {
            Value::String(text) if text.len() >= LEAST_TEXT => {
                if let Some(shown) = self.show(text)? {
                    *text = shown;
                    self.replaced = true;
                }
                Ok(())
            }
            Value::Array(list) => list.iter_mut().try_for_each(|item| self.shorten(item)),
            // Encoded images and documents are not text.
            Value::Object(fields) if is_media(fields.get("type")) => Ok(()),
            Value::Object(fields) => fields.values_mut().try_for_each(|item| self.shorten(item)),
            _ => Ok(()),
        }
    }

    /// The view of a text, with the command that reads all of it; none if it is shown whole.
    fn show(&mut self, text: &str) -> Result<Option<String>, Failure> {
        let opened = match self.opened.take() {
            Some(opened) => opened,
            None => self.open()?,
        };
        let opened = self.opened.insert(opened);
        let call = (
            self.event.tool_use_id.as_str(),
            self.event.tool_name.as_str(),
        );
        let OpenedStore {
            store,
            session,
            setup,
            ..
        } = &*opened;
        let shown = show_output(&**store, session, setup, call, text);
        let shown = shown.map_err(|error| failed(&error))?;
        if !shown.shortened {
            return Ok(None);
        }
        let id = shown.stored.id();
        let view = shown.with_read_command(|line| opened.read_command(id, line));
        // The command in the view may make it longer than the text.
        Ok(Some(view).filter(|view| view.len() < text.len()))
    }

    fn open(&self) -> Result<OpenedStore, Failure> {
        let config = settings::load(self.common, &[])?;
        let session = SessionId::new(format!("claude/{}", self.event.session_id));
        let mut setup = Setup::new(config.policy);
        setup.limits.window = Some(config.window.unwrap_or(WINDOW) / SHARE);
        // The client has no retrieval tools, so a view names a command instead.
        setup.retrieval = None;
        let given = self.common.store.store.clone().or(config.store);
        let place = StoreArgs {
            store: given.clone(),
            blobs: self.common.store.blobs.clone().or(config.blobs),
        };
        let is_folder = matches!(place.place()?, StorePlace::Folder(_));
        Ok(OpenedStore {
            store: place.make()?.store,
            folder: given.filter(|_| is_folder),
            session: session.map_err(|error| failed(&SessionError::from(error)))?,
            setup,
        })
    }
}

impl OpenedStore {
    /// The command that reads an output from a line on.
    fn read_command(&self, id: &str, line: u64) -> String {
        let folder = self.folder.as_ref();
        let folder = folder.map_or(String::new(), |path| {
            format!(" --store {}", quoted(&path.display().to_string()))
        });
        let session = quoted(self.session.as_str());
        format!(
            "trimtab output read --session {session}{folder} {id} --offset {line} --limit {LINES}"
        )
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn failed(error: &SessionError) -> Failure {
    Failure::Failed(std::io::Error::other(error.to_string()))
}

fn is_media(kind: Option<&Value>) -> bool {
    let kind = kind.and_then(Value::as_str);
    kind.is_some_and(|kind| matches!(kind, "image" | "document" | "pdf" | "audio"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab::store::MemoryStore;
    use trimtab_engine::policy::Policy;

    #[test]
    fn read_command_quotes_session_and_folder_for_a_shell() {
        let opened = OpenedStore {
            store: Arc::new(MemoryStore::new()),
            folder: Some(PathBuf::from("/home/o'brien/my store")),
            session: SessionId::new("claude/a'b").unwrap(),
            setup: Setup::new(Policy::preset("steady").unwrap()),
        };
        assert_eq!(
            opened.read_command("abc", 7),
            r"trimtab output read --session 'claude/a'\''b' --store '/home/o'\''brien/my store' abc --offset 7 --limit 200"
        );
    }
}
