//! The results, by preset and conversation.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use trimtab::engine::policy::Policy;
use trimtab::replay::{ReplayReport, ReplaySettings};

use super::jobs::FinishedJob;
use super::recorded_sessions::RecordedSession;
use crate::proxy::savings::dollars;
use crate::ui::number::grouped;

/// The columns of the tables, behind the name.
pub const COLUMNS: [&str; 8] = [
    "tokens", "billed", "saved", "largest", "hidden", "cut", "over", "refused",
];

/// The result of a preset for one conversation, or for all of them.
pub struct ReplayRow {
    /// The conversation; none for the sum.
    pub id: Option<String>,
    /// The measured figures.
    pub report: ReplayReport,
    /// Tokens of the window at each call; empty for the sum.
    pub sizes: Vec<u64>,
    /// The same figures with everything sent.
    pub all: ReplayReport,
}

/// The results of one preset.
pub struct PresetRows {
    /// Its name.
    pub name: String,
    /// Each conversation.
    pub rows: Vec<ReplayRow>,
    /// The sum over the conversations that every preset could send.
    pub sum: ReplayRow,
}

/// All presets.
pub struct ReplayRows {
    /// The presets, in the order of the flags.
    pub presets: Vec<PresetRows>,
    /// Tokens at each call with everything sent, by conversation.
    pub all_sizes: Vec<Vec<u64>>,
    /// The conversations that are left out of the sums. Some preset had no window for one of their
    /// calls, and a call that is not sent would count as free.
    pub left_out: Vec<String>,
}

/// Combines the results of the jobs, which are in the order of [`jobs`](super::jobs::jobs).
pub fn rows(
    conversations: &[RecordedSession],
    policies: &[Policy],
    done: Vec<FinishedJob>,
) -> ReplayRows {
    let mut done = done.into_iter();
    // The jobs without a policy come first.
    let all: Vec<FinishedJob> = done.by_ref().take(conversations.len()).collect();
    let mut found = Vec::new();
    for policy in policies {
        let mine = done.by_ref().take(conversations.len());
        let rows: Vec<ReplayRow> = mine
            .zip(&all)
            .zip(conversations)
            .map(|((done, all), recorded)| ReplayRow {
                id: Some(recorded.id.clone()),
                report: done.report,
                sizes: done.sizes,
                all: all.report.clone(),
            })
            .collect();
        found.push(PresetRows {
            name: policy.preset.clone(),
            sum: sum(rows.iter()),
            rows,
        });
    }
    let left_out = leave_out_unsent(&mut found);
    ReplayRows {
        presets: found,
        left_out,
        all_sizes: all.into_iter().map(|done| done.sizes).collect(),
    }
}

/// Leaves conversations that some preset could not send out of all sums, and returns their names.
/// If none would be left, the sums stay as they are.
fn leave_out_unsent(presets: &mut [PresetRows]) -> Vec<String> {
    let every = presets.iter().flat_map(|preset| &preset.rows);
    let unsent = every.filter(|row| row.report.refused > 0);
    let unsent: BTreeSet<String> = unsent.filter_map(|row| row.id.clone()).collect();
    let is_sent = |row: &&ReplayRow| row.id.as_ref().is_none_or(|id| !unsent.contains(id));
    let mut rows = presets.iter().flat_map(|preset| &preset.rows);
    if unsent.is_empty() || !rows.any(|row| is_sent(&row)) {
        return Vec::new();
    }
    for preset in presets {
        preset.sum = sum(preset.rows.iter().filter(is_sent));
    }
    unsent.into_iter().collect()
}

fn sum<'a>(rows: impl Iterator<Item = &'a ReplayRow>) -> ReplayRow {
    let (mut report, mut all) = (ReplayReport::default(), ReplayReport::default());
    for row in rows {
        report.add(&row.report);
        all.add(&row.all);
    }
    ReplayRow {
        id: None,
        report,
        sizes: Vec::new(),
        all,
    }
}

impl ReplayRow {
    /// Tokens sent, as a multiple of sending everything.
    fn tokens_ratio(&self) -> f64 {
        ratio(self.report.tokens as f64, self.all.tokens as f64)
    }

    /// The bill with a prompt cache, as a multiple of sending everything.
    fn billed_ratio(&self) -> f64 {
        ratio(self.report.billed.dollars(), self.all.billed.dollars())
    }

    /// The dollars that are saved compared with sending everything.
    fn saved(&self) -> f64 {
        self.all.billed.dollars() - self.report.billed.dollars()
    }

    /// The figures of the columns, as text.
    pub fn cells(&self) -> [String; COLUMNS.len()] {
        let saved = self.saved();
        let sign = if saved < 0.0 { "-" } else { "" };
        [
            format!("{:.3}", self.tokens_ratio()),
            format!("{:.3}", self.billed_ratio()),
            format!("{sign}{}", dollars(saved.abs())),
            grouped(self.report.largest),
            grouped(self.report.hidden),
            grouped(self.report.cut),
            grouped(self.report.over),
            grouped(self.report.refused),
        ]
    }
}

fn ratio(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { of / whole } else { 0.0 }
}

#[derive(Serialize)]
struct RowLine<'a> {
    preset: &'a str,
    /// Null for the sum of all conversations.
    id: Option<&'a str>,
    window: u64,
    report: &'a ReplayReport,
    tokens_ratio: f64,
    billed_ratio: f64,
    saved: f64,
}

impl ReplayRows {
    /// A line of JSON for each conversation and preset, and for each sum.
    pub fn json(&self, settings: &ReplaySettings) -> Vec<Value> {
        let mut lines = Vec::new();
        for preset in &self.presets {
            for row in preset.rows.iter().chain([&preset.sum]) {
                let line = RowLine {
                    preset: &preset.name,
                    id: row.id.as_deref(),
                    window: settings.window,
                    report: &row.report,
                    tokens_ratio: row.tokens_ratio(),
                    billed_ratio: row.billed_ratio(),
                    saved: row.saved(),
                };
                lines.push(serde_json::to_value(&line).unwrap_or_default());
            }
        }
        lines
    }
}
