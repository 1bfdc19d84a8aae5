//! Estimates how many tokens a provider would have counted for text that was left out of a prompt.
//!
//! The calibration of the estimator is for decisions: it learns for all texts of a model, and
//! slowly. Here the question is how the text that was left out of one session would have
//! counted. The answer is in the same session: by how much the reported prompts grew when text
//! of the same kind was added to them.

use std::collections::HashMap;

use trimtab_model::estimate::{Measure, TokenClass};

/// The number of sessions in each of the two generations.
const SESSIONS: usize = 256;
/// The maximum size in bytes, which is small enough to be outside the memory budget.
const MOST_BYTES: usize = 4 << 20;
const _: () = assert!(2 * SESSIONS * (INCREMENTS + 1) * size_of::<Increment>() <= MOST_BYTES);
/// The number of remembered increments per session, the largest ones.
const INCREMENTS: usize = 32;
/// The maximum factor between our estimate and a provider's count, either way.
const MOST: f64 = 5.0;
/// The exponent of the likeness: how quickly the weight of other kinds of text falls.
const SHARPNESS: i32 = 24;
/// The minimum weight of an increment of another kind.
const LEAST_WEIGHT: f64 = 1e-3;
/// A prompt that lost more than this share of what it gained is no increment.
const MOST_LOST: u64 = 20;

/// The token counts of providers, by session. Unused sessions are forgotten.
#[derive(Debug, Default)]
pub(crate) struct TokenFits {
    sessions: HashMap<String, TokenFit>,
    /// The older generation. A session moves back when it is used again.
    older_sessions: HashMap<String, TokenFit>,
}

impl TokenFits {
    /// Records that the provider counted `reported` tokens for a prompt of the session.
    pub(crate) fn learn(&mut self, session: &str, sent: Measure, reported: u64) {
        if let Some(fit) = self.sessions.get_mut(session) {
            return fit.add(sent, reported);
        }
        let mut fit = self.older_sessions.remove(session).unwrap_or_default();
        fit.add(sent, reported);
        if self.sessions.len() >= SESSIONS {
            // Two generations: a session that is still used moves to the newer one, so no order of
            // use has to be kept.
            self.older_sessions = std::mem::take(&mut self.sessions);
        }
        self.sessions.insert(session.to_owned(), fit);
    }

    /// The tokens that the provider would count for `text` in the session.
    pub(crate) fn tokens(&self, session: &str, text: &Measure) -> i64 {
        let fit = self
            .sessions
            .get(session)
            .or(self.older_sessions.get(session));
        let factor = fit.map_or(1.0, |fit| fit.factor(text));
        rounded(text.tokens() as f64 * factor)
    }
}

/// The token counts of one session.
#[derive(Debug, Default)]
struct TokenFit {
    /// The prompt that was reported last, and its tokens.
    last: Option<(Measure, u64)>,
    /// The largest increments from one prompt to the next, largest first.
    increments: Vec<Increment>,
}

/// Text that was added to a prompt, and its counted tokens.
#[derive(Clone, Copy, Debug)]
struct Increment {
    added: Measure,
    counted: u64,
}

impl TokenFit {
    fn add(&mut self, sent: Measure, reported: u64) {
        let (before, counted) = match self.last.replace((sent, reported)) {
            Some((last, then)) => {
                let (gone, added) = ((last - sent).tokens(), (sent - last).tokens());
                // After a plan the prompt has lost text, and the change in tokens is not that of
                // the added text.
                if gone.saturating_mul(MOST_LOST) > added {
                    return;
                }
                (last, reported.saturating_sub(then))
            }
            None => (Measure::default(), reported),
        };
        let added = sent - before;
        if counted == 0 || added.tokens() == 0 {
            return;
        }
        // Large increments are kept, because framing and rounding matter less in them.
        let largest = |other: &Increment| other.added.tokens() >= added.tokens();
        let at = self.increments.partition_point(largest);
        self.increments.insert(at, Increment { added, counted });
        self.increments.truncate(INCREMENTS);
    }

