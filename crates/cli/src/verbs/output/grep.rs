//! `trimtab output grep`: searches one output, or all outputs of a session.

use std::io;

use serde_json::{Value, json};
use trimtab::store::{Error, MatchLine, Query, SearchMatch, SearchResults, SearchStop};

use super::highlight::Highlight;
use super::store_location::SessionArgs;
use crate::common::CommonArgs;
use crate::common::StoreArgs;
use crate::exit::Failure;
use crate::ui::sheet::Sheet;
use crate::ui::visible::visible_json;
use crate::ui::{Terminal, style};

/// The arguments of `trimtab output grep`.
#[derive(Debug, clap::Args)]
#[command(
    allow_missing_positional = true,
    override_usage = "trimtab output grep [OPTIONS] --session <S> <REF> <PATTERN>\n       \
                      trimtab output grep [OPTIONS] --session <S> --all <PATTERN>"
)]
pub struct OutputGrepArgs {
    /// The session of the outputs.
    #[command(flatten)]
    pub session: SessionArgs,
    /// The ref of the output, or a unique prefix of it
    #[arg(value_name = "REF", conflicts_with = "all")]
    pub id: Option<String>,
    /// The text to search for
    #[arg(value_name = "PATTERN", required = true)]
    pub pattern: String,
    /// Search all outputs of the session
    #[arg(long)]
    pub all: bool,
    /// Treat the pattern as a regular expression
    #[arg(long, short = 'E')]
    pub regex: bool,
    /// Ignore case
    #[arg(long, short)]
    pub ignore_case: bool,
    /// Print this many lines before each match, at most 50
    #[arg(long, short = 'B', value_name = "N", default_value_t = 0)]
    pub before: usize,
    /// Print this many lines after each match, at most 50
    #[arg(long, short = 'A', value_name = "N", default_value_t = 0)]
    pub after: usize,
    /// Stop after this many matches
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub max: usize,
}

/// The first part of `trimtab output grep --help`.
pub const ABOUT: &str = "\
Search an output, or all outputs of a session.

The pattern is plain text unless --regex is given. Regular expressions use the syntax of Rust's \
regex crate: no look-around, no back-references, at most 256 bytes. Output of any size is \
streamed. With --all, binary outputs are skipped.

Each line is printed with its number, counted from 1, followed by a colon if it matches or by a \
dash if it is context. Put -- before a pattern that starts with a dash. Like grep, a search \
without a match exits with code 1, with a note on standard error.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab output grep --session S REF 'no such file'
  trimtab output grep --session S REF '^error(\\[E\\d+\\])?:' --regex -A 5
  trimtab output grep --session S --all --ignore-case timeout
  trimtab output grep --session S --all TODO --json | jq -r .ref | sort | uniq -c";

/// Runs the verb.
pub fn run(
    args: &OutputGrepArgs,
    store: &StoreArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let id = wanted(args)?;
    let place = store.open()?;
    let session = place.session(&args.session.session)?;
    // With a ref, the lookup of the output reports an unknown session.
    if id.is_none() {
        place.known(&session)?;
    }
    let id = id.map(|id| place.output(&session, id)).transpose()?;
    let id = id.as_deref();
    let query = query(args);
    let found = place.store.grep(&session, id, &query);
    let found = found.map_err(|error| match &error {
        Error::Pattern { why } => bad_pattern(args, why),
        error => place.failed_on(&session, id.unwrap_or_default(), error),
    })?;
    if common.json {
        print_json(&found)?;
    } else {
        let colour = terminal.has_colour();
        let mut printer = MatchPrinter {
            sheet: Sheet::new(colour),
            highlight: Highlight::new(&query, colour),
            context: args.before + args.after > 0,
        };
        printer.print(&found, args.all)?;
    }
    tell(args, &found, terminal)
}

/// The output to search; none for all.
fn wanted(args: &OutputGrepArgs) -> Result<Option<&str>, Failure> {
    match (&args.id, args.all) {
        (None, false) => Err(Failure::input(
            "missing argument: one argument is only a pattern",
            "give REF PATTERN to search one output, or --all PATTERN to search all outputs of \
             the session",
        )),
        (id, _) => Ok(id.as_deref()),
    }
}

fn query(args: &OutputGrepArgs) -> Query<'_> {
    let query = if args.regex {
        Query::regex(&args.pattern)
    } else {
        Query::literal(&args.pattern)
    };
    let mut query = query.context(args.before, args.after).max_matches(args.max);
    query.ignore_case = args.ignore_case;
    // An explicitly named binary output is searched anyway.
    query.text_only = args.all;
    query
}

