//! Many conversations: a line each, and their sum.

use std::fmt::Write;

use super::report::Report;
use crate::ui::number::{counted, grouped, percent, short};
use crate::ui::style;
use crate::ui::visible::visible;

/// How wide the name of a conversation may be.
const NAME: usize = 36;

/// The sum of many conversations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// How many.
    pub conversations: usize,
    turns: usize,
    messages: usize,
    tokens: u64,
    outputs: u64,
    repeated: u64,
    faults: usize,
}

impl Totals {
    /// Adds one conversation.
    pub fn add(&mut self, report: &Report) {
        self.conversations += 1;
        self.turns += report.counts.turns;
        self.messages += report.counts.messages;
        self.tokens += report.window.tokens;
        self.outputs += report.outputs.tokens;
        self.repeated += report.outputs.repeated_tokens;
        self.faults += report.faults.len();
    }
}

/// The names of the columns.
pub fn header() -> String {
    let strong = style::STRONG;
    format!(
        "{strong}{:<NAME$} {:>6} {:>8} {:>8} {:>6} {:>8} {:>9} {:>7}{strong:#}\n",
        "conversation", "turns", "messages", "tokens", "full", "outputs", "repeated", "faults"
    )
}

/// One conversation.
pub fn row(report: &Report) -> String {
    let full = report.window.size.map_or_else(
        || "-".to_owned(),
        |size| percent(report.window.tokens, size),
    );
    let faults = match report.faults.len() {
        0 => format!("{:>7}", "-"),
        some => format!("{bad}{some:>7}{bad:#}", bad = style::BAD),
    };
    format!(
        "{:<NAME$} {:>6} {:>8} {:>8} {:>6} {:>8} {:>9} {faults}\n",
        name(report),
        report.counts.turns,
        report.counts.messages,
        short(report.window.tokens),
        full,
        percent(report.outputs.tokens, report.window.tokens),
        percent(report.outputs.repeated_tokens, report.window.tokens),
    )
}

/// What to call a conversation: its id, else its file, cut in the middle.
fn name(report: &Report) -> String {
    let name = visible(report.id.as_deref().unwrap_or(&report.file));
    let count = name.chars().count();
    if count <= NAME {
        return name.into_owned();
    }
    let half = (NAME - 1) / 2;
    let head: String = name.chars().take(NAME - 1 - half).collect();
    let tail: String = name.chars().skip(count - half).collect();
    format!("{head}\u{2026}{tail}")
}

/// The sum; after reports in full, without the columns.
pub fn footer(totals: &Totals, in_full: bool) -> String {
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
