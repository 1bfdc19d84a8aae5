//! `trimtab inspect`: shows what fills a window, and its faults.
//!
//! Conversations are streamed from `wire::transcript`; each becomes a `report`, which is printed as
//! text, as a table row or as JSON before the next one is read.

pub mod faults;
mod message;
pub mod outputs;
mod pictures;
pub mod report;
pub mod table;
pub mod text;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use trimtab_wire::transcript::{Conversation, ReadError, TranscriptReader, TranscriptWarning};

use self::pictures::LongestConversation;
use self::report::InspectReport;
use self::table::{InspectTotals, TableLayout};
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::out_file;
use crate::recorded_models::RecordedModels;
use crate::source;
use crate::ui::{Terminal, line_width, number};

/// The arguments of `trimtab inspect`.
#[derive(Debug, clap::Args)]
pub struct InspectArgs {
    /// Transcripts to inspect; - for standard input
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Show how full the window of this model is
    #[arg(long, short, value_name = "MODEL")]
    pub model: Option<String>,
    /// Show how full a window of this many tokens is (200000, 200k, 1M)
    #[arg(long, short, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub window: Option<u64>,
    /// Show every conversation in full instead of one line each
    #[arg(long, short)]
    pub all: bool,
    /// Show the message at this position in full
    #[arg(long, value_name = "N", conflicts_with = "all")]
    pub message: Option<usize>,
    /// Draw the longest conversation under every preset, as a page in this file
    #[arg(long, value_name = "OUT.html", conflicts_with = "message")]
    pub html: Option<PathBuf>,
    /// Draw the longest conversation under the preset of the settings, as an image in this file
    #[arg(long, value_name = "OUT.svg", conflicts_with = "message")]
    pub svg: Option<PathBuf>,
}

/// The first part of `trimtab inspect --help`.
pub const ABOUT: &str = "\
Show what fills the window of a recorded conversation, and its faults.

Reads Chat Completions messages (a JSON document, one conversation per line, or one message per \
line), Messages requests, Responses input, the session logs of Claude Code and Codex, and exports \
of opencode. The form is detected from the content.

