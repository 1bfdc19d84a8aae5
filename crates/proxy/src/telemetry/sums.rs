//! Tokens by model, as sums since the start, with the names of the conventions for generative AI.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trimtab_model::Usage;

use super::spans::{nanoseconds, provider, text};
use crate::records::record::Record;

/// The maximum number of models; further ones are added up without a name.
const MODELS: usize = 64;

/// A figure of a usage, with its name.
type UsageFigure = (&'static str, fn(&Usage) -> u64);

/// Sums since the start.
pub(super) struct UsageSums {
    started: String,
    by_model: BTreeMap<(String, &'static str), Usage>,
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
        for usage in [record.usage, record.hidden].into_iter().flatten() {
            let sum = self.by_model.entry(key.clone()).or_default();
            *sum = *sum + usage;
        }
    }

    /// The metrics as they stand now.
    pub(super) fn metrics(&self) -> Vec<Value> {
        let figures: [UsageFigure; 4] = [
            ("input_tokens", Usage::prompt),
            ("output_tokens", |usage| usage.output),
            ("cache_read.input_tokens", |usage| usage.cache_read),
            ("cache_write.input_tokens", |usage| usage.cache_creation),
        ];
        let now = nanoseconds(trimtab_store::now_millis(), 0.0);
        let metric = |(name, figure): &UsageFigure| {
            let points: Vec<Value> = self
                .by_model
                .iter()
                .map(|((model, provider), usage)| {
                    json!({
                        "attributes": [
                            text("gen_ai.operation.name", "chat"),
                            text("gen_ai.provider.name", provider),
                            text("gen_ai.request.model", model),
                        ],
                        "startTimeUnixNano": self.started,
                        "timeUnixNano": now,
                        "asInt": figure(usage).to_string(),
                    })
                })
                .collect();
            json!({
                "name": format!("gen_ai.client.inference.usage.{name}"),
                "unit": "{token}",
                "sum": {"aggregationTemporality": 2, "isMonotonic": true, "dataPoints": points},
            })
        };
        figures.iter().map(metric).collect()
    }
}
