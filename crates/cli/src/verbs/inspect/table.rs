//! The table of many conversations, with totals.

use std::fmt::Write;

use super::report::InspectReport;
use crate::ui::number::{counted, grouped, percent, short};
use crate::ui::style;
use crate::ui::visible::visible;

/// The largest and the smallest width of a conversation's name.
const NAME: usize = 42;
const LEAST_NAME: usize = 14;
/// The width of all figures, and of the most important ones.
const WIDE: usize = 59;
const NARROW: usize = 42;

/// The totals of many conversations.
#[derive(Clone, Copy, Debug, Default)]
pub struct InspectTotals {
    /// The number of conversations.
    pub conversations: usize,
    turns: usize,
    messages: usize,
    tokens: u64,
    outputs: u64,
    repeated: u64,
    faults: usize,
}

impl InspectTotals {
    /// Adds one conversation.
    pub fn add(&mut self, report: &InspectReport) {
        self.conversations += 1;
        self.turns += report.counts.turns;
        self.messages += report.counts.messages;
        self.tokens += report.window.tokens;
        self.outputs += report.outputs.tokens;
        self.repeated += report.outputs.repeated_tokens;
        self.faults += report.faults.len();
    }
}

/// The column widths for a given line width.
#[derive(Clone, Copy, Debug)]
pub struct TableLayout {
    name: usize,
    /// True if there is room for the less important figures.
    is_wide: bool,
}

impl TableLayout {
    /// For lines of `width` columns.
    pub fn of(width: usize) -> Self {
        let is_wide = width >= WIDE + LEAST_NAME;
        let figures = if is_wide { WIDE } else { NARROW };
        let name = width.saturating_sub(figures).clamp(LEAST_NAME, NAME);
        Self { name, is_wide }
    }

    fn line(self, name: &str, cells: [&str; 6], faults: &str) -> String {
        let [turns, messages, tokens, full, outputs, repeated] = cells;
        let width = self.name;
        if self.is_wide {
            return format!(
                "{name:<width$} {turns:>6} {messages:>8} {tokens:>8} {full:>6} {outputs:>8} \
                 {repeated:>9} {faults}"
            );
        }
        format!("{name:<width$} {messages:>8} {tokens:>8} {full:>6} {outputs:>8} {faults}")
    }

    /// The column headings.
    pub fn header(self) -> String {
        let strong = style::STRONG;
        let cells = ["turns", "messages", "tokens", "full", "outputs", "repeated"];
        let line = self.line("conversation", cells, &format!("{:>7}", "faults"));
        format!("{strong}{line}{strong:#}\n")
    }

    /// One conversation.
    pub fn row(self, report: &InspectReport) -> String {
        let full = report
            .window
            .size
            .map_or_else(|| "-".to_owned(), |size| percent(report.filled(), size));
        let faults = match report.faults.len() {
            0 => format!("{:>7}", "-"),
            some => format!("{bad}{some:>7}{bad:#}", bad = style::BAD),
        };
        let cells = [
            &report.counts.turns.to_string(),
            &report.counts.messages.to_string(),
            &short(report.filled()),
            &full,
            &percent(report.outputs.tokens, report.window.tokens),
            &percent(report.outputs.repeated_tokens, report.window.tokens),
        ];
        self.line(&self.name(report), cells.map(String::as_str), &faults) + "\n"
    }

    /// The label of a conversation: its file, and its id unless the file name contains it; cut in
    /// the middle.
    fn name(self, report: &InspectReport) -> String {
        let file = report.file.rsplit('/').next().unwrap_or_default();
        let id = report.id.as_deref().filter(|id| !file.contains(id));
        let name = id.map_or_else(|| file.to_owned(), |id| format!("{file} {id}"));
        let name = visible(&name);
        let count = name.chars().count();
        if count <= self.name {
            return name.into_owned();
        }
        let half = (self.name - 1) / 2;
        let head: String = name.chars().take(self.name - 1 - half).collect();
        let tail: String = name.chars().skip(count - half).collect();
        format!("{head}\u{2026}{tail}")
    }
}

/// The totals; after full reports, without columns.
pub fn footer(totals: &InspectTotals, in_full: bool) -> String {
    let mut text = String::new();
    let strong = style::STRONG;
    if in_full {
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{strong}{}{strong:#}: {}, {}, {} tokens; outputs {}, repeated {}; {}",
        counted(totals.conversations, "conversation"),
        counted(totals.turns, "turn"),
        counted(totals.messages, "message"),
        grouped(totals.tokens),
        percent(totals.outputs, totals.tokens),
        percent(totals.repeated, totals.tokens),
        counted(totals.faults, "fault"),
    );
    if !in_full {
        let dim = style::DIM;
        let _ = writeln!(
            text,
            "{dim}--all shows each in full, --json gives all figures{dim:#}"
        );
    }
    text
}
