//! Knowledge about models: window, output limit, prices, cache and rules.
//!
//! The catalogue consists of a snapshot of a public registry (`data/models.tsv`), the models that it
//! lacks (`data/own_models.tsv`), and a small overlay with facts that no registry has
//! (`data/overlay.toml`).
//!
//! ```
//! use trimtab_wire::catalogue::Catalogue;
//!
//! let catalogue = Catalogue::embedded();
//! let found = catalogue.find("anthropic/claude-opus-4-5-20251101").unwrap();
//! assert_eq!(found.model.window, 200_000);
//!
//! // A model that is not known is an error.
//! let error = catalogue.find("house-model").unwrap_err();
//! assert!(error.to_string().contains("unknown model `house-model`"));
//! ```

mod assumed;
mod lookup;
mod model;
mod names;
mod overlay;
mod price;
mod registry;
mod snapshot;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use lookup::ModelMatch;
pub use model::{CacheKind, CacheRules, ModelInfo, ModelRules};
pub use price::{Money, Price, PriceTier, Prices};
pub use registry::RegistryError;

use overlay::Overlay;
use snapshot::{Snapshot, SnapshotEntry, id_of};

/// All knowledge about models.
///
/// Creating one is cheap: the registry is searched without parsing, and a model is parsed on
/// request.
#[derive(Clone, Debug)]
pub struct Catalogue {
    snapshot: Snapshot,
}

/// A model, and how its name matched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundModel {
    /// The model.
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
        }
    }

    /// Reads a registry in `LiteLLM`'s format: an object of models by name.
    ///
    /// Models that are not for chat or have no window are skipped and listed in the result.
    pub fn from_registry(json: &str) -> Result<RegistryImport, RegistryError> {
        registry::read(json)
    }

    /// Reads a snapshot made by [`Catalogue::snapshot`].
    pub fn from_snapshot(text: String) -> Result<Self, SnapshotError> {
        let snapshot = Snapshot::parse(text).map_err(|line| SnapshotError { line })?;
        Ok(Self { snapshot })
    }

    /// This registry with the models of a newer one, whose entries take precedence.
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
        }
    }

    /// The registry as text.
    pub fn snapshot(&self) -> &str {
        self.snapshot.as_str()
    }

    /// Finds the model for a name: by id, without its date, with or without its provider, by an
    /// alias, or by its family. An unknown version is assumed to be like the newest known one.
    pub fn find(&self, name: &str) -> Result<FoundModel, UnknownModel> {
        let overlay = Overlay::embedded();
        let found = lookup::find(&self.snapshot, overlay, name);
        let (entry, matched) = found.ok_or_else(|| UnknownModel {
            name: name.to_owned(),
            closest: lookup::closest(&self.snapshot, name),
        })?;
        Ok(FoundModel {
            model: overlay.model(&entry),
            matched,
        })
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
}
