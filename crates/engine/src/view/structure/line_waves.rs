//! Orders the lines of a text by importance, depending on its format.

use std::ops::Range;

use super::lines::TextLines;
use super::output_format::{OutputFormat, hit_path, is_definition};
use crate::pattern::LazyRegex;

/// Lines in the order in which they are wanted, and how much of the room may be used after them, in
/// percent.
pub(super) type LineWave<'a> = (u64, Box<dyn Iterator<Item = usize> + 'a>);

/// The changed lines of every hunk that come before the rest of any hunk.
const CHANGES_OF_EACH: usize = 8;
/// The hits of every file that come before the rest of any file.
const HITS_OF_EACH: usize = 3;

/// False for formats in which words that look like errors mean nothing.
pub(super) fn wants_errors(kind: OutputFormat) -> bool {
    match kind {
        OutputFormat::Diff | OutputFormat::Code | OutputFormat::Hits => false,
        OutputFormat::Table { .. }
        | OutputFormat::Log
        | OutputFormat::Json
        | OutputFormat::Plain => true,
    }
}

/// The waves for a text of a format; `marks` are the errors with their traces, if the format
/// [wants](wants_errors) them.
pub(super) fn waves<'a>(
    kind: OutputFormat,
    lines: &'a TextLines<'_>,
    marks: &'a [Range<usize>],
) -> Vec<LineWave<'a>> {
    let all = 0..lines.len();
    let head = |until: u64| wave(until, all.clone());
    let tail = |until: u64| wave(until, all.clone().rev());
    let errors = |until: u64| wave(until, both_ends(marks).map(|error| error.start));
    match kind {
        // The lines before a diff show how the command went.
        OutputFormat::Diff => vec![
            head(10),
            wave(55, of_role(lines, DiffRole::File)),
            wave(75, of_role(lines, DiffRole::Hunk)),
            wave(95, first_changes(lines)),
            wave(100, of_role(lines, DiffRole::Changed)),
            head(100),
        ],
        // The whole header, then rows from the start and the end.
        OutputFormat::Table { header } => vec![
            wave(100, 0..header),
            wave(30, sections(lines)),
            errors(45),
            head(75),
            tail(100),
        ],
        // The result at the end, the failures, and the beginning.
        OutputFormat::Log => vec![
            head(5),
            tail(30),
            errors(60),
            wave(85, details(marks)),
            head(90),
            tail(100),
        ],
        OutputFormat::Code => vec![
            wave(50, definitions(lines)),
            head(65),
            tail(75),
            wave(95, definitions(lines)),
            head(100),
        ],
        // Some hits from every file come before all hits from one.
        OutputFormat::Hits => vec![
            head(10),
            wave(50, first_hits(lines, 1)),
            wave(85, first_hits(lines, HITS_OF_EACH)),
            tail(90),
            head(100),
        ],
        OutputFormat::Json | OutputFormat::Plain => vec![
            head(15),
            tail(35),
            errors(65),
            wave(85, details(marks)),
            wave(100, inward(lines.len())),
        ],
    }
}

fn wave<'a>(until: u64, lines: impl Iterator<Item = usize> + 'a) -> LineWave<'a> {
    (until, Box::new(lines))
}

/// The role of a line in a diff. `---` and `+++` name files only outside hunks, but a changed line
/// that looks like them does no harm among the headers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DiffRole {
    File,
    Hunk,
    Changed,
    Other,
}

static DIFF_FILE: LazyRegex =
    LazyRegex::new(r"^(?:diff |--- |\+\+\+ |rename |deleted file|new file|Binary files)");

fn diff_role(line: &str) -> DiffRole {
    if DIFF_FILE.is_match(line) {
        DiffRole::File
    } else if line.starts_with("@@") {
        DiffRole::Hunk
    } else if line.starts_with(['+', '-']) {
        DiffRole::Changed
    } else {
        DiffRole::Other
    }
}

fn of_role<'a>(lines: &'a TextLines<'_>, role: DiffRole) -> impl Iterator<Item = usize> + 'a {
    (0..lines.len()).filter(move |at| diff_role(lines.get(*at)) == role)
}

fn first_changes<'a>(lines: &'a TextLines<'_>) -> impl Iterator<Item = usize> + 'a {
    let mut changes = 0;
    (0..lines.len()).filter(move |at| {
        let role = diff_role(lines.get(*at));
        match role {
            DiffRole::Changed => changes += 1,
            DiffRole::Hunk => changes = 0,
            DiffRole::File | DiffRole::Other => {}
        }
        role == DiffRole::Changed && changes <= CHANGES_OF_EACH
    })
}

/// The lines after blank ones: headers of further tables.
fn sections<'a>(lines: &'a TextLines<'_>) -> impl Iterator<Item = usize> + 'a {
    let is_blank = |at: usize| lines.get(at).trim().is_empty();
    (1..lines.len()).filter(move |at| is_blank(at - 1) && !is_blank(*at))
}

fn definitions<'a>(lines: &'a TextLines<'_>) -> impl Iterator<Item = usize> + 'a {
    (0..lines.len()).filter(|at| is_definition(lines.get(*at)))
}

/// The first `most` hits of each run of lines with the same path.
fn first_hits<'a>(lines: &'a TextLines<'_>, most: usize) -> impl Iterator<Item = usize> + 'a {
    let (mut file, mut seen) = (None, 0);
    (0..lines.len()).filter(move |at| {
        let Some(path) = hit_path(lines.get(*at)) else {
            return false;
        };
        seen = if file == Some(path) { seen + 1 } else { 1 };
        file = Some(path);
        seen <= most
    })
}

/// The errors from both ends inward: the first error is the cause, the last one the result.
fn both_ends(marks: &[Range<usize>]) -> impl Iterator<Item = Range<usize>> + '_ {
    inward(marks.len()).filter_map(|at| marks.get(at).cloned())
}

/// The traces of the errors, and the line before each error.
fn details(marks: &[Range<usize>]) -> impl Iterator<Item = usize> + '_ {
    both_ends(marks)
        .flat_map(|error| (error.start + 1..error.end).chain(error.start.checked_sub(1)))
}

/// The numbers below `count` from both ends inward: first, last, second, second to last, and so on.
fn inward(count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |at| {
        if at % 2 == 0 {
            at / 2
        } else {
            count - 1 - at / 2
        }
    })
}
