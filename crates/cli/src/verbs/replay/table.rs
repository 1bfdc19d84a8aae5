//! The report as text.

use std::fmt::Write;

use trimtab::replay::ReplaySettings;

use super::rows::{COLUMNS, ReplayRows};
use crate::ui::columns::{Align, lined_up_within};
use crate::ui::line_width;
use crate::ui::number::grouped;
use crate::ui::visible::visible;
use crate::verbs::chat::text::wrapped;

/// The indentation of the explanation of a column.
const INDENT: usize = 15;

/// The report as text.
pub fn text(rows: &ReplayRows, settings: &ReplaySettings, every: bool) -> String {
    let conversations = rows.all_sizes.len().saturating_sub(rows.left_out.len());
    let first = rows.presets.first().map(|preset| &preset.sum.report);
    let calls = first.map_or(0, |report| report.calls);
    let first_line = format!(
        "{}, {} calls, window {}",
        counted(conversations),
        grouped(calls),
        grouped(settings.window),
    );
    let mut text = wrapped_line(&first_line);
    text.push_str(&left_out(rows));
    text.push('\n');
    text.push_str(&table(rows, every));
    let _ = write!(text, "\n{}\n\n", explained(line_width()));
    for preset in &rows.presets {
        let faults = preset.rows.iter().flat_map(|row| &row.report.fault_texts);
        for text_of_fault in faults.take(3) {
            let line = format!("{}: {}", preset.name, visible(text_of_fault));
            text.push_str(&wrapped_line(&line));
        }
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
    wrapped_line(&line)
}

/// A line of the report, which continues below if the terminal is too narrow.
fn wrapped_line(line: &str) -> String {
    let width = line_width().unwrap_or(usize::MAX);
    format!("{}\n", wrapped(line, width, 2))
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

fn table(rows: &ReplayRows, every: bool) -> String {
    let line = |name: &str, cells: [String; COLUMNS.len()]| {
        let mut line = [const { String::new() }; COLUMNS.len() + 1];
        for (cell, text) in line
            .iter_mut()
            .zip([name.to_owned()].into_iter().chain(cells))
        {
            *cell = text;
        }
        line
    };
    let mut lined = vec![line("preset", COLUMNS.map(str::to_owned))];
    for preset in &rows.presets {
        if every && preset.rows.len() > 1 {
            for row in &preset.rows {
                let name = row.id.as_deref().unwrap_or_default();
                lined.push(line(&format!("{} {name}", preset.name), row.cells()));
            }
        }
        lined.push(line(&preset.name, preset.sum.cells()));
    }
    let mut align = [Align::Right; COLUMNS.len() + 1];
    if let Some(first) = align.first_mut() {
        *first = Align::Left;
    }
    lined_up_within(&lined, align, line_width())
}
