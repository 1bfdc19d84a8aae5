//! The report as text.

use std::fmt::Write;

use trimtab::replay::{RecallCounts, ReplayReport, ReplaySettings};

use super::rows::{ReplayRow, ReplayRows};
use crate::ui::columns::{Align, lined_up_within};
use crate::ui::line_width;
use crate::ui::number::grouped;
use crate::ui::visible::visible;
use crate::verbs::chat::text::wrapped;

/// The maximum number of listed breaks of a conversation.
const BREAKS: usize = 12;

/// The indentation of the explanation of a column.
const INDENT: usize = 15;

/// The report as text.
pub fn text(rows: &ReplayRows, settings: &ReplaySettings, every: bool) -> String {
    let conversations = rows.all_sizes.len().saturating_sub(rows.left_out.len());
    let first = rows.presets.first().map(|preset| &preset.sum.report);
    let calls = first.map_or(0, |report| report.calls);
    let needs = first.map_or(0, |report| report.needing);
    let first_line = format!(
        "{}, {} calls, {} of them with text from outputs, window {}",
        counted(conversations),
        grouped(calls),
        grouped(needs),
        grouped(settings.window),
    );
    let mut text = wrapped_line(&first_line, 0);
    text.push_str(&left_out(rows));
    text.push('\n');
    text.push_str(&lines(rows, every));
    text.push_str(&distances(rows));
    for preset in &rows.presets {
        let faults = preset.rows.iter().flat_map(|row| &row.report.fault_texts);
        for text_of_fault in faults.take(3) {
            let line = format!("{}: {}", preset.name, visible(text_of_fault));
            text.push_str(&wrapped_line(&line, 0));
        }
    }
    if rows.all_sizes.len() == 1 && rows.presets.len() == 1 {
        text.push_str(&breaks(rows));
    }
    text
}

fn counted(conversations: usize) -> String {
    let plural = if conversations == 1 { "" } else { "s" };
    format!("{conversations} conversation{plural}")
}

/// The line that names conversations which are not in the sums.
fn left_out(rows: &ReplayRows) -> String {
    if rows.left_out.is_empty() {
        return String::new();
    }
    let ids: Vec<_> = rows.left_out.iter().map(|id| visible(id)).collect();
    let line = format!(
        "left out, because a preset had no window for a call: {}: {}",
        counted(ids.len()),
        ids.join(", ")
    );
    wrapped_line(&line, 0)
}

/// A line of the report, which continues below if the terminal is too narrow.
fn wrapped_line(line: &str, indent: usize) -> String {
    let width = line_width().unwrap_or(usize::MAX).saturating_sub(indent);
    format!(
        "{}{}\n",
        " ".repeat(indent),
        wrapped(line, width, indent + 2)
    )
}

