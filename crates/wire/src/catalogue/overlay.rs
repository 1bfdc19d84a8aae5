//! Facts that no registry has: aliases, cache lifetimes, rules and vocabularies, by model family.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use serde::Deserialize;

use super::model::{CacheKind, CacheRules, ModelInfo, ModelRules};
use super::names::{bare, is_family};
use super::price::{Price, PriceTier, Prices};
use super::snapshot::{RawPrices, SnapshotEntry};

/// Our own table, in `data/overlay.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Overlay {
    /// Aliases of models.
    aliases: BTreeMap<String, String>,
    /// Facts by family.
    family: Vec<FamilyFacts>,
}

/// Facts about a model family, or about everything that a provider serves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyFacts {
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    providers: Vec<String>,
    window: Option<u64>,
    vocabulary: Option<String>,
    cache: Option<CacheKind>,
    minimum: Option<u64>,
    lifetime: Option<u64>,
    long_lifetime: Option<u64>,
    markers: Option<u32>,
    /// Cache prices in thousandths of the input price.
    read: Option<u64>,
    write: Option<u64>,
    write_long: Option<u64>,
    bound_reasoning: Option<bool>,
    no_chat_tools: Option<bool>,
    returns_reasoning: Option<bool>,
    answer_may_overrun: Option<bool>,
    silent_overflow: Option<bool>,
}

impl Overlay {
    /// The embedded overlay, parsed on first use.
    pub(super) fn embedded() -> &'static Self {
        static OVERLAY: LazyLock<Overlay> = LazyLock::new(|| {
            // A test parses it. If it were ever broken, the registry alone would still work.
            toml::from_str(include_str!("../../data/overlay.toml")).unwrap_or_default()
        });
        &OVERLAY
    }

    /// The name that an alias stands for.
    pub(super) fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str)
    }

    /// The model of an entry, with the facts of its families.
    pub(super) fn model(&self, entry: &SnapshotEntry<'_>) -> ModelInfo {
        let facts = self.facts(entry);
        let prices = prices(entry.prices, None, &facts);
        ModelInfo {
            id: entry.id.to_owned(),
            provider: entry.provider.to_owned(),
            window: window(entry, &facts),
            max_input: entry.max_input,
            max_output: entry.max_output,
            tiers: tiers(entry, prices, &facts),
            prices,
            cache: cache(entry, &facts),
            rules: rules(&facts),
            reasons: entry.reasons,
            retires: entry.retires.map(str::to_owned),
            vocabulary: facts.vocabulary,
        }
    }

    /// All facts about an entry: longer names override shorter ones, and providers override models.
    fn facts(&self, entry: &SnapshotEntry<'_>) -> FamilyFacts {
        let name = bare(entry.id);
        let longest = |facts: &&FamilyFacts| {
            let names = facts.names.iter().filter(|family| is_family(family, &name));
            names.map(String::len).max()
        };
        let mut families: Vec<(usize, &FamilyFacts)> = self
            .family
            .iter()
            .filter_map(|facts| longest(&facts).map(|length| (length, facts)))
            .collect();
        // The longest name comes last and overrides the others, because it describes the narrowest
        // family.
        families.sort_by_key(|(length, _)| *length);
        let providers = self
            .family
            .iter()
            .filter(|facts| facts.serves(entry.provider));
        let ordered = families
            .into_iter()
            .map(|(_, facts)| facts)
            .chain(providers);
        ordered.fold(FamilyFacts::default(), FamilyFacts::then)
    }
}

impl FamilyFacts {
    fn serves(&self, provider: &str) -> bool {
        self.providers.iter().any(|name| name == provider)
    }

