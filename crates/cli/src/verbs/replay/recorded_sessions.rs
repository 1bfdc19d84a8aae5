//! The conversations to replay.

use std::path::Path;
use std::sync::Arc;

use trimtab::replay::ReplaySettings;
use trimtab::replay::needs::{Need, needs};
use trimtab_model::Message;
use trimtab_model::estimate::Measure;
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
    /// The texts that its calls took from old outputs.
    pub needs: Vec<Need>,
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

/// Reads all files. `settings` has the conditions that do not depend on a model.
pub fn all(
    args: &ReplayArgs,
    (models, settings): (&mut RecordedModels, &ReplaySettings),
    terminal: &mut Terminal,
) -> Result<ReadTranscripts, Failure> {
    let mut found = Vec::new();
    let mut wrong = false;
    for path in &args.files {
        match one(path, args, models, terminal, &mut found) {
            Ok(()) => {}
            // Continue with the other files.
            Err(Failure::Input { message, hint }) => {
                terminal.error(&message, hint.as_deref());
                wrong = true;
            }
            Err(other) => return Err(other),
        }
    }
    // Finding the needs compares every call with the outputs before it, so it is done in parallel.
    let conversations =
        trimtab::replay::parallel::map(&found, |recorded: &RecordedSession| RecordedSession {
            id: recorded.id.clone(),
            log: recorded.log.clone(),
            needs: needs(&recorded.log),
            settings: ReplaySettings {
                dialect: settings.dialect,
                cold_turns: settings.cold_turns,
                ..recorded.settings.clone()
            },
        });
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
                let tokens = tokens(&recorded.log);
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
        needs: Vec::new(),
        settings,
    }
}

/// The tokens of a conversation, estimated as a quarter of its bytes.
fn tokens(log: &[Arc<Message>]) -> u64 {
    let all: Measure = log.iter().map(|message| Measure::of(message)).sum();
    let sizes = all.sizes();
    let texts = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
    texts.iter().map(|text| u64::from(text.bytes)).sum::<u64>() / 4
}
