//! Tokens and durations by model, since the start, with the names of the conventions for
//! generative AI.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trimtab_model::Usage;

use super::spans::{OPERATION, nanoseconds, provider, text};
use crate::records::record::Record;

/// The maximum number of models; further ones are added up without a name.
const MODELS: usize = 64;
/// Sums since the start.
const CUMULATIVE: u8 = 2;
/// Upper bounds of the buckets of durations, in seconds, as the conventions advise.
const BOUNDS: [f64; 14] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
];

/// A figure of a usage, with its name.
type UsageFigure = (&'static str, fn(&Usage) -> u64);

/// Sums since the start.
pub(super) struct UsageSums {
    started: String,
    by_model: BTreeMap<(String, &'static str), ModelSums>,
}

/// The sums of one model.
#[derive(Default)]
struct ModelSums {
    usage: Usage,
    calls: u64,
    seconds: f64,
    /// Calls by duration; the last are those above all bounds.
    buckets: [u64; BOUNDS.len() + 1],
}

impl ModelSums {
    fn add(&mut self, record: &Record) {
        for usage in [record.usage, record.hidden].into_iter().flatten() {
            self.usage = self.usage + usage;
        }
        let seconds = record.total_ms / 1e3;
        self.calls += 1;
        self.seconds += seconds;
        let bucket = BOUNDS.partition_point(|bound| *bound < seconds);
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count += 1;
        }
    }
}

impl UsageSums {
    pub(super) fn new() -> Self {
        Self {
            started: nanoseconds(trimtab_store::now_millis(), 0.0),
            by_model: BTreeMap::new(),
        }
    }

    pub(super) fn add(&mut self, record: &Record) {
        let mut key = (record.model.clone(), provider(record.dialect));
        // Names of models come from clients, and each one is a time series at the collector.
        if self.by_model.len() >= MODELS && !self.by_model.contains_key(&key) {
            key.0.clear();
        }
        self.by_model.entry(key).or_default().add(record);
    }

    /// The metrics as they stand now.
    pub(super) fn metrics(&self) -> Vec<Value> {
        let figures: [UsageFigure; 4] = [
            ("input_tokens", Usage::prompt),
            ("output_tokens", |usage| usage.output),
            ("cache_read.input_tokens", |usage| usage.cache_read),
            ("cache_write.input_tokens", |usage| usage.cache_creation),
        ];
        let tokens = figures.iter().map(|(name, figure)| {
            let points = self.points(
                // Nobody says how many of the tokens are text.
                &[text("gen_ai.token.modality", "unknown")],
                |sums| json!({"asInt": figure(&sums.usage).to_string()}),
            );
            json!({
                "name": format!("gen_ai.client.inference.usage.{name}"),
                "unit": "{token}",
                "sum": {"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points},
            })
        });
        tokens.chain([self.durations()]).collect()
    }

    fn durations(&self) -> Value {
        let points = self.points(&[], |sums| {
            let counts = sums.buckets.iter().map(u64::to_string);
            json!({
                "count": sums.calls.to_string(),
                "sum": sums.seconds,
                "bucketCounts": counts.collect::<Vec<String>>(),
                "explicitBounds": BOUNDS,
            })
        });
        json!({
            "name": "gen_ai.client.inference.duration",
            "unit": "s",
            "histogram": {"aggregationTemporality": CUMULATIVE, "dataPoints": points},
        })
    }

    /// A point for each model, with these attributes beside the usual ones.
    fn points(&self, attributes: &[Value], value: impl Fn(&ModelSums) -> Value) -> Vec<Value> {
        let now = nanoseconds(trimtab_store::now_millis(), 0.0);
        let point = |((model, provider), sums): (&(String, &'static str), &ModelSums)| {
            let mut all = vec![
                text("gen_ai.operation.name", OPERATION),
                text("gen_ai.provider.name", provider),
                text("gen_ai.request.model", model),
            ];
            all.extend_from_slice(attributes);
            let mut point = value(sums);
            if let Some(fields) = point.as_object_mut() {
                fields.insert("attributes".to_owned(), all.into());
                fields.insert("startTimeUnixNano".to_owned(), self.started.clone().into());
                fields.insert("timeUnixNano".to_owned(), now.clone().into());
            }
            point
        };
        self.by_model.iter().map(point).collect()
    }
}
