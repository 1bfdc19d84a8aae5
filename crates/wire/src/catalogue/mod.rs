//! Knowledge about models: window, output limit, prices, cache and rules.
//!
//! The catalogue consists of a snapshot of a public registry (`data/models.tsv`), a small overlay
//! with facts that no registry has (`data/overlay.toml`), and limits that the user set or errors
//! taught, which take precedence.
//!
//! ```
//! use trimtab_wire::catalogue::{Catalogue, ModelLimits, ModelMatch};
//!
//! let mut catalogue = Catalogue::embedded();
//! let found = catalogue.find("anthropic/claude-opus-4-5-20251101").unwrap();
//! assert_eq!(found.model.window, 200_000);
//!
//! // A model that is not known is an error, until its window is set.
//! let error = catalogue.find("house-model").unwrap_err();
//! assert!(error.to_string().contains("unknown model `house-model`"));
//! catalogue.set("house-model", ModelLimits::window(32_000));
//! assert_eq!(catalogue.find("house-model").unwrap().matched, ModelMatch::Limits);
//! ```

mod limits;
mod lookup;
mod model;
mod names;
mod overlay;
mod price;
mod registry;
mod snapshot;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use thiserror::Error;

pub use limits::ModelLimits;
pub use lookup::ModelMatch;
pub use model::{CacheKind, CacheRules, ModelInfo, ModelRules, ReasoningBinding};
pub use price::{Money, Price, PriceTier, Prices};
pub use registry::RegistryError;

use overlay::Overlay;
use snapshot::{Snapshot, SnapshotEntry, id_of};

/// All knowledge about models.
///
/// Creating one is free: the registry is searched without parsing, and a model is parsed on
/// request.
#[derive(Clone, Debug)]
pub struct Catalogue {
    snapshot: Snapshot,
    limits: limits::KnownLimits,
}

/// A model, and how its name matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundModel {
    /// The model, with limits that override the registry's.
    pub model: ModelInfo,
    /// How the name matched.
    pub matched: ModelMatch,
}

/// A name that matches no model.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown model `{name}`{}\nhint: set its window in tokens, or read a newer registry with `trimtab models update FILE`", likely(.closest))]
pub struct UnknownModel {
    /// The requested name.
    pub name: String,
    /// The most similar known names, at most three.
    pub closest: Vec<String>,
}

fn likely(closest: &[String]) -> String {
    if closest.is_empty() {
        String::new()
    } else {
        format!("; closest: {}", closest.join(", "))
    }
}

/// An imported registry, and the skipped entries.
#[derive(Clone, Debug)]
pub struct RegistryImport {
    /// The catalogue.
    pub catalogue: Catalogue,
    /// The number of models.
    pub kept: usize,
    /// The skipped names, with the reason.
    pub skipped: Vec<(String, &'static str)>,
}

/// An invalid snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "line {line} of the model snapshot cannot be read\nhint: make it anew with `trimtab models update FILE`"
)]
pub struct SnapshotError {
    /// The first line that is invalid or out of order, counted from 1.
    pub line: usize,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::embedded()
    }
}

impl Catalogue {
    /// The embedded catalogue.
    pub fn embedded() -> Self {
        Self {
            snapshot: Snapshot::embedded(),
            limits: limits::KnownLimits::default(),
        }
    }

    /// Reads a registry in `LiteLLM`'s format: an object of models by name.
    ///
    /// Models that are not for chat or have no window are skipped and listed in the result.
    pub fn from_registry(json: &str) -> Result<RegistryImport, RegistryError> {
        let registry = registry::read(json)?;
        let catalogue = Self {
            snapshot: Snapshot::from_lines(registry.lines),
            limits: limits::KnownLimits::default(),
        };
        Ok(RegistryImport {
            catalogue,
            kept: registry.kept,
            skipped: registry.skipped,
        })
    }

    /// Reads a snapshot made by [`Catalogue::snapshot`].
    pub fn from_snapshot(text: String) -> Result<Self, SnapshotError> {
        let snapshot = Snapshot::parse(text).map_err(|line| SnapshotError { line })?;
        Ok(Self {
            snapshot,
            limits: limits::KnownLimits::default(),
        })
    }

    /// This registry with the models of a newer one, whose entries take precedence. Limits that
    /// were set or learned are not copied.
    ///
    /// ```
    /// # use trimtab_wire::catalogue::Catalogue;
    /// let own = r#"{"my-model": {"mode": "chat", "max_input_tokens": 4096}}"#;
    /// let own = Catalogue::from_registry(own)?.catalogue;
    /// let both = Catalogue::embedded().merged(&own);
    /// assert!(both.find("my-model").is_ok() && both.find("gpt-4o").is_ok());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn merged(&self, newer: &Self) -> Self {
        Self {
            snapshot: self.snapshot.merged(&newer.snapshot),
            limits: limits::KnownLimits::default(),
        }
    }

    /// The registry as text, without limits that were set or learned.
    pub fn snapshot(&self) -> &str {
        self.snapshot.as_str()
    }

    /// Finds the model for a name: by id, without its date, with or without its provider, by an
    /// alias, or by its family.
    pub fn find(&self, name: &str) -> Result<FoundModel, UnknownModel> {
        let overlay = Overlay::embedded();
        let found =
            lookup::find(&self.snapshot, overlay, name).map(|(entry, matched)| FoundModel {
                model: overlay.model(&entry),
                matched,
            });
        // Limits are stored under the requested name, so that one alias can have others than its
        // model.
        match (found, self.limits.get(name)) {
            (Some(found), Some(limits)) => Ok(FoundModel {
                model: limits::apply(found.model, limits),
                ..found
            }),
            (Some(found), None) => Ok(found),
            // A model that no registry knows is usable as soon as its window is set or learned.
            (None, limits) => limits
                .and_then(|limits| limits::from_limits(name, limits))
                .map(|model| FoundModel {
                    model,
                    matched: ModelMatch::Limits,
                })
                .ok_or_else(|| self.unknown(name)),
        }
    }

    /// Sets limits for requests with this name.
    pub fn set(&mut self, name: &str, limits: ModelLimits) {
        self.limits.set(name, limits);
    }

    /// Remembers limits that an error named, for requests with this name.
    pub fn learn(&mut self, name: &str, limits: ModelLimits) {
        self.limits.learn(name, limits);
    }

    /// All learned limits, by name.
    pub fn learned(&self) -> &BTreeMap<String, ModelLimits> {
        self.limits.learned()
    }

    /// The models of the registry whose id or provider contains `filter` (all if it is empty), by
    /// id.
    pub fn list(&self, filter: &str) -> impl Iterator<Item = ModelInfo> {
        let filter = filter.to_ascii_lowercase();
        let wanted = move |entry: &SnapshotEntry<'_>| {
            entry.id.to_ascii_lowercase().contains(&filter) || entry.provider.contains(&filter)
        };
        let entries = self
            .snapshot
            .lines()
            .filter_map(SnapshotEntry::parse)
            .filter(wanted);
        entries.map(|entry| Overlay::embedded().model(&entry))
    }

    /// The ids of all models of the registry, in order.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.snapshot.lines().map(id_of)
    }

    fn unknown(&self, name: &str) -> UnknownModel {
        UnknownModel {
            name: name.to_owned(),
            closest: lookup::closest(&self.snapshot, name),
        }
    }
}