Token counts are estimates. Message positions start at 0, in the order in which a provider \
receives them: the system prompt, if present, is message 0.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab inspect session.json                   show what fills the window
  trimtab inspect session.json --model gpt-4o    show how full that model's window is
  trimtab inspect ~/.claude/projects/*/*.jsonl   one line per conversation
  trimtab inspect runs.jsonl --all               every conversation in full
  trimtab inspect session.json --message 15      one message in full
  trimtab inspect session.json --html out.html   a picture to share
  trimtab inspect session.json --svg out.svg     the same as an image
  trimtab inspect runs.jsonl --json | jq -c 'select(.faults != []) | .id'
  cat session.json | trimtab inspect -

Exit codes: 0 success, 1 failure, 2 wrong input or arguments.
docs/inspect.md describes the fields of --json.";

/// The width if the terminal does not report one.
const USUAL: usize = 100;
/// How many skipped lines are named before the rest is only counted.
const NAMED_LINES: usize = 5;

fn width() -> usize {
    line_width().unwrap_or(USUAL)
}

/// Runs the verb.
pub fn run(
    args: &InspectArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    for path in [&args.html, &args.svg].into_iter().flatten() {
        out_file::check(path, &args.files)?;
    }
    let mut models = RecordedModels::new(args.window, args.model.as_deref())?;
    let is_drawn = args.html.is_some() || args.svg.is_some();
    let mut printer = InspectPrinter {
        json: common.json,
        all: args.all,
        message: args.message,
        layout: TableLayout::of(width()),
        held: None,
        totals: InspectTotals::default(),
        reader: if is_drawn {
            TextReader::Optional
        } else {
            TextReader::Required
        },
    };
    let mut longest = is_drawn.then(LongestConversation::default);
    let mut wrong = false;
    for path in &args.files {
        let reading = (&mut models, longest.as_mut());
        match inspect(path, reading, &mut printer, terminal) {
            Ok(()) => {}
            // Continue with the other files.
            Err(Failure::Input { message, hint }) => {
                terminal.error(&message, hint.as_deref());
                wrong = true;
            }
            Err(other) => return Err(other),
        }
    }
    printer.finish(terminal)?;
    if let Some(longest) = longest {
        longest.draw(args, common)?;
    }
    if wrong {
        Err(Failure::AlreadyReported)
    } else {
        Ok(())
    }
}

fn inspect(
    path: &Path,
    (models, mut longest): (&mut RecordedModels, Option<&mut LongestConversation>),
    printer: &mut InspectPrinter,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let name = source::name(path);
    let source = source::open(path, terminal)?;
    let progress = source.progress;
    let mut reader = TranscriptReader::new(source.input);
    let mut done = Ok(());
    for read in reader.by_ref() {
        let step = match read {
            Ok(conversation) if printer.message.is_some() => {
                progress.suspend(|| printer.message(&name, &conversation, terminal))
            }
            Ok(conversation) => {
                let window = models.window(&conversation);
                if let Some(longest) = &mut longest {
                    longest.consider(&name, &conversation, models);
                }
                let report = InspectReport::new(&name, &conversation, window);
                // Free the memory before the next conversation is read.
                drop(conversation);
                progress.suspend(|| printer.print_if_read(report, terminal))
            }
            Err(error) => Err(unreadable(&name, &error)),
        };
        if step.is_err() {
            done = step;
            break;
        }
    }
    progress.finish();
    warn_of_skipped(&name, reader.warnings(), terminal);
    done
}

/// Warns of the lines that were skipped.
pub fn warn_of_skipped(name: &str, skipped: &[TranscriptWarning], terminal: &mut Terminal) {
    for warning in skipped.iter().take(NAMED_LINES) {
        terminal.warn(&format!("{name}:{}: {}", warning.line, warning.message));
    }
    if skipped.len() > NAMED_LINES {
        let lines = number::counted(skipped.len(), "line");
        terminal.warn(&format!("{name}: {lines} skipped in all"));
    }
}

/// The failure for an unreadable transcript.
pub fn unreadable(name: &str, error: &ReadError) -> Failure {
    let place = error
        .position()
        .map(|(line, column)| format!(":{line}:{column}"))
        .unwrap_or_default();
    Failure::input(format!("{name}{place}: {error}"), error.hint())
}

/// Prints reports as they arrive: a single one in full, several in one line each.
struct InspectPrinter {
    json: bool,
    all: bool,
    /// The position of the only message to show.
    message: Option<usize>,
    layout: TableLayout,
    /// The first report, until it is clear whether there is a second.
    held: Option<InspectReport>,
    totals: InspectTotals,
    reader: TextReader,
}

/// The reader of the text, who may leave, as `head -1` does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextReader {
    /// The run ends if the reader leaves.
    Required,
    /// The run goes on, because a picture is drawn as well.
    Optional,
    /// The reader has left.
    Gone,
}

impl InspectPrinter {
    /// Prints the requested message.
    fn message(
        &self,
        name: &str,
        conversation: &Conversation,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        let at = self.message.unwrap_or_default();
        let messages = &conversation.messages;
        let Some(message) = messages.get(at) else {
            let last = messages.len().saturating_sub(1);
            let message = format!("{name}: there is no message {at}");
            return Err(Failure::input(
                message,
                format!("give a position from 0 to {last}"),
            ));
        };
        if self.json {
            terminal.json(message)?;
        } else {
            terminal
                .out()
                .write_all(message::text(at, message).as_bytes())?;
        }
        Ok(())
    }

    /// Prints a report, unless nobody reads any more.
    fn print_if_read(
        &mut self,
        report: InspectReport,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        if self.reader == TextReader::Gone {
            return Ok(());
        }
        let printed = self.print(report, terminal);
        self.or_unread(printed)
    }

    /// If there is a picture to draw, a reader who leaves does not end the run.
    fn or_unread(&mut self, printed: Result<(), Failure>) -> Result<(), Failure> {
        match printed {
            Err(Failure::Failed(error))
                if error.kind() == ErrorKind::BrokenPipe && self.reader == TextReader::Optional =>
            {
                self.reader = TextReader::Gone;
                Ok(())
            }
            printed => printed,
        }
    }

    fn print(&mut self, report: InspectReport, terminal: &mut Terminal) -> Result<(), Failure> {
        if self.json {
            terminal.json(&report)?;
        } else if self.all {
            self.in_full(&report, terminal)?;
        } else if self.totals.conversations == 0 && self.held.is_none() {
            self.held = Some(report);
        } else {
            if let Some(first) = self.held.take() {
                let header = self.layout.header();
                terminal.out().write_all(header.as_bytes())?;
                self.row(&first, terminal)?;
            }
            self.row(&report, terminal)?;
        }
        Ok(())
    }

    fn in_full(&mut self, report: &InspectReport, terminal: &mut Terminal) -> Result<(), Failure> {
        let gap = if self.totals.conversations > 0 {
            "\n"
        } else {
            ""
        };
        self.totals.add(report);
        let text = text::render(report, terminal.has_colour(), width());
        write!(terminal.out(), "{gap}{text}")?;
        Ok(())
    }

    fn row(&mut self, report: &InspectReport, terminal: &mut Terminal) -> Result<(), Failure> {
        self.totals.add(report);
        let row = self.layout.row(report);
        terminal.out().write_all(row.as_bytes())?;
        Ok(())
    }

    fn finish(&mut self, terminal: &mut Terminal) -> Result<(), Failure> {
        if self.reader == TextReader::Gone {
            return Ok(());
        }
        let printed = self.print_rest(terminal);
        self.or_unread(printed)
    }

    fn print_rest(&mut self, terminal: &mut Terminal) -> Result<(), Failure> {
        if let Some(only) = self.held.take() {
            self.in_full(&only, terminal)?;
        } else if !self.json && self.totals.conversations > 1 {
            let footer = table::footer(&self.totals, self.all);
            terminal.out().write_all(footer.as_bytes())?;
        }
        terminal.out().flush()?;
        Ok(())
    }
}