    /// The provider's tokens per estimated token of `text`.
    fn factor(&self, text: &Measure) -> f64 {
        let (mut counted, mut estimated) = (0.0, 0.0);
        for increment in &self.increments {
            let alike = likeness(&increment.added, text).powi(SHARPNESS);
            let weight = alike.max(LEAST_WEIGHT);
            counted += weight * increment.counted as f64;
            estimated += weight * increment.added.tokens() as f64;
        }
        if estimated > 0.0 {
            // A wrong report, for example of a truncated prompt, must not make savings absurd.
            (counted / estimated).clamp(1.0 / MOST, MOST)
        } else {
            1.0
        }
    }
}

/// The likeness of two texts by their mixture of token classes: 1 if equal, 0 if disjoint.
fn likeness(one: &Measure, other: &Measure) -> f64 {
    let product = |a: &Measure, b: &Measure| -> f64 {
        TokenClass::ALL
            .iter()
            .map(|class| a.class(*class) * b.class(*class))
            .sum()
    };
    let lengths = (product(one, one) * product(other, other)).sqrt();
    if lengths > 0.0 {
        product(one, other) / lengths
    } else {
        0.0
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the conversion saturates")]
fn rounded(tokens: f64) -> i64 {
    tokens.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(times: usize) -> Measure {
        Measure::of_text(&"a few words of plain text ".repeat(times))
    }

    fn signed(text: &Measure) -> i64 {
        i64::try_from(text.tokens()).unwrap()
    }

    fn digits(times: usize) -> Measure {
        Measure::of_text(&"4711 0815 1234 5678\n".repeat(times))
    }

    #[test]
    fn text_counts_as_text_of_its_kind_did() {
        let mut fits = TokenFits::default();
        let mut prompt = words(500);
        let mut counted = 3_000 + prompt.tokens();
        fits.learn("s", prompt, counted);
        for _ in 0..5 {
            // Digits count for half of what we think, words for what we think.
            for (added, share) in [(digits(400), 2), (words(100), 1)] {
                prompt += added;
                counted += added.tokens() / share;
                fits.learn("s", prompt, counted);
            }
        }
        let of = |text: Measure| fits.tokens("s", &text) as f64 / text.tokens() as f64;
        assert!((of(digits(900)) - 0.5).abs() < 0.03, "{}", of(digits(900)));
        // The first prompt came with 3,000 tokens that we did not see.
        assert!((of(words(900)) - 1.0).abs() < 0.8, "{}", of(words(900)));
        assert_eq!(fits.tokens("other", &words(9)), signed(&words(9)));
    }

    #[test]
    fn sessions_in_use_are_remembered_and_the_others_are_not() {
        let mut fits = TokenFits::default();
        let text = words(1_000);
        for number in 0..10 * SESSIONS {
            fits.learn("busy", text, text.tokens() * 2);
            for one in [format!("s{number}"), "busy".to_owned()] {
                fits.learn(&one, text, text.tokens() * 2);
            }
            assert!(fits.sessions.len() + fits.older_sessions.len() <= 2 * SESSIONS);
        }
        assert!(fits.tokens("busy", &text) > signed(&text));
        assert_eq!(fits.tokens("s0", &text), signed(&text));
    }

    #[test]
    fn a_prompt_that_got_smaller_teaches_nothing() {
        let mut fits = TokenFits::default();
        fits.learn("s", words(1_000), words(1_000).tokens());
        fits.learn("s", words(200), 9);
        fits.learn("s", words(400), 9 + words(200).tokens());
        let text = words(300);
        assert!(fits.tokens("s", &text).abs_diff(signed(&text)) < 20);
    }

    #[test]
    fn figures_that_cannot_be_true_do_no_harm() {
        let mut fits = TokenFits::default();
        for (sent, reported) in [(words(0), 0), (words(1), u64::MAX), (words(900), 1)] {
            fits.learn("s", sent, reported);
            let tokens = fits.tokens("s", &words(10));
            assert!((1..=signed(&words(10)) * 5).contains(&tokens), "{tokens}");
        }
    }
}
