//! How many tokens a provider counts for one that we estimate, session by session.
//!
//! The calibration of the estimator is for decisions: it learns for all texts of a model, and
//! slowly. Here it is only asked how what was left out of one session would have counted, and
//! that is of the same kind as what was sent.

use std::collections::HashMap;

/// So many sessions are remembered; beyond, all are learned anew.
const SESSIONS: usize = 4_096;
/// No provider is further from our estimate than this factor, either way.
const MOST: f64 = 5.0;
/// Prompts that differ in size by less than this share do not tell what more of a prompt costs:
/// there the whole prompt stands in.
const LEAST_SPREAD: f64 = 0.05;

/// What providers counted, by session.
#[derive(Debug, Default)]
pub(crate) struct TokenFits {
    sessions: HashMap<String, TokenFit>,
}

impl TokenFits {
    /// Takes in that the provider counted `reported` tokens for a prompt of the session that we
    /// estimate to have `sent`; gives how much it counts for each of ours.
    pub(crate) fn learn(&mut self, session: &str, sent: u64, reported: u64) -> f64 {
        if self.sessions.len() >= SESSIONS && !self.sessions.contains_key(session) {
            self.sessions.clear();
        }
        let fit = self.sessions.entry(session.to_owned()).or_default();
        fit.add(sent as f64, reported as f64);
        fit.factor()
    }

    /// How much the provider counts for each token of ours, where nothing was reported now.
    pub(crate) fn factor(&self, session: &str) -> f64 {
        self.sessions.get(session).map_or(1.0, TokenFit::factor)
    }
}

/// Running sums of a line through all prompts of a session: a constant for what we do not see,
/// and a factor for what we do.
#[derive(Clone, Copy, Debug, Default)]
struct TokenFit {
    prompts: f64,
    sent: f64,
    reported: f64,
    sent_squared: f64,
    product: f64,
}

impl TokenFit {
    fn add(&mut self, sent: f64, reported: f64) {
        self.prompts += 1.0;
        self.sent += sent;
        self.reported += reported;
        self.sent_squared += sent * sent;
        self.product += sent * reported;
    }

    fn factor(&self) -> f64 {
        if self.sent <= 0.0 || self.reported <= 0.0 {
            return 1.0;
        }
        let of_whole = self.reported / self.sent;
        let mean = self.sent / self.prompts;
        let spread = (self.sent_squared - self.sent * mean).max(0.0);
        let together = self.product - self.reported * mean;
        // The less the prompts differ, the more the whole prompt counts.
        let weight = (LEAST_SPREAD * mean).powi(2) * self.prompts;
        let factor = (together + weight * of_whole) / (spread + weight);
        factor.clamp(1.0 / MOST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_do_not_see_is_told_from_what_counts_differently() {
        let mut fits = TokenFits::default();
        let mut factor = 0.0;
        for sent in [4_000, 16_000, 18_000, 18_100, 18_200] {
            factor = fits.learn("s", sent, 3_000 + sent / 2);
        }
        assert!((factor - 0.5).abs() < 0.01, "{factor}");
        assert!((fits.factor("s") - factor).abs() < 1e-12);
        assert!((fits.factor("other") - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_prompt_stands_for_the_factor() {
        let factor = TokenFits::default().learn("s", 10_000, 13_000);
        assert!((factor - 1.3).abs() < 1e-9, "{factor}");
    }

    #[test]
    fn figures_that_cannot_be_true_do_no_harm() {
        let mut fits = TokenFits::default();
        for (sent, reported) in [(0, 0), (1, u64::MAX), (u64::MAX, 1), (5, 5)] {
            let factor = fits.learn("s", sent, reported);
            assert!((0.2..=5.0).contains(&factor), "{factor}");
        }
    }
}
