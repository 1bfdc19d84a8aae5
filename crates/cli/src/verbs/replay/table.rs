//! What people read.

use std::fmt::Write;

use trimtab::replay::Settings;

use super::rows::{Row, Rows};
use crate::ui::columns::{Align, lined_up};
use crate::ui::number::grouped;
use crate::ui::visible::visible;

/// So many breaks of one conversation are listed.
const BREAKS: usize = 12;

/// The report as text.
pub fn text(rows: &Rows, settings: &Settings, every: bool) -> String {
    let conversations = rows.presets.first().map_or(0, |preset| preset.rows.len());
    let first = rows.presets.first().map(|preset| &preset.sum.report);
    let calls = first.map_or(0, |report| report.calls);
    let needs = first.map_or(0, |report| report.recall.needed);
    let mut text = format!(
        "{conversations} {}, {} calls, {} names needed later, window {}\n\n",
        if conversations == 1 {
            "conversation"
        } else {
            "conversations"
        },
        grouped(calls),
        grouped(needs),
        grouped(settings.window),
    );
    text.push_str(&lines(rows, every));
    for preset in &rows.presets {
        for told in preset.sum.report.fault_texts.iter().take(3) {
            let _ = writeln!(text, "{}: {}", preset.name, visible(told));
        }
    }
    if conversations == 1 && rows.presets.len() == 1 {
        text.push_str(&breaks(rows));
    }
    text
}

fn lines(rows: &Rows, every: bool) -> String {
    let head = [
        "preset",
        "in window",
        "by ref",
        "lost",
        "tokens",
        "billed",
        "cold",
        "extends",
        "breaks",
        "over",
        "faults",
    ];
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
    let mut align = [Align::Right; 11];
    if let Some(first) = align.first_mut() {
        *first = Align::Left;
    }
    let mut text = lined_up(&lined, align);
    let _ = write!(text, "\n{}\n\n", super::columns());
    text
}

fn line(name: &str, row: &Row) -> [String; 11] {
    let percent = |of: u64| {
        let share = row.share(of);
        share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", share * 100.0))
    };
    let recall = &row.report.recall;
    [
        name.to_owned(),
        percent(recall.shown),
        percent(recall.behind),
        percent(recall.lost),
        format!("{:.3}", row.tokens_ratio()),
        format!("{:.3}", row.billed_ratio()),
        format!("{:.3}", row.cold_ratio()),
        format!("{:.1} %", row.extended_share() * 100.0),
        grouped(row.report.breaks.len() as u64),
        grouped(row.report.over),
        grouped(row.report.faults),
    ]
}

/// Where the windows of the only conversation do not extend the one before.
fn breaks(rows: &Rows) -> String {
    let Some(row) = rows.presets.first().and_then(|preset| preset.rows.first()) else {
        return String::new();
    };
    let breaks = &row.report.breaks;
    let mut text = String::new();
    for found in breaks.iter().take(BREAKS) {
        let _ = writeln!(
            text,
            "call {}: differs from message {} on, {} tokens written again, {}",
            found.call,
            found.message,
            grouped(found.tokens),
            found.cost,
        );
        if !found.why.is_empty() {
            let _ = writeln!(text, "  {}", visible(&found.why));
        }
    }
    if breaks.len() > BREAKS {
        let _ = writeln!(text, "and {} more", breaks.len() - BREAKS);
    }
    text
}
