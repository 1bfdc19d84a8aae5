//! What is known about the models that requests ask for: from the catalogue, the settings, and
//! what the proxy learned from errors and usage.

pub(crate) mod catalogue_lookups;
pub(crate) mod learned;
pub(crate) mod reasoning_rule;
pub(crate) mod silent_truncation;

use std::sync::{Mutex, PoisonError};

use trimtab_model::estimate::Calibration;
use trimtab_store::Store;
use trimtab_wire::catalogue::{Catalogue, ModelInfo, ModelMatch};

use crate::config::ModelRule;
use catalogue_lookups::CatalogueLookups;
use learned::{LearnedModel, LearnedModels, NAME, OwnedModelKey, TENANT_MODELS};
use reasoning_rule::ReasoningFault;

/// The catalogue with learned limits.
pub(crate) struct ModelTable(Mutex<ModelTableState>);

struct ModelTableState {
    catalogue: CatalogueLookups,
    learned: LearnedModels,
}

/// The limits of a model at an upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownModel {
    /// Tokens of prompt and answer together.
    pub(crate) window: Option<u64>,
    /// The entry of the catalogue.
    pub(crate) model: Option<ModelInfo>,
    /// Whether it rejects signed reasoning behind an edit, if known.
    pub(crate) bound_reasoning: Option<bool>,
    /// True if the upstream rejected the setting that drops such reasoning.
    pub(crate) no_block_binding: bool,
    /// True if the model is not known, and the entry is that of a similar one.
    pub(crate) is_assumed: bool,
}

/// Whose knowledge of a model is meant. What was learned belongs to the tenant that learned it, so
/// that nobody's requests change the windows of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModelKey<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) upstream: &'a str,
    pub(crate) model: &'a str,
}

impl ModelKey<'_> {
    pub(crate) fn owned(self) -> OwnedModelKey {
        [self.tenant, self.upstream, self.model].map(str::to_owned)
    }
}

/// The number of calibration updates between two writes to the store.
const WRITTEN_EVERY: u32 = 64;

impl ModelTable {
    /// A table with a catalogue and limits that were learned before.
    pub(crate) fn new(catalogue: Catalogue, learned: LearnedModels) -> Self {
        Self(Mutex::new(ModelTableState {
            catalogue: CatalogueLookups::new(catalogue),
            learned,
        }))
    }

    /// The limits of a model: from the settings, else from the catalogue, lowered by what was
    /// learned.
    pub(crate) fn model_limits(
        &self,
        model_key: ModelKey<'_>,
        rule: Option<&ModelRule>,
    ) -> KnownModel {
        let mut state = self.state();
        let found = state.catalogue.find(model_key.model);
        let learned = state.learned.get(&model_key.owned());
        let learned = learned.cloned().unwrap_or_default();
        let listed = found.as_ref().map(|found| found.model.call_limit());
        let known = [learned.window, learned.cut, learned.refused, listed];
        let set = rule.and_then(|rule| rule.window);
        KnownModel {
            // The smallest figure counts. A window that is too large costs a refused request; one
            // that is too small only shortens the window a little earlier.
            window: set.or(known.into_iter().flatten().min()),
            bound_reasoning: if learned.bound_reasoning {
                Some(true)
            } else {
                found
                    .as_ref()
                    .map(|found| found.model.rules.bound_reasoning)
            },
            no_block_binding: learned.no_block_binding,
            is_assumed: found
                .as_ref()
                .is_some_and(|found| found.matched == ModelMatch::Assumed),
            model: found.map(|found| found.model),
        }
    }

    /// Remembers the window in an error. True if it is new.
    pub(crate) fn learn_window(&self, model_key: ModelKey<'_>, window: u64) -> bool {
        self.change(model_key, |learned| {
            learned.window.replace(window) != Some(window)
        })
    }

    /// Remembers the window that is assumed after a rejection without figures. True if it is new.
    pub(crate) fn learn_refused(&self, model_key: ModelKey<'_>, tokens: u64) -> bool {
        self.change(model_key, |learned| {
            let is_less = learned.refused.is_none_or(|known| tokens < known);
            is_less && learned.refused.replace(tokens) != Some(tokens)
        })
    }

    /// Remembers what a rejection says about the reasoning of a model. True if it is new.
    pub(crate) fn learn_reasoning(&self, model_key: ModelKey<'_>, fault: ReasoningFault) -> bool {
        self.change(model_key, |learned| {
            let known = match fault {
                ReasoningFault::Stale => &mut learned.bound_reasoning,
                ReasoningFault::UnknownSetting => &mut learned.no_block_binding,
                ReasoningFault::Damaged => return false,
            };
            !std::mem::replace(known, true)
        })
    }

    /// Remembers the window of a server that truncated a prompt silently. True if it is new.
    pub(crate) fn learn_truncation(&self, model_key: ModelKey<'_>, window: u64) -> bool {
        self.change(model_key, |learned| {
            learned.cut.replace(window) != Some(window)
        })
    }

    /// Records a prompt size that a model accepted. It disproves every smaller window that was
    /// learned. True if it did.
    pub(crate) fn disprove_learned_window(&self, model_key: ModelKey<'_>, tokens: u64) -> bool {
        self.change(model_key, |learned| {
            // The learned window is nine tenths of what the server kept, so only a clearly larger
            // prompt disproves it.
            let cut = learned.cut.take_if(|cut| tokens > *cut + *cut / 4);
            let refused = learned.refused.take_if(|refused| tokens > *refused);
            let window = learned.window.take_if(|window| tokens > *window);
            cut.or(refused).or(window).is_some()
        })
    }

