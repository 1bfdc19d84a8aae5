//! The conversations to replay.

use std::path::Path;
use std::sync::Arc;

use trimtab::replay::{ReplaySettings, quarter_of_bytes};
use trimtab_model::{Dialect, Message};
use trimtab_wire::transcript::{Conversation, TranscriptReader};

use super::ReplayArgs;
use crate::exit::Failure;
use crate::recorded_models::RecordedModels;
use crate::source;
use crate::ui::Terminal;
use crate::verbs::inspect::{unreadable, warn_of_skipped};

/// A conversation, ready to be replayed.
pub struct RecordedSession {
    /// Its id in the transcript, else the name of the file and its number in it.
    pub id: String,
    /// The original messages.
    pub log: Vec<Arc<Message>>,
    /// The conditions of a replay with its own model, unless flags name another one.
    pub settings: ReplaySettings,
}

/// The result of reading all files.
pub struct ReadTranscripts {
    /// The conversations to replay.
    pub conversations: Vec<RecordedSession>,
    /// True if a file could not be read. The error has been printed.
    pub wrong: bool,
}

impl ReadTranscripts {
    /// The window of all conversations, if it is the same.
    pub fn common_window(&self) -> Option<u64> {
        let mut windows = self.conversations.iter().map(|one| one.settings.window);
        let first = windows.next()?;
        windows.all(|window| window == first).then_some(first)
    }
}

/// Reads all files.
pub fn all(
    args: &ReplayArgs,
    models: &mut RecordedModels,
    dialect: Dialect,
    terminal: &mut Terminal,
) -> Result<ReadTranscripts, Failure> {
    let mut conversations = Vec::new();
    let mut wrong = false;
    for path in &args.files {
        match one(path, args, models, terminal, &mut conversations) {
            Ok(()) => {}
            // Continue with the other files.
            Err(Failure::Input { message, hint }) => {
                terminal.error(&message, hint.as_deref());
                wrong = true;
            }
            Err(other) => return Err(other),
        }
    }
    for recorded in &mut conversations {
        recorded.settings.dialect = dialect;
    }
    if wrong && conversations.is_empty() {
        return Err(Failure::AlreadyReported);
    }
    Ok(ReadTranscripts {
        conversations,
        wrong,
    })
}

fn one(
    path: &Path,
    args: &ReplayArgs,
    models: &mut RecordedModels,
    terminal: &mut Terminal,
    found: &mut Vec<RecordedSession>,
) -> Result<(), Failure> {
    let name = source::name(path);
    let source = source::open(path, terminal)?;
    let progress = source.progress;
    let mut reader = TranscriptReader::new(source.input);
    let mut done = Ok(());
    for (number, read) in reader.by_ref().enumerate() {
        match read {
            Ok(conversation) => {
                let settings = models.settings(&conversation);
                let recorded = recorded(conversation, settings, &name, number);
                let tokens = quarter_of_bytes(&recorded.log);
                if args.min.is_none_or(|min| tokens >= min)
                    && args.max.is_none_or(|max| tokens <= max)
                {
                    found.push(recorded);
                }
            }
            Err(error) => {
                done = Err(unreadable(&name, &error));
                break;
            }
        }
    }
    progress.finish();
    warn_of_skipped(&name, reader.warnings(), terminal);
    done
}

fn recorded(
    conversation: Conversation,
    settings: ReplaySettings,
    name: &str,
    number: usize,
) -> RecordedSession {
    RecordedSession {
        id: conversation
            .id
            .unwrap_or_else(|| format!("{name}#{}", number + 1)),
        log: conversation.messages.into_iter().map(Arc::new).collect(),
        settings,
    }
}
