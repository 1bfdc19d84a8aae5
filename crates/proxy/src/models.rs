//! What is known about the models that requests ask for.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use trimtab_model::estimate::Calibration;
use trimtab_wire::catalogue::{Catalogue, Limits, Model};

use crate::config::ModelRule;

/// How many models are remembered; more than any installation uses.
const REMEMBERED: usize = 1024;

/// The catalogue, what errors taught, and what was looked up before.
pub(crate) struct Models(Mutex<State>);

struct State {
    catalogue: Catalogue,
    /// What errors taught, by upstream and model.
    learned: HashMap<(String, String), Limits>,
    /// The windows of servers that cut prompts silently, by upstream and model.
    cut: HashMap<(String, String), u64>,
    found: HashMap<String, Option<Model>>,
    /// What was learned of the models' counts, by upstream and model.
    calibrations: HashMap<(String, String), Calibration>,
}

/// The limits of a model at an upstream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Tokens of prompt and answer together.
    pub(crate) window: Option<u64>,
    /// All that the catalogue has.
    pub(crate) model: Option<Model>,
}

impl Models {
    pub(crate) fn new(catalogue: Catalogue) -> Self {
        Self(Mutex::new(State {
            catalogue,
            learned: HashMap::new(),
            cut: HashMap::new(),
            found: HashMap::new(),
            calibrations: HashMap::new(),
        }))
    }

    /// What is known of a model: the settings' word, lowered by what an error proved.
    pub(crate) fn known(&self, upstream: &str, model: &str, rule: Option<&ModelRule>) -> Known {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = state.find(model);
        let key = (upstream.to_owned(), model.to_owned());
        let learned = state.learned.get(&key).copied().unwrap_or_default();
        let set = rule.and_then(|rule| rule.window);
        let window = set.or(found.as_ref().map(|model| model.window));
        let least = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let cut = state.cut.get(&key).copied();
        Known {
            window: least(least(window, learned.window), cut),
            model: found,
        }
    }

    /// Remembers the window that an error named.
    pub(crate) fn learn(&self, upstream: &str, model: &str, window: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.learned.len() < REMEMBERED {
            let key = (upstream.to_owned(), model.to_owned());
            state.learned.insert(key, Limits::window(window));
        }
    }

    /// Remembers the window of a server that cut a prompt silently.
    pub(crate) fn learn_cut(&self, whom: (&str, &str), window: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.cut.len() < REMEMBERED {
            let key = (whom.0.to_owned(), whom.1.to_owned());
            state.cut.insert(key, window);
        }
    }

    /// Takes in how much a model read: more than a window that was only found out by its
    /// silence disproves that.
    pub(crate) fn read(&self, whom: (&str, &str), tokens: u64) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.cut.is_empty() {
            return;
        }
        let key = (whom.0.to_owned(), whom.1.to_owned());
        // What it kept is a little more than what was taken as its window.
        let disproved = state
            .cut
            .get(&key)
            .is_some_and(|cut| tokens > cut + cut / 4);
        if disproved {
            state.cut.remove(&key);
        }
    }
}

impl Models {
    /// What was learned of a model's counts.
    pub(crate) fn calibration(&self, upstream: &str, model: &str) -> Calibration {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (upstream.to_owned(), model.to_owned());
        state.calibrations.get(&key).cloned().unwrap_or_default()
    }

    /// Keeps what was learned of a model's counts.
    pub(crate) fn keep_calibration(&self, upstream: &str, model: &str, learned: &Calibration) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (upstream.to_owned(), model.to_owned());
        if state.calibrations.len() < REMEMBERED || state.calibrations.contains_key(&key) {
            state.calibrations.insert(key, learned.clone());
        }
    }
}

impl State {
    fn find(&mut self, model: &str) -> Option<Model> {
        if let Some(found) = self.found.get(model) {
            return found.clone();
        }
        let found = self.catalogue.find(model).ok().map(|found| found.model);
        if self.found.len() >= REMEMBERED {
            self.found.clear();
        }
        self.found.insert(model.to_owned(), found.clone());
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_win_and_errors_lower() {
        let models = Models::new(Catalogue::embedded());
        let window = |upstream: &str, name: &str, rule: Option<&ModelRule>| {
            models.known(upstream, name, rule).window
        };
        assert_eq!(window("u", "claude-opus-4-5-20251101", None), Some(200_000));
        assert_eq!(window("u", "house-model", None), None);
        let rule = ModelRule {
            model: "house*".to_owned(),
            window: Some(32_000),
            max_output: None,
            preset: None,
            mode: None,
        };
        assert_eq!(window("u", "house-model", Some(&rule)), Some(32_000));
        models.learn("u", "house-model", 8_000);
        assert_eq!(window("u", "house-model", Some(&rule)), Some(8_000));
        assert_eq!(window("other", "house-model", Some(&rule)), Some(32_000));
        // What was concluded from silence holds until it is disproved.
        models.learn_cut(("other", "house-model"), 4_000);
        models.read(("other", "house-model"), 4_100);
        assert_eq!(window("other", "house-model", None), Some(4_000));
        models.read(("other", "house-model"), 6_000);
        assert_eq!(window("other", "house-model", None), None);
    }
}