    /// These facts, overridden by `more`.
    fn then(self, more: &Self) -> Self {
        Self {
            names: Vec::new(),
            providers: Vec::new(),
            window: more.window.or(self.window),
            vocabulary: more.vocabulary.clone().or(self.vocabulary),
            cache: more.cache.or(self.cache),
            minimum: more.minimum.or(self.minimum),
            lifetime: more.lifetime.or(self.lifetime),
            long_lifetime: more.long_lifetime.or(self.long_lifetime),
            markers: more.markers.or(self.markers),
            read: more.read.or(self.read),
            write: more.write.or(self.write),
            write_long: more.write_long.or(self.write_long),
            bound_reasoning: more.bound_reasoning.or(self.bound_reasoning),
            no_chat_tools: more.no_chat_tools.or(self.no_chat_tools),
            returns_reasoning: more.returns_reasoning.or(self.returns_reasoning),
            answer_may_overrun: more.answer_may_overrun.or(self.answer_may_overrun),
            silent_overflow: more.silent_overflow.or(self.silent_overflow),
        }
    }
}

/// The window of a model. Registries list the prompt limit, which for most models is the whole
/// window. If the answer has separate room, the overlay names the window; a provider with smaller
/// limits keeps them.
fn window(entry: &SnapshotEntry<'_>, facts: &FamilyFacts) -> u64 {
    let sum = entry
        .max_input
        .saturating_add(entry.max_output.unwrap_or(0));
    facts
        .window
        // The figure of the overlay holds only for entries with these limits. A reseller may offer
        // less.
        .filter(|window| *window == sum)
        .unwrap_or(entry.max_input)
}

/// The prices of the model, or of a tier that omits values equal to `base`.
fn prices(raw: RawPrices, base: Option<Prices>, facts: &FamilyFacts) -> Option<Prices> {
    let input = raw.input.or(base.map(|base| base.input))?;
    let output = raw.output.or(base.map(|base| base.output))?;
    // Providers define cache prices as multiples of the input price, so a factor also fits
    // resellers with other prices.
    let by_factor = |factor: Option<u64>| factor.map(|factor| input.scaled(factor));
    // Registries also put the price of storage here, or 0 if writing is not billed separately: a
    // price below that of input cannot be the price of a written token.
    let at_least_input = |price: &Price| *price >= input;
    let write = raw
        .write
        .filter(at_least_input)
        .or(by_factor(facts.write))
        .unwrap_or(input);
    let long = raw
        .write_long
        .filter(at_least_input)
        .or(by_factor(facts.write_long));
    Some(Prices {
        input,
        output,
        // Without a known discount, cached tokens are assumed to cost as much as others: savings
        // are not overstated.
        cache_read: raw.read.or(by_factor(facts.read)).unwrap_or(input),
        cache_write: write,
        cache_write_long: long.unwrap_or(write),
    })
}

fn tiers(entry: &SnapshotEntry<'_>, base: Option<Prices>, facts: &FamilyFacts) -> Vec<PriceTier> {
    let tier = |(above, raw): &(u64, RawPrices)| {
        Some(PriceTier {
            above: *above,
            prices: prices(*raw, base, facts)?,
        })
    };
    entry.tiers.iter().filter_map(tier).collect()
}

fn cache(entry: &SnapshotEntry<'_>, facts: &FamilyFacts) -> CacheRules {
    // A price for cached tokens implies a cache, even if the registry has no flag for it.
    let caches = entry.caches || entry.prices.read.is_some();
    let kind = facts.cache.or(caches.then_some(CacheKind::Automatic));
    CacheRules {
        kind: kind.unwrap_or_default(),
        minimum: entry.minimum.or(facts.minimum),
        lifetime: facts.lifetime.map(Duration::from_secs),
        long_lifetime: facts.long_lifetime.map(Duration::from_secs),
        markers: facts.markers,
    }
}

fn rules(facts: &FamilyFacts) -> ModelRules {
    ModelRules {
        bound_reasoning: facts.bound_reasoning.unwrap_or_default(),
        no_chat_tools: facts.no_chat_tools.unwrap_or_default(),
        returns_reasoning: facts.returns_reasoning.unwrap_or_default(),
        answer_may_overrun: facts.answer_may_overrun.unwrap_or_default(),
        silent_overflow: facts.silent_overflow.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_overlay_parses() {
        let text = include_str!("../../data/overlay.toml");
        let overlay: Overlay = toml::from_str(text).unwrap();
        assert!(overlay.family.len() > 5 && !overlay.aliases.is_empty());
    }
}
