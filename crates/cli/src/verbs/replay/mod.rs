//! `trimtab replay`: replays recorded sessions through a preset.

pub mod html;
pub mod jobs;
mod picture;
pub mod policies;
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
    /// The preset [default: the preset of the settings, else steady]
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
cache, and what the last window leaves out.

Summaries are written without a model.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Columns:
  tokens       tokens sent; 1.00 is sending everything
  billed       their cost with a prompt cache; 1.00 is sending everything
  saved        the difference in dollars
  largest      tokens of the largest window
  hidden       messages that the last window leaves out
  cut          outputs that the last window shows in part
  over         windows that are larger than the model's
  refused      calls without a window that is valid and fits

Examples:
  trimtab replay session.jsonl --window 40k                     one preset
  trimtab replay runs/*.jsonl --window 40k --compare refs,archive,steady,none
  trimtab replay runs/*.jsonl --model claude-opus-5-5 --html out.html
  trimtab replay session.jsonl --window 40k --windows out.jsonl write every window
  trimtab replay session.jsonl --window 40k --set ageing.rewrite.economy=8
  trimtab replay runs/*.jsonl --window 40k --json | jq .billed_ratio

Exit codes: 0 success, 1 failure, 2 wrong input or arguments.
docs/replay.md describes the measures and the fields of --json and --windows.";

/// The explanation of the columns, from the help.
pub fn columns() -> &'static str {
    let (columns, _) = EXAMPLES.split_once("\n\nExamples:").unwrap_or_default();
    columns
}

/// Runs the verb.
pub fn run(args: &ReplayArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let policies = policies::policies(args, common)?;
    let mut models = RecordedModels::new(args.window, args.model.as_deref())?;
    let mut settings = conditions(args, &models)?;
    for path in [&args.html, &args.windows].into_iter().flatten() {
        out_file::check(path, &args.files)?;
    }
    let read = recorded_sessions::all(args, &mut models, settings.dialect, terminal)?;
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
    let jobs = jobs::jobs(&read.conversations, &policies);
    let windows = args.windows.as_deref().map(out_file::create).transpose()?;
    let windows = windows.map(WindowWriter::new);
    let progress = Progress::steps("replaying", jobs.len() as u64, terminal);
    let done = jobs::run(&jobs, &settings, windows.as_ref(), &progress);
    progress.finish();
    if let Some(windows) = windows {
        windows.finish()?;
    }
    let rows = rows::rows(&read.conversations, &policies, done);
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
        let drawn = picture::longest(&read.conversations, &policies);
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