    /// The calibration of a model.
    pub(crate) fn calibration(&self, model_key: ModelKey<'_>) -> Calibration {
        let mut state = self.state();
        let learned = state.learned.get(&model_key.owned());
        let learned = learned.and_then(|learned| learned.calibration.clone());
        learned.unwrap_or_default()
    }

    /// Updates the calibration of a model. True if it should be written to the store: often at
    /// first, rarely later.
    pub(crate) fn keep_calibration(&self, model_key: ModelKey<'_>, learned: &Calibration) -> bool {
        self.change(model_key, |known| {
            let before = known.calibration.as_ref().map_or(0, Calibration::learned);
            let now = learned.learned();
            known.calibration = Some(learned.clone());
            now != before && (now.is_power_of_two() || now.is_multiple_of(WRITTEN_EVERY))
        })
    }

    /// Writes the learned data of a model to the store. Failures are ignored.
    pub(crate) fn write(&self, store: &dyn Store, model_key: ModelKey<'_>) {
        let learned = self.state().learned.get(&model_key.owned()).cloned();
        if let Some(learned) = learned {
            // The write may fail because other proxies write at the same time. What they learned
            // is as good.
            let _ = learned::write(store, learned);
        }
    }

    fn change(
        &self,
        model_key: ModelKey<'_>,
        change: impl FnOnce(&mut LearnedModel) -> bool,
    ) -> bool {
        // Names of models come from clients, so their number and their length are bounded.
        if model_key.model.len() > NAME {
            return false;
        }
        let (mut state, key) = (self.state(), model_key.owned());
        if let Some(learned) = state.learned.get_mut(&key) {
            return change(learned);
        }
        // The oldest first. A tenant that invents names loses its own models, and nobody else's.
        let all = state.learned.iter().map(|(known, _)| known);
        let mut own = all.filter(|[tenant, ..]| *tenant == model_key.tenant);
        let oldest = own.next().cloned();
        if let Some(oldest) = oldest.filter(|_| own.count() + 1 >= TENANT_MODELS) {
            state.learned.remove(&oldest);
        }
        let mut learned = LearnedModel::of(&key);
        let is_changed = change(&mut learned);
        state.learned.insert(key, learned);
        is_changed
    }

    fn state(&self) -> std::sync::MutexGuard<'_, ModelTableState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::learned::MODELS;
    use super::*;

    fn empty() -> ModelTable {
        ModelTable::new(Catalogue::embedded(), LearnedModels::new(MODELS))
    }

    fn key<'a>(tenant: &'a str, upstream: &'a str, model: &'a str) -> ModelKey<'a> {
        ModelKey {
            tenant,
            upstream,
            model,
        }
    }

    #[test]
    fn invented_model_names_keep_no_real_models_from_being_learned() {
        let models = empty();
        let window = |tenant: &str, model: &str| {
            let found = models.model_limits(key(tenant, "u", model), None);
            found.window
        };
        assert!(models.learn_window(key("t", "u", "in-use"), 8_000));
        assert!(models.learn_window(key("other", "u", "rarely-used"), 9_000));
        for at in 0..2 * MODELS {
            assert!(models.learn_window(key("t", "u", &format!("invented-{at}")), 1_000));
            // A model that is asked for stays.
            assert_eq!(window("t", "in-use"), Some(8_000));
        }
        assert!(models.learn_window(key("t", "u", "new"), 4_000));
        assert_eq!(window("t", "new"), Some(4_000));
        assert_eq!(window("other", "rarely-used"), Some(9_000));
        assert_eq!(models.state().learned.len(), TENANT_MODELS + 1);
    }

    #[test]
    fn overlong_model_names_are_not_kept() {
        let models = empty();
        let name = "gpt-4o".repeat(NAME);
        let key = key("t", "u", &name);
        assert_eq!(models.model_limits(key, None).window, None);
        assert!(!models.learn_window(key, 8_000));
        let state = models.state();
        assert!(state.catalogue.is_empty() && state.learned.is_empty());
    }

    #[test]
    fn what_a_tenant_learns_lowers_its_own_windows_unless_one_is_set() {
        let models = empty();
        let window = |key: ModelKey<'_>, rule: Option<&ModelRule>| {
            let found = models.model_limits(key, rule);
            found.window
        };
        let opus = key("t", "u", "claude-opus-4-5-20251101");
        assert_eq!(window(opus, None), Some(200_000));
        let house = key("t", "u", "house-model");
        assert_eq!(window(house, None), None);
        assert!(models.learn_window(house, 8_000));
        assert!(!models.learn_window(house, 8_000));
        assert_eq!(window(house, None), Some(8_000));
        assert_eq!(window(key("other", "u", "house-model"), None), None);
        assert_eq!(window(key("t", "other", "house-model"), None), None);
        let rule = ModelRule {
            model: "house*".to_owned(),
            window: Some(32_000),
            ..ModelRule::for_all()
        };
        assert_eq!(window(house, Some(&rule)), Some(32_000));
    }

    #[test]
    fn a_larger_accepted_prompt_disproves_a_learned_window() {
        let models = empty();
        let key = key("t", "u", "house-model");
        let window = || models.model_limits(key, None).window;
        assert!(models.learn_window(key, 8_000));
        assert!(!models.disprove_learned_window(key, 8_000));
        assert!(models.disprove_learned_window(key, 8_001));
        assert_eq!(window(), None);
        assert!(models.learn_truncation(key, 4_000));
        assert!(!models.disprove_learned_window(key, 4_100));
        assert_eq!(window(), Some(4_000));
        assert!(models.disprove_learned_window(key, 6_000));
        assert_eq!(window(), None);
        assert!(models.learn_refused(key, 9_000));
        assert!(!models.learn_refused(key, 9_500));
        assert_eq!(window(), Some(9_000));
        assert!(models.disprove_learned_window(key, 9_001));
        assert_eq!(window(), None);
    }
}
