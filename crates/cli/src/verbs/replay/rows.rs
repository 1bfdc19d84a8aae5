//! The results, by preset and conversation.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use trimtab::replay::{ReplayReport, ReplaySettings};

use super::contenders::{Contender, ORACLE};
use super::jobs::FinishedJob;
use super::recorded_sessions::RecordedSession;

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

/// The results of one contender.
pub struct PresetRows {
    /// Its name.
    pub name: String,
    /// True for a point of the curve.
    pub on_curve: bool,
    /// Each conversation.
    pub rows: Vec<ReplayRow>,
    /// The sum over the conversations that every preset could send.
    pub sum: ReplayRow,
}

/// All presets.
pub struct ReplayRows {
    /// The contenders, in the order of the flags.
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
    contenders: &[Contender],
    done: Vec<FinishedJob>,
) -> ReplayRows {
    let mut done = done.into_iter();
    // The jobs without a contender come first.
    let all: Vec<FinishedJob> = done.by_ref().take(conversations.len()).collect();
    let mut found = Vec::new();
    for contender in contenders {
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
            name: contender.name.clone(),
            on_curve: contender.on_curve,
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
    let unsent = every.filter(|row| row.report.unsent > 0);
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
    pub fn tokens_ratio(&self) -> f64 {
        ratio(self.report.tokens as f64, self.all.tokens as f64)
    }

    /// The bill with a prompt cache, as a multiple of sending everything.
    pub fn billed_ratio(&self) -> f64 {
        ratio(self.report.billed.dollars(), self.all.billed.dollars())
    }

    /// The bill without a cache, as a multiple of sending everything.
    pub fn cold_ratio(&self) -> f64 {
        ratio(self.report.cold.dollars(), self.all.cold.dollars())
    }

    /// The share of windows that only add to the one before.
    pub fn extended_share(&self) -> f64 {
        let breaks = self.report.breaks.len() as f64;
        1.0 - ratio(breaks, breaks + self.report.extended as f64)
    }

    /// The bill, including the cost of fetching what the windows lacked, as a multiple of sending
    /// everything.
    pub fn effective_ratio(&self) -> f64 {
        let effective = self.report.effective().dollars();
        ratio(effective, self.all.billed.dollars())
    }

    /// Calls of a model for summaries, per 100 calls of the conversation.
    pub fn own_calls_per_100(&self) -> f64 {
        100.0 * ratio(self.report.own_calls as f64, self.report.calls as f64)
    }

    /// The share of calls whose windows contained everything that they took from outputs; none if
    /// no call took anything.
    pub fn ready_share(&self) -> Option<f64> {
        let needing = self.report.needing;
        (needing > 0).then(|| self.report.ready as f64 / needing as f64)
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
    ready_share: Option<f64>,
    effective_ratio: f64,
    tokens_ratio: f64,
    billed_ratio: f64,
    cold_ratio: f64,
    extended_share: f64,
    own_calls_per_100: f64,
}

/// The distance of a preset from the oracle.
pub struct OracleDistance<'a> {
    /// The preset.
    pub name: &'a str,
    /// The share of calls that are ready only with the oracle.
    pub ready: f64,
    /// The additional cost, as a share of sending everything.
    pub effective: f64,
}

impl ReplayRows {
    /// The distance of every preset from the oracle, if the oracle was replayed.
    pub fn distances(&self) -> Vec<OracleDistance<'_>> {
        let Some(oracle) = self.presets.iter().find(|preset| preset.name == ORACLE) else {
            return Vec::new();
        };
        let others = self.presets.iter().filter(|preset| preset.name != ORACLE);
        let ready = |preset: &PresetRows| preset.sum.ready_share().unwrap_or(1.0);
        let distances = others.map(|preset| OracleDistance {
            name: &preset.name,
            ready: ready(oracle) - ready(preset),
            effective: preset.sum.effective_ratio() - oracle.sum.effective_ratio(),
        });
        distances.collect()
    }

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
                    ready_share: row.ready_share(),
                    effective_ratio: row.effective_ratio(),
                    tokens_ratio: row.tokens_ratio(),
                    billed_ratio: row.billed_ratio(),
                    cold_ratio: row.cold_ratio(),
                    extended_share: row.extended_share(),
                    own_calls_per_100: row.own_calls_per_100(),
                };
                lines.push(serde_json::to_value(&line).unwrap_or_default());
            }
        }
        lines
    }
}
