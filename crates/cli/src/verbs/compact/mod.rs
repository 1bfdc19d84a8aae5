//! `trimtab compact`: compacts a recorded conversation and writes it back in the same form.
//!
//! The transcript is read with `wire::transcript`, compacted in a new session of the store
//! (`compact_conversation`), and written with the same crate. `next_steps` tells the user how to
//! continue in the client.

mod client_logs;
mod compact_conversation;
mod earlier_run;
mod next_steps;
mod report;
mod summariser;
mod target;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use trimtab::config::Config;
use trimtab::store::Store;
use trimtab::store_place::StorePlace;
use trimtab_wire::catalogue::Catalogue;
use trimtab_wire::splice::SentMessage;
use trimtab_wire::transcript::{Conversation, TranscriptForm, TranscriptReader, WriteError, write};

use self::compact_conversation::{CompactOptions, CompactedConversation};
use self::next_steps::{CompactedFile, read_command};
use self::report::CompactReport;
use self::summariser::CompactSummariser;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::number::counted;
use crate::ui::{Terminal, number};
use crate::verbs::inspect::{unreadable, warn_of_skipped};
use crate::verbs::output::store_location::session_id;
use crate::{catalogue, out_file, settings, source};

/// The arguments of `trimtab compact`.
#[derive(Debug, clap::Args)]
pub struct CompactArgs {
    /// The transcript; - for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// The file for the compacted transcript; - for standard output
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// The preset that decides what stays: steady, refs, checkpoint, turns, archive, retention, none
    #[arg(long, short, value_name = "NAME")]
    pub preset: Option<String>,
    /// Additional instructions for the summary
    #[arg(long, short, value_name = "TEXT")]
    pub instructions: Option<String>,
    /// Keep this many of the last turns verbatim
    #[arg(long, short, value_name = "N")]
    pub keep_turns: Option<usize>,
    /// The model that writes the summary; without it, the summary is extracted from the
    /// conversation
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// The server of that model [default: its provider's address, or the environment's]
    #[arg(long, value_name = "URL", requires = "model")]
    pub base_url: Option<String>,
    /// The window that the result must fit, in tokens (200000, 200k, 1M)
    #[arg(long, short, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub window: Option<u64>,
    /// The name of the session in the store
    #[arg(long, value_name = "S")]
    pub session: Option<String>,
    /// Allow overwriting the transcript itself
    #[arg(long, short)]
    pub force: bool,
}

/// The first part of `trimtab compact --help`.
pub const ABOUT: &str = "\
Compact a recorded conversation and write it back in the same form.

Reads every form that `trimtab inspect` reads, except exports of opencode. Messages that stay keep \
their bytes, old rounds become a summary, and outputs are shown as the preset decides. Nothing is \
lost: the original transcript, every output and every replaced message are in the store, under refs \
that are printed.

Without --model the summary is extracted from the conversation: the user's messages, commands, \
files, errors, open work, and identifiers that later work may need.

In a log with sub-agents, only the main conversation is compacted and the others stay unchanged. \
In a file with one conversation per line, each of them is compacted.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab compact session.json -o short.json
  trimtab compact session.jsonl -o short.jsonl --preset refs --keep-turns 2
  trimtab compact session.jsonl -o short.jsonl --window 64k --instructions 'keep the SQL'
  trimtab compact session.jsonl -o session.jsonl --force
  trimtab compact session.json -o short.json --json | jq .tokens_after

Exit codes: 0 success (also if there is nothing to replace), 1 failure, 2 wrong input or arguments.
docs/compact.md describes the fields of --json.";

/// Runs the verb.
pub fn run(
    args: &CompactArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let config = settings::load(common, &named(args))?;
    let summariser =
        CompactSummariser::new(args.model.as_deref(), args.base_url.as_deref(), &config)?;
    // Before any work, and before a model is paid for a summary.
    target::check(&args.file, &args.output, args.force)?;
    let name = source::name(&args.file);
    let original = read(args, terminal)?;
    let (conversations, skipped) = conversations(&name, &original, terminal)?;
    let (store, place, is_own) = open_store(common, &config)?;
    let own_place = is_own.then_some(place.as_path());
    let mut run = CompactRun {
        args,
        config: &config,
        summariser: &summariser,
        catalogue: catalogue::load()?,
        place: &place,
        own_place,
        store,
    };
    let mut compacted = Vec::new();
    for (number, conversation) in conversations.iter().enumerate() {
        compacted.push(run.compact(number, conversation, &original)?);
    }
    if let Some(first) = compacted.first_mut().filter(|_| skipped > 0) {
        let lines = counted(skipped, "broken line");
        let note = format!("left out: {lines}, which only the original transcript has");
        first.notes.push(note);
    }
    let windows: Vec<Vec<SentMessage>> = compacted
        .iter()
        .map(|compacted| compacted.sent.clone())
        .collect();
    let written = write(&original, &windows).map_err(|error| Failure::WithHint {
        message: format!("{name}: {error}"),
        hint: Some("the originals are in the store; nothing was written".to_owned()),
    })?;
    let in_place = out_file::is_same(&args.file, &args.output).then_some(&*original);
    target::write(&args.output, &written, in_place, terminal)?;
    let reports = compacted
        .into_iter()
        .zip(&conversations)
        .map(|(compacted, conversation)| {
            let next = CompactedFile {
                form: conversation.form,
                id: conversation.id.as_deref(),
                file: &args.file,
                output: &args.output,
                session: compacted.session.as_str(),
                store: own_place,
                original: &original,
            };
            let steps = next.steps();
            CompactReport::new(&name, &args.output, &place, conversation, compacted)
                .with_steps(steps)
        });
    report::print(&reports.collect::<Vec<_>>(), args, common, terminal)
}