/// The distances of the presets from the oracle.
fn distances(rows: &ReplayRows) -> String {
    let mut text = String::new();
    for distance in rows.distances() {
        let distance_words = distance_text(distance.ready, distance.effective);
        let line = format!("{}: {distance_words}", distance.name);
        text.push_str(&wrapped_line(&line, 0));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// The distance of a preset from the oracle in words: in ready calls and in the cost ratio.
pub(super) fn distance_text(ready: f64, effective: f64) -> String {
    format!(
        "the oracle has {:.1} percentage points more ready calls, and its cost ratio is {:.3} lower",
        ready * 100.0,
        effective
    )
}

fn lines(rows: &ReplayRows, every: bool) -> String {
    let costs = [
        "preset",
        "ready",
        "effective",
        "billed",
        "tokens",
        "cold",
        "extends",
        "breaks",
        "own calls",
        "over",
        "faults",
    ];
    let needs = [
        "preset",
        "newest shown",
        "cut unseen",
        "fresh names",
        "fresh lines",
        "old names",
        "in line",
        "old lines",
        "lost",
        "fetches",
        "reasoning",
    ];
    let mut text = table(rows, every, costs, cost_line);
    text.push('\n');
    text.push_str(&table(rows, every, needs, need_line));
    let _ = write!(text, "\n{}\n\n", explained(line_width()));
    text
}

/// The explanation of the columns, in lines of `width` columns if it is known.
fn explained(width: Option<usize>) -> String {
    let Some(width) = width else {
        return super::columns().to_owned();
    };
    let lines = super::columns().lines().map(|line| {
        let text = line.trim_start();
        let space = line.len() - text.len();
        let text = wrapped(text, width.saturating_sub(space), INDENT);
        format!("{}{text}", " ".repeat(space))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn table<const COLUMNS: usize>(
    rows: &ReplayRows,
    every: bool,
    head: [&str; COLUMNS],
    line: fn(&str, &ReplayRow) -> [String; COLUMNS],
) -> String {
    let mut lined = vec![head.map(str::to_owned)];
    for preset in &rows.presets {
        if every && preset.rows.len() > 1 {
            for row in &preset.rows {
                let name = row.id.as_deref().unwrap_or_default();
                lined.push(line(&format!("{} {name}", preset.name), row));
            }
        }
        lined.push(line(&preset.name, &preset.sum));
    }
    let mut align = [Align::Right; COLUMNS];
    if let Some(first) = align.first_mut() {
        *first = Align::Left;
    }
    lined_up_within(&lined, align, line_width())
}

fn cost_line(name: &str, row: &ReplayRow) -> [String; 11] {
    [
        name.to_owned(),
        percent(row.report.ready, row.report.needing),
        format!("{:.3}", row.effective_ratio()),
        format!("{:.3}", row.billed_ratio()),
        format!("{:.3}", row.tokens_ratio()),
        format!("{:.3}", row.cold_ratio()),
        format!("{:.1} %", row.extended_share() * 100.0),
        grouped(row.report.breaks.len() as u64),
        format!("{:.1}", row.own_calls_per_100()),
        grouped(row.report.over),
        grouped(row.report.faults),
    ]
}

fn need_line(name: &str, row: &ReplayRow) -> [String; 11] {
    let ReplayReport { recall, .. } = &row.report;
    let shown = |found: &RecallCounts| percent(found.shown, found.needed);
    [
        name.to_owned(),
        percent(row.report.arrived_shown, row.report.arrived_tokens),
        percent(row.report.cut_unseen, row.report.arrived),
        shown(&recall.fresh_names),
        shown(&recall.fresh_lines),
        shown(&recall.old_names),
        percent(recall.names_in_line, recall.old_names.shown),
        shown(&recall.old_lines),
        grouped(recall.lost()),
        grouped(row.report.fetches),
        percent(row.report.reasoning_kept, row.report.reasoning),
    ]
}

/// A share in percent; a dash if the whole is 0.
pub(super) fn percent(of: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", of as f64 / whole as f64 * 100.0)
}

/// The calls of the only conversation whose windows do not extend the previous one.
fn breaks(rows: &ReplayRows) -> String {
    let Some(row) = rows.presets.first().and_then(|preset| preset.rows.first()) else {
        return String::new();
    };
    let breaks = &row.report.breaks;
    let mut text = String::new();
    let mut line = |line: &str, indent| text.push_str(&wrapped_line(line, indent));
    for found in breaks.iter().take(BREAKS) {
        let (number, calls) = (grouped(found.number), grouped(row.report.calls));
        let (tokens, cost) = (grouped(found.tokens), found.cost);
        line(
            &format!(
                "call {number} of {calls} (message {}): differs from message {} on; {tokens} tokens \
                 that were sent before are written again, for {cost}",
                found.call, found.message,
            ),
            0,
        );
        if !found.why.is_empty() {
            line(&visible(&found.why), 2);
        }
    }
    if breaks.len() > BREAKS {
        line(&format!("and {} more", breaks.len() - BREAKS), 0);
    }
    text
}