fn bad_pattern(args: &OutputGrepArgs, why: &str) -> Failure {
    let hint = if args.regex {
        "correct the expression, or omit --regex to search for plain text"
    } else {
        "give a text of 1 to 4096 bytes"
    };
    Failure::input(format!("bad pattern {:?}: {why}", args.pattern), hint)
}

/// Reports what the matches do not show: no matches, more matches, or skipped outputs.
fn tell(
    args: &OutputGrepArgs,
    found: &SearchResults,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    match found.stopped {
        Some(SearchStop::Matches) => terminal.warn(&format!(
            "there are more than {} matches; --max N shows more",
            args.max
        )),
        Some(SearchStop::Bytes) => {
            terminal.warn("there is more than can be shown; narrow the pattern");
        }
        Some(SearchStop::Work) => terminal.warn(
            "not everything was searched: the pattern is too expensive on this text; use a \
             simpler one",
        ),
        Some(SearchStop::Expired) | None if found.matches.is_empty() => {
            terminal.note(&format!("no matches for {:?}", args.pattern));
        }
        Some(SearchStop::Expired) | None => {}
    }
    if !found.binary.is_empty() {
        terminal.note(&format!(
            "binary, not searched: {}",
            found.binary.join(", ")
        ));
    }
    if found.damaged.is_empty() {
        return if found.matches.is_empty() {
            Err(Failure::ProblemsFound)
        } else {
            Ok(())
        };
    }
    Err(Failure::WithHint {
        message: format!(
            "damaged, not searched to the end: {}",
            found.damaged.join(", ")
        ),
        hint: Some("the other outputs were searched; run those tools again".to_owned()),
    })
}

fn print_json(found: &SearchResults) -> io::Result<()> {
    let mut sheet = Sheet::new(false);
    for found in &found.matches {
        sheet.text(visible_json(&as_json(found)))?;
        sheet.end()?;
    }
    sheet.flush()
}

fn as_json(found: &SearchMatch) -> Value {
    let line = |line: &MatchLine| {
        json!({
            "offset": line.number,
            "text": line.text(),
            "matched": line.matched,
            "clipped": line.clipped,
        })
    };
    json!({
        "ref": found.id,
        "offset": found.line,
        "lines": found.lines.iter().map(line).collect::<Vec<_>>(),
    })
}

struct MatchPrinter {
    sheet: Sheet,
    highlight: Highlight,
    context: bool,
}

impl MatchPrinter {
    fn print(&mut self, found: &SearchResults, headings: bool) -> io::Result<()> {
        let outputs = found.matches.chunk_by(|a, b| a.id == b.id);
        for (at, matches) in outputs.enumerate() {
            if headings {
                if at > 0 {
                    self.sheet.end()?;
                }
                let id = matches.first().map_or("", |found| &found.id);
                self.sheet.styled(style::STRONG, id)?;
                self.sheet.end()?;
            }
            self.output(matches)?;
        }
        self.sheet.flush()
    }

    /// Prints the matches in one output. Where their contexts overlap, each line is printed once.
    fn output(&mut self, matches: &[SearchMatch]) -> io::Result<()> {
        let mut lines: Vec<&MatchLine> = matches.iter().flat_map(|found| &found.lines).collect();
        // Sort a match before the same line as context. A long line can have several matches.
        lines.sort_by_key(|line| (line.number, !line.matched, line.start));
        let mut last: Option<&MatchLine> = None;
        for line in lines {
            if let Some(last) = last {
                let is_same = line.number == last.number;
                // The same line appears as context of several matches.
                if is_same && (!line.matched || line.start == last.start) {
                    continue;
                }
                // As in grep, a separator marks a gap between contexts.
                if self.context && line.number > last.number + 1 {
                    self.sheet.styled(style::DIM, "--")?;
                    self.sheet.end()?;
                }
            }
            self.line(line)?;
            last = Some(line);
        }
        Ok(())
    }

    fn line(&mut self, line: &MatchLine) -> io::Result<()> {
        let mark = if line.matched { ':' } else { '-' };
        let number = format!("{}{mark}", line.number + 1);
        self.sheet.styled(style::DIM, number)?;
        let mut rest = 0;
        let matches = if line.matched {
            self.highlight.in_line(&line.bytes)
        } else {
            Vec::new()
        };
        for found in matches {
            let (before, shown) = (rest..found.start, found.clone());
            self.sheet
                .raw_line(line.bytes.get(before).unwrap_or_default())?;
            self.sheet.start(style::BAD)?;
            self.sheet
                .raw_line(line.bytes.get(shown).unwrap_or_default())?;
            self.sheet.stop(style::BAD)?;
            rest = found.end;
        }
        self.sheet
            .raw_line(line.bytes.get(rest..).unwrap_or_default())?;
        if line.clipped {
            self.sheet.styled(style::DIM, " [clipped]")?;
        }
        self.sheet.end()
    }
}
