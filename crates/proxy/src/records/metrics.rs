//! Counters and histograms of all requests. `docs/metrics.md` documents every name.
//!
//! Labels hold words of our own only, so their number is bounded, and nothing of a request or an
//! answer can appear in them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::records::exposition::{Exposition, MetricKind};
use crate::records::record::{OUR_FAILURES, Record, RecordAction};

/// Upper bounds of the buckets of latencies, in seconds: our own work takes less than a
/// millisecond, and answers take minutes.
const BUCKETS: [f64; 16] = [
    0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 15.0,
    60.0, 300.0,
];

/// The counters, with their help. Their labels are in [`Metrics::add`].
const COUNTERS: [(&str, &str); 12] = [
    (
        "trimtab_requests_total",
        "Requests that ended, by what was done and by class of status.",
    ),
    (
        "trimtab_passed_total",
        "Requests that passed unchanged, by reason.",
    ),
    (
        "trimtab_fail_opens_total",
        "Requests that passed unchanged because something of ours failed, by cause.",
    ),
    (
        "trimtab_prompt_tokens_total",
        "Prompt tokens as they would have been sent without Trimtab (before), and as sent (after).",
    ),
    (
        "trimtab_usage_tokens_total",
        "Tokens that providers reported, by kind.",
    ),
    (
        "trimtab_switch_points_total",
        "Changes of what was sent before, by kind and by reason.",
    ),
    (
        "trimtab_recoveries_total",
        "Requests sent again, smaller, after an overflow.",
    ),
    (
        "trimtab_silent_overflows_total",
        "Answers to a prompt that the provider cut without saying so.",
    ),
    (
        "trimtab_retrievals_total",
        "Calls of the retrieval tools that were served.",
    ),
    (
        "trimtab_own_calls_total",
        "Calls of a model for summaries, by outcome.",
    ),
    (
        "trimtab_cache_breaks_total",
        "Calls whose prefix was not read from the provider's cache, by who caused it.",
    ),
    (
        "trimtab_cache_break_tokens_total",
        "Prompt tokens paid again because of cache breaks, by who caused it.",
    ),
];

/// Counters without labels.
const UNLABELLED: [&str; 3] = [
    "trimtab_recoveries_total",
    "trimtab_silent_overflows_total",
    "trimtab_retrievals_total",
];

const STAGES: &str = "trimtab_stage_seconds";

/// Counters and histograms of all requests.
#[derive(Default)]
pub(crate) struct Metrics(Mutex<MetricValues>);

#[derive(Default)]
struct MetricValues {
    /// By name and labels.
    counters: BTreeMap<(&'static str, Labels), u64>,
    /// By stage.
    stages: BTreeMap<&'static str, LatencyBuckets>,
}

type Labels = Vec<(&'static str, &'static str)>;

#[derive(Default)]
struct LatencyBuckets {
    counts: [u64; BUCKETS.len()],
    sum: f64,
    count: u64,
}

impl LatencyBuckets {
    fn observe(&mut self, seconds: f64) {
        self.sum += seconds;
        self.count += 1;
        // Buckets are cumulative in this format: a value counts in every bucket that it fits.
        for (bound, count) in BUCKETS.iter().zip(&mut self.counts) {
            *count += u64::from(seconds <= *bound);
        }
    }
}

impl MetricValues {
    fn count(&mut self, name: &'static str, labels: &[(&'static str, &'static str)], by: u64) {
        if by > 0 {
            *self.counters.entry((name, labels.to_vec())).or_insert(0) += by;
        }
    }