/// The flags of this verb that are settings.
fn named(args: &CompactArgs) -> Vec<(&'static str, String, &'static str)> {
    let mut named = Vec::new();
    named.extend(args.preset.clone().map(|name| ("preset", name, "--preset")));
    named.extend(
        args.window
            .map(|size| ("window", size.to_string(), "--window")),
    );
    named
}

fn read(args: &CompactArgs, terminal: &Terminal) -> Result<Vec<u8>, Failure> {
    let mut source = source::open(&args.file, terminal)?;
    let mut bytes = Vec::new();
    let read = source.input.read_to_end(&mut bytes);
    source.progress.finish();
    read.map_err(|error| Failure::WithHint {
        message: format!("{}: cannot read: {error}", source::name(&args.file)),
        hint: None,
    })?;
    Ok(bytes)
}

/// The conversations to compact, which are the main one of a log, else all, and the number of
/// skipped lines.
fn conversations(
    name: &str,
    original: &[u8],
    terminal: &mut Terminal,
) -> Result<(Vec<Conversation>, usize), Failure> {
    let mut reader = TranscriptReader::new(original);
    let mut all = Vec::new();
    for read in reader.by_ref() {
        let conversation = read.map_err(|error| unreadable(name, &error))?;
        check_form(name, conversation.form)?;
        all.push(conversation);
    }
    warn_of_skipped(name, reader.warnings(), terminal);
    let is_log = |conversation: &Conversation| conversation.form == TranscriptForm::ClaudeCode;
    // The main conversation comes first. The others belong to sub-agents.
    if all.first().is_some_and(is_log) {
        all.truncate(1);
    }
    Ok((all, reader.warnings().len()))
}

/// Fails if the result could not be written.
fn check_form(name: &str, form: TranscriptForm) -> Result<(), Failure> {
    if form.is_written() {
        return Ok(());
    }
    Err(Failure::input(
        format!("{name}: {}", WriteError::Form { form }),
        "use the plugin of opencode (docs/guides/opencode.md), or compact request bodies or \
         messages",
    ))
}

/// The store, its path, and whether commands must name that path. They cannot name a database,
/// whose URL may have a password.
fn open_store(
    common: &CommonArgs,
    config: &Config,
) -> Result<(Arc<dyn Store>, PathBuf, bool), Failure> {
    let mut args = common.store.clone();
    args.store = args.store.or_else(|| config.store.clone());
    args.blobs = args.blobs.or_else(|| config.blobs.clone());
    let (store, place) = args.make()?.into_parts();
    let is_own = args.store.is_some() && matches!(place, StorePlace::Folder(_));
    Ok((store, PathBuf::from(place.to_string()), is_own))
}

/// One run of the verb.
struct CompactRun<'a> {
    args: &'a CompactArgs,
    config: &'a Config,
    summariser: &'a CompactSummariser,
    catalogue: Catalogue,
    place: &'a Path,
    /// The path of the store, if it is not the default store.
    own_place: Option<&'a Path>,
    store: Arc<dyn Store>,
}

impl CompactRun<'_> {
    fn compact(
        &mut self,
        number: usize,
        conversation: &Conversation,
        original: &[u8],
    ) -> Result<CompactedConversation, Failure> {
        let name = self.session_name(number, conversation);
        let options = CompactOptions {
            policy: self.config.policy.clone(),
            limits: self.limits(conversation)?,
            must_fit: self.args.window.is_some(),
            instructions: self.args.instructions.clone().unwrap_or_default(),
            keep_turns: self.args.keep_turns,
            read_command: read_command(&name, self.own_place),
        };
        let id = session_id(&name)?;
        // The whole file is stored once, with its first conversation.
        let original = (number == 0).then_some(original);
        let compacted = compact_conversation::compact(
            (Arc::clone(&self.store), id),
            conversation,
            original,
            options,
            self.summariser,
        );
        compacted.map_err(|error| error.failure(self.place))
    }

    fn limits(&self, conversation: &Conversation) -> Result<trimtab::session::Limits, Failure> {
        let model = self
            .config
            .model
            .as_deref()
            .or(conversation.model.as_deref());
        let known = model.and_then(|model| self.catalogue.find(model).ok());
        let looked_up = known.as_ref().map(|found| found.model.call_limit());
        let window = self.config.window.or(conversation.window).or(looked_up);
        self.config
            .check(window)
            .map_err(|error| settings::failure(&error))?;
        Ok(trimtab::session::Limits {
            window,
            max_output: self.config.max_output,
            bytes: None,
        })
    }

    /// A new session for every run, because a log can only be appended to.
    fn session_name(&self, number: usize, conversation: &Conversation) -> String {
        let stem = self.args.file.file_stem().and_then(|stem| stem.to_str());
        let id = conversation.id.as_deref().or(stem).unwrap_or("transcript");
        // The name of a session is limited to 512 bytes.
        let id: String = id.chars().take(100).collect();
        let now = trimtab::store::now_millis();
        let own = match &self.args.session {
            Some(session) => session.clone(),
            None => format!("compact-{id}-{now}"),
        };
        if number == 0 {
            own
        } else {
            format!("{own}-{number}")
        }
    }
}
