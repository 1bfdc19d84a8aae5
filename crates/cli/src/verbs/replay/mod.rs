//! `trimtab replay`: replays recorded sessions through a preset.

pub mod contenders;
pub mod html;
pub mod jobs;
mod labels;
mod picture;
pub mod recorded_sessions;
pub mod rows;
pub mod svg;
pub mod table;
pub mod windows;

use std::io::Write;
use std::path::PathBuf;

use trimtab::replay::ReplaySettings;
use trimtab_model::Dialect;

use self::windows::WindowWriter;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::out_file;
use crate::recorded_models::RecordedModels;
use crate::ui::progress::Progress;
use crate::ui::{Terminal, number};

/// The arguments of `trimtab replay`.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// Transcripts to replay; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The preset, or oracle or drop-oldest [default: the preset of the settings, else steady]
    #[arg(long, short, value_name = "PRESET")]
    pub preset: Option<String>,
    /// Compare several presets
    #[arg(
        long,
        value_name = "PRESETS",
        value_delimiter = ',',
        conflicts_with = "windows"
    )]
    pub compare: Vec<String>,
    /// Add steady at each of these economies, as a curve of the plot (2,4,8,16)
    #[arg(
        long,
        value_name = "ECONOMIES",
        value_delimiter = ',',
        conflicts_with = "windows"
    )]
    pub curve: Vec<u64>,
    /// The model's window in tokens (40000, 40k, 1M)
    #[arg(long, short, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub window: Option<u64>,
    /// Use the window and the prices of this model
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// The dialect whose rules every window must meet
    #[arg(long, value_name = "DIALECT", default_value = "chat", value_parser = ["chat", "messages", "responses"])]
    pub dialect: String,
    /// Leave out conversations of fewer tokens (bytes / 4)
    #[arg(long, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub min: Option<u64>,
    /// Leave out conversations of more tokens (bytes / 4)
    #[arg(long, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub max: Option<u64>,
    /// Assume that the prompt cache is cold at the start of each turn
    #[arg(long)]
    pub cold_turns: bool,
    /// Write every window to this file, one line per call
    #[arg(long, value_name = "OUT.jsonl")]
    pub windows: Option<PathBuf>,
    /// Write a page with plots to this file
    #[arg(long, value_name = "OUT.html")]
    pub html: Option<PathBuf>,
    /// Show every conversation, not only the sums
    #[arg(long, short)]
    pub all: bool,
}

/// The first part of `trimtab replay --help`.
pub const ABOUT: &str = "\
Replay recorded sessions call by call through a preset, as the proxy or an agent would do it.

The report shows what would have been sent at each call of the model, what that costs with a prompt \
cache, and how useful it is: how many of the calls that took a text from an output, and from nothing \
else, had that text in their window, and what it would have cost to fetch the rest.

Summaries are written without a model.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Columns:
  ready        calls that took text from outputs and had all of it in their window
  effective    billed, plus an extra call for each text that had to be fetched or was cut unseen
  tokens       tokens sent; 1.00 is sending everything
  billed       their cost with a prompt cache; 1.00 is sending everything
  cold         their cost without a cache; 1.00 is sending everything
  extends      windows that only add to the one before, so that the cache is read
  breaks       windows that change what was sent before, so that the cache is written again
  own calls    calls of a model for summaries, per 100 calls of the conversation
  over         windows that are larger than the model's
  faults       windows that a provider would reject, and calls without a window
  newest shown tokens of new outputs that the model is shown
  cut unseen   outputs that are cut before the model has seen them
  fresh, old   names and lines that calls took from the two newest outputs, or from older ones, \
and that are in the window
  in line      old names that the window shows in their original line
  lost         texts that are neither in the window nor available through a ref in it
  fetches      outputs that had to be fetched
  reasoning    messages with reasoning that are sent with it

Two more names are accepted, for comparison only:
  oracle       knows what later calls need: no policy can be better, and the report shows the distance
  drop-oldest  drops the oldest rounds when the window is full

Examples:
  trimtab replay session.jsonl --window 40k                     one preset, in a few lines
  trimtab replay runs/*.jsonl --window 40k --compare refs,archive,steady,none
  trimtab replay runs/*.jsonl --window 40k --curve 2,4,8,16 --compare turns,refs,oracle --html out.html
  trimtab replay runs/*.jsonl --model claude-opus-5-5 --html out.html
  trimtab replay session.jsonl --window 40k --windows out.jsonl write every window
  trimtab replay session.jsonl --window 40k --set ageing.rewrite.economy=8
  trimtab replay runs/*.jsonl --window 40k --json | jq .effective_ratio

Exit codes: 0 success, 1 failure, 2 wrong input or arguments.
docs/replay.md describes the measures and the fields of --json and --windows.";

/// The explanation of the columns, from the help.
pub fn columns() -> &'static str {
    let (columns, _) = EXAMPLES.split_once("\n\nExamples:").unwrap_or_default();
    columns
}

/// Runs the verb.
pub fn run(args: &ReplayArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let contenders = contenders::contenders(args, common)?;
    let mut models = RecordedModels::new(args.window, args.model.as_deref())?;
    let mut settings = conditions(args, &models)?;
    for path in [&args.html, &args.windows].into_iter().flatten() {
        out_file::check(path, &args.files)?;
    }
    let read = recorded_sessions::all(args, (&mut models, &settings), terminal)?;
    if read.conversations.is_empty() {
        let hint = "give other files, or wider --min and --max";
        return Err(Failure::input("there is no conversation to replay", hint));
    }
    // A window that all transcripts name is better than the default.
    if let Some(window) = read
        .common_window()
        .filter(|_| models.flagged_window().is_none())
    {
        settings.window = window;
    }
    let jobs = jobs::jobs(&read.conversations, &contenders);
    let windows = args.windows.as_deref().map(out_file::create).transpose()?;
    let windows = windows.map(WindowWriter::new);
    let progress = Progress::steps("replaying", jobs.len() as u64, terminal);
    let done = jobs::run(&jobs, &settings, windows.as_ref(), &progress);
    progress.finish();
    if let Some(windows) = windows {
        windows.finish()?;
    }
    let rows = rows::rows(&read.conversations, &contenders, done);
    if common.json {
        for line in rows.json(&settings) {
            terminal.json(&line)?;
        }
    } else {
        let text = table::text(&rows, &settings, args.all);
        terminal.out().write_all(text.as_bytes())?;
    }
    terminal.out().flush()?;
    if let Some(path) = &args.html {
        let drawn = picture::longest(&read.conversations, &contenders);
        let page = html::page(&rows, &settings, drawn.as_ref());
        out_file::write(path, &page)?;
    }
    if read.wrong {
        Err(Failure::AlreadyReported)
    } else {
        Ok(())
    }
}

fn conditions(args: &ReplayArgs, models: &RecordedModels) -> Result<ReplaySettings, Failure> {
    let mut settings = models.flagged_settings();
    settings.cold_turns = args.cold_turns;
    settings.dialect = match args.dialect.as_str() {
        "messages" => Dialect::Messages,
        "responses" => Dialect::Responses,
        _ => Dialect::Chat,
    };
    if settings.window == 0 {
        let hint = "give a window of some thousand tokens, such as --window 40k";
        return Err(Failure::input("the window has 0 tokens", hint));
    }
    Ok(settings)
}