    fn observe(&mut self, stage: &'static str, milliseconds: f64) {
        let seconds = milliseconds / 1e3;
        self.stages.entry(stage).or_default().observe(seconds);
    }
}

impl Metrics {
    /// Counts a request that ended.
    pub(crate) fn add(&self, record: &Record) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if record.action == RecordAction::Asked {
            let outcome = if record.usage.is_some() || record.status < 300 && record.status > 0 {
                "answered"
            } else {
                "failed"
            };
            values.count("trimtab_own_calls_total", &[("outcome", outcome)], 1);
        } else {
            add_request(&mut values, record);
        }
        // Summaries count as well: their prompts are part of what was sent.
        let saved = record.saved;
        let prompt = "trimtab_prompt_tokens_total";
        values.count(prompt, &[("when", "before")], saved.without);
        values.count(prompt, &[("when", "after")], saved.with);
        for usage in [record.usage, record.hidden].into_iter().flatten() {
            for (kind, tokens) in [
                ("input", usage.input),
                ("cache_read", usage.cache_read),
                ("cache_write", usage.cache_creation),
                ("output", usage.output),
            ] {
                values.count("trimtab_usage_tokens_total", &[("kind", kind)], tokens);
            }
        }
    }

    /// Counts a cache break.
    pub(crate) fn add_cache_break(&self, by: &'static str, tokens: u64) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.count("trimtab_cache_breaks_total", &[("by", by)], 1);
        values.count("trimtab_cache_break_tokens_total", &[("by", by)], tokens);
    }

    /// Writes all metrics.
    pub(crate) fn write(&self, to: &mut Exposition) {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, help) in COUNTERS {
            to.family(name, MetricKind::Counter, help);
            let samples = values.counters.iter().filter(|((of, _), _)| *of == name);
            for ((_, labels), value) in samples {
                to.sample(name, labels, *value as f64);
            }
            // A counter without labels is exported as 0 from the start, or the first increase
            // would be invisible to `rate()`.
            let is_counted = values.counters.contains_key(&(name, Labels::new()));
            if UNLABELLED.contains(&name) && !is_counted {
                to.sample(name, &[], 0.0);
            }
        }
        let help = "Seconds since a request came: until it was planned, until the head of the \
                    answer, until its end.";
        to.family(STAGES, MetricKind::Histogram, help);
        for (stage, buckets) in &values.stages {
            write_buckets(to, stage, buckets);
        }
    }
}

fn add_request(values: &mut MetricValues, record: &Record) {
    let labels = [
        ("action", record.action.as_str()),
        ("status", status_class(record.status)),
    ];
    values.count("trimtab_requests_total", &labels, 1);
    if OUR_FAILURES.contains(&record.reason) {
        let cause = [("cause", record.reason)];
        values.count("trimtab_fail_opens_total", &cause, 1);
    }
    if record.action == RecordAction::Passed && !record.reason.is_empty() {
        values.count("trimtab_passed_total", &[("reason", record.reason)], 1);
    }
    for plan in &record.plans {
        let labels = [("kind", plan.kind_name()), ("reason", plan.reason)];
        values.count("trimtab_switch_points_total", &labels, 1);
    }
    values.count("trimtab_recoveries_total", &[], record.recoveries.into());
    values.count("trimtab_retrievals_total", &[], record.retrievals.into());
    let silent = u64::from(record.silent_overflow);
    values.count("trimtab_silent_overflows_total", &[], silent);
    // Only calls of models have stages. Our own pages are fast and frequent, and would distort the
    // histogram.
    if record.dialect.is_some() {
        values.observe("plan", record.plan_ms);
        values.observe("answer", record.answer_ms);
        values.observe("total", record.total_ms);
    }
}

fn status_class(status: u16) -> &'static str {
    match status {
        100..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500..600 => "5xx",
        _ => "none",
    }
}

fn write_buckets(to: &mut Exposition, stage: &str, buckets: &LatencyBuckets) {
    let name = format!("{STAGES}_bucket");
    for (bound, count) in BUCKETS.iter().zip(&buckets.counts) {
        let bound = bound.to_string();
        to.sample(&name, &[("stage", stage), ("le", &bound)], *count as f64);
    }
    let count = buckets.count as f64;
    to.sample(&name, &[("stage", stage), ("le", "+Inf")], count);
    to.sample(&format!("{STAGES}_sum"), &[("stage", stage)], buckets.sum);
    to.sample(&format!("{STAGES}_count"), &[("stage", stage)], count);
}
