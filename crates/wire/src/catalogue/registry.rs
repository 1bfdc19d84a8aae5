//! Reads a registry in `LiteLLM`'s format.

use serde_json::{Map, Value};
use thiserror::Error;

use super::price::Price;
use super::snapshot::{RawPrices, Snapshot, SnapshotEntry};
use super::{Catalogue, RegistryImport};

/// The prompt sizes above which registries list other prices, in their spelling.
const THRESHOLDS: [(u64, &str); 6] = [
    (100_000, "100k"),
    (128_000, "128k"),
    (200_000, "200k"),
    (256_000, "256k"),
    (272_000, "272k"),
    (512_000, "512k"),
];
/// The supported modes of models.
const MODES: [&str; 3] = ["chat", "responses", "completion"];
/// Larger limits are implausible.
const MOST_TOKENS: u64 = 1_000_000_000;
/// The registry's example entry.
const SAMPLE: &str = "sample_spec";

/// The reasons why a registry is rejected.
#[derive(Debug, Error)]
pub enum RegistryError {
    /// It is not JSON.
    #[error(
        "the registry is not JSON: {0}\nhint: expected an object of models by name, as in LiteLLM's model_prices_and_context_window.json"
    )]
    NotJson(#[from] serde_json::Error),
    /// It is JSON of another shape.
    #[error(
        "the registry is not an object of models by name\nhint: expected {{\"model-name\": {{\"max_input_tokens\": 200000, ...}}, ...}}"
    )]
    NotAnObject,
    /// A field has an impossible value.
    #[error("model `{model}`: field `{field}` is {value}, expected {expected}")]
    Field {
        /// The model's name in the registry.
        model: String,
        /// The field's name.
        field: String,
        /// The value.
        value: String,
        /// The expected value.
        expected: &'static str,
    },
    /// It has no usable entry.
    #[error(
        "the registry has no chat model with a window\nhint: a model needs `mode` chat, responses or completion and `max_input_tokens`"
    )]
    Empty,
}

/// Reads a registry and writes its usable models as lines of a snapshot.
pub(super) fn read(json: &str) -> Result<RegistryImport, RegistryError> {
    let Value::Object(models) = serde_json::from_str(json)? else {
        return Err(RegistryError::NotAnObject);
    };
    // Sort by bytes, because a snapshot is searched by bytes.
    let mut sorted: Vec<(&String, &Value)> = models.iter().collect();
    sorted.sort_unstable_by_key(|(id, _)| *id);
    let (mut lines, mut kept, mut skipped) = (String::new(), 0, Vec::new());
    for (id, fields) in sorted {
        match RegistryFields::new(id, fields)?.entry()? {
            Ok(entry) => {
                entry.write(&mut lines);
                kept += 1;
            }
            Err(reason) => skipped.push((id.clone(), reason)),
        }
    }
    if kept == 0 {
        return Err(RegistryError::Empty);
    }
    let snapshot = Snapshot::from_lines(lines);
    Ok(RegistryImport {
        catalogue: Catalogue { snapshot },
        kept,
        skipped,
    })
}

/// The fields of one model.
struct RegistryFields<'a> {
    model: &'a str,
    fields: &'a Map<String, Value>,
}

impl<'a> RegistryFields<'a> {
    fn new(model: &'a str, value: &'a Value) -> Result<Self, RegistryError> {
        let bad = |field: &str, value: String, expected| RegistryError::Field {
            model: model.to_owned(),
            field: field.to_owned(),
            value,
            expected,
        };
        // Such a name would break the lines of a snapshot: fields are separated by tabs, and `#`
        // starts a comment.
        if model.is_empty() || model.starts_with('#') || model.contains(['\t', '\n', '\r']) {
            return Err(bad(
                "(name)",
                format!("{model:?}"),
                "a name without tabs and line ends",
            ));
        }
        let fields = value.as_object();
        let fields = fields.ok_or_else(|| bad("(all)", brief(value), "an object of fields"))?;
        Ok(Self { model, fields })
    }

