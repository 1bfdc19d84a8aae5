//! What was found, by preset and conversation.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;
use trimtab::replay::{ReplayReport, ReplaySettings};

use super::contenders::{Contender, ORACLE};
use super::jobs::FinishedJob;
use super::recorded_sessions::RecordedSession;

/// What a preset made of a conversation, or of all of them.
pub struct ReplayRow {
    /// The conversation; none for the sum.
    pub id: Option<String>,
    /// What was found.
    pub report: ReplayReport,
    /// Tokens of the window at each call; empty for the sum.
    pub sizes: Vec<u64>,
    /// The same, with everything sent as it came.
    pub all: ReplayReport,
}

/// One preset, or what it is compared with.
pub struct PresetRows {
    /// Its name.
    pub name: String,
    /// True for a point of the curve.
    pub on_curve: bool,
    /// Each conversation.
    pub rows: Vec<ReplayRow>,
    /// All of them together that every preset could send.
    pub sum: ReplayRow,
}

/// All presets.
pub struct ReplayRows {
    /// In the order in which they were asked for.
    pub presets: Vec<PresetRows>,
    /// Tokens at each call with everything sent as it came, by conversation.
    pub all_sizes: Vec<Vec<u64>>,
    /// The conversations that are left out of the sums: some preset had no window for a call of
    /// theirs, and a call that is not sent costs nothing.
    pub left_out: Vec<String>,
}

/// Puts together what the jobs gave, in the order of [`jobs`](super::jobs::jobs).
pub fn rows(
    conversations: &[RecordedSession],
    contenders: &[Contender],
    done: Vec<FinishedJob>,
) -> ReplayRows {
    let mut done = done.into_iter();
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

/// Leaves conversations that some preset could not send out of all sums, and names them. Where
/// none would be left, the sums stay as they are.
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

    /// The bill with what it costs to get back what the windows lacked, as a multiple of sending
    /// everything.
    pub fn effective_ratio(&self) -> f64 {
        let effective = self.report.effective().dollars();
        ratio(effective, self.all.billed.dollars())
    }

    /// Calls of a model for summaries, for each 100 calls of the conversation.
    pub fn own_calls_per_100(&self) -> f64 {
        100.0 * ratio(self.report.own_calls as f64, self.report.calls as f64)
    }

    /// The share of calls that found in their window what they took from outputs; none if no call
    /// took anything.
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

/// How far a preset is from the oracle.
pub struct OracleDistance<'a> {
    /// The preset.
    pub name: &'a str,
    /// The share of calls that the oracle leaves ready beyond it.
    pub ready: f64,
    /// What it costs beyond the oracle, as a share of sending everything.
    pub effective: f64,
}

impl ReplayRows {
    /// How far every preset is from the oracle, where that was asked for.
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