    /// The entry, or the reason to skip it.
    fn entry(&self) -> Result<Result<SnapshotEntry<'a>, &'static str>, RegistryError> {
        if self.model == SAMPLE {
            return Ok(Err("the registry's own example"));
        }
        if let Some(mode) = self.text("mode")?
            && !MODES.contains(&mode)
        {
            return Ok(Err("not a chat model"));
        }
        let max_input = self.tokens("max_input_tokens")?;
        let Some(max_input) = max_input.filter(|tokens| *tokens > 0) else {
            return Ok(Err("no `max_input_tokens`"));
        };
        let max_output = self.tokens("max_output_tokens")?;
        // Older entries have only `max_tokens`, which means the answer.
        let max_output = max_output
            .or(self.tokens("max_tokens")?)
            .filter(|tokens| *tokens > 0);
        Ok(Ok(SnapshotEntry {
            id: self.model,
            provider: self.text("litellm_provider")?.unwrap_or_default(),
            max_input,
            max_output,
            prices: self.prices("")?,
            minimum: self.tokens("prompt_cache_min_tokens")?,
            reasons: self.flag("supports_reasoning")?,
            caches: self.flag("supports_prompt_caching")?,
            retires: self.text("deprecation_date")?,
            tiers: self.tiers()?,
        }))
    }

    fn tiers(&self) -> Result<Vec<(u64, RawPrices)>, RegistryError> {
        let mut tiers = Vec::new();
        for (above, name) in THRESHOLDS {
            let prices = self.prices(&format!("_above_{name}_tokens"))?;
            if !prices.is_empty() {
                tiers.push((above, prices));
            }
        }
        Ok(tiers)
    }

    /// The five prices whose field names end in `suffix`.
    fn prices(&self, suffix: &str) -> Result<RawPrices, RegistryError> {
        let price = |name: &str| self.price(&format!("{name}{suffix}"));
        Ok(RawPrices {
            input: price("input_cost_per_token")?,
            output: price("output_cost_per_token")?,
            read: price("cache_read_input_token_cost")?,
            write: price("cache_creation_input_token_cost")?,
            write_long: price("cache_creation_input_token_cost_above_1hr")?,
        })
    }

    fn price(&self, field: &str) -> Result<Option<Price>, RegistryError> {
        let read = |value: &Value| Price::from_dollars_per_token(value.as_f64()?);
        self.field(field, read, "a price in dollars per token, from 0 to 0.1")
    }

    /// A number of tokens; registries also write integers as `4096.0`.
    fn tokens(&self, field: &str) -> Result<Option<u64>, RegistryError> {
        let read = |value: &Value| {
            let whole = value.as_f64().filter(|number| number.fract() == 0.0)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "the range was checked"
            )]
            (0.0..=MOST_TOKENS as f64)
                .contains(&whole)
                .then_some(whole as u64)
        };
        self.field(field, read, "a whole number of tokens")
    }

    fn flag(&self, field: &str) -> Result<bool, RegistryError> {
        Ok(self
            .field(field, Value::as_bool, "true or false")?
            .unwrap_or_default())
    }

    fn text(&self, field: &str) -> Result<Option<&'a str>, RegistryError> {
        let clean = |value: &'a Value| {
            value
                .as_str()
                .filter(|text| !text.contains(['\t', '\n', '\r']))
        };
        self.field(field, clean, "a text of one line")
    }

    fn field<T>(
        &self,
        field: &str,
        read: impl Fn(&'a Value) -> Option<T>,
        expected: &'static str,
    ) -> Result<Option<T>, RegistryError> {
        match self.fields.get(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => read(value).map(Some).ok_or_else(|| RegistryError::Field {
                model: self.model.to_owned(),
                field: field.to_owned(),
                value: brief(value),
                expected,
            }),
        }
    }
}

/// The value as JSON, shortened for a message.
fn brief(value: &Value) -> String {
    const LONGEST: usize = 60;
    let text = value.to_string();
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
    }
}
