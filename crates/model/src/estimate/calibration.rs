//! Learns how a model counts tokens from its reported usage.

use serde::{Deserialize, Serialize};

use super::Measure;
use super::linear::{CLASSES, TEXT_CLASSES};

/// The prior deviation of a whole vocabulary from our estimate. A standard deviation, like the next
/// ones.
const SPREAD_ALL: f64 = 0.30;
/// The prior deviation of each class from the rest, in the order of the classes. Some vocabularies
/// have one token per digit, and the cost of other scripts differs by a factor of two or three;
/// framing and media start as guesses.
const SPREAD_CLASS: [f64; CLASSES] = [0.15, 0.50, 0.25, 0.30, 0.60, 0.60, 0.80, 0.80];
/// The prior error of one observation, and its lower bound.
const NOISE: f64 = 0.08;
const LEAST_NOISE: f64 = 0.01;
/// The weight of the newest error in the running noise estimate.
const NOISE_STEP: f64 = 0.08;
/// Invisible framing is a larger share of a small increment: at this many tokens the noise doubles.
const SMALL: f64 = 150.0;
/// Smaller increments, in estimated tokens, are ignored.
const LEAST_TOKENS: f64 = 40.0;
/// Old observations slowly lose weight, because a provider may change the model behind a name.
const MEMORY: f64 = 0.995;
/// No vocabulary differs from ours by more than this factor.
const FACTOR_LIMIT: f64 = 5.0;
/// An observation this many standard deviations off is an outlier.
const OUTLIER: f64 = 4.0;
/// After this many outliers in a row, the model must have changed.
const OUTLIERS_IN_A_ROW: u32 = 4;

/// The result of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CalibrationOutcome {
    /// It was used.
    Learned,
    /// It was too small.
    TooSmall,
    /// It is implausible for this model, or contradicts all earlier ones, and was ignored.
    Outlier,
}

/// How one model's count differs from our estimate: a factor per class of text, learned from the
/// usage that the provider reports. Keep one per model, and keep it between runs.
///
/// Each observation is the increment from one call to the next: the estimate by class of the
/// messages in between, and the growth of the reported prompt. It is divided by its size, so that
/// long and short increments have equal weight, and fed to recursive least squares. The factors
/// start at one with a correlated prior, so the first observation moves all of them and later ones
/// separate them.
///
/// ```
/// use trimtab_model::{Message, estimate::{Calibration, Measure}};
///
/// let mut model = Calibration::default();
/// let added = Measure::of(&Message::user("a few hundred words of text ".repeat(50)));
/// for _ in 0..10 {
///     model.observe(&added, added.tokens() * 5 / 4);
/// }
/// let (raw, learned) = (added.tokens() as f64, model.tokens(&added) as f64);
/// assert!((learned / raw - 1.25).abs() < 0.02);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    factors: [f64; CLASSES],
    covariance: [[f64; CLASSES]; CLASSES],
    /// The variance of an observation's relative error.
    noise: f64,
    learned: u32,
    outliers: u32,
}

impl Default for Calibration {
    fn default() -> Self {
        Self {
            factors: [1.0; CLASSES],
            covariance: prior(),
            noise: NOISE * NOISE,
            learned: 0,
            outliers: 0,
        }
    }
}

impl Calibration {
    /// The estimated tokens for this model, rounded up.
    pub fn tokens(&self, measure: &Measure) -> u64 {
        rounded_up(self.estimate(&measure.by_class()))
    }

    /// The number of observations used.
    pub fn learned(&self) -> u32 {
        self.learned
    }

    /// Learns from one call: `added` was sent or answered since the previous call, and the prompt
    /// grew by `tokens`. Do not observe across an edit, because the prompt then shrinks.
    pub fn observe(&mut self, added: &Measure, tokens: u64) -> CalibrationOutcome {
        let classes = added.by_class();
        let total: f64 = classes.iter().sum();
        // Rounding and framing dominate small increments.
        if total < LEAST_TOKENS {
            return CalibrationOutcome::TooSmall;
        }
        // Work with shares, so that large and small increments have equal weight.
        let shares = classes.map(|tokens| tokens / total);
        let ratio = tokens as f64 / total;
        // No real tokeniser differs this much. Probably the prompt was edited between the calls.
        if !(1.0 / FACTOR_LIMIT..=FACTOR_LIMIT).contains(&ratio) {
            return CalibrationOutcome::Outlier;
        }
        let noise = self.noise * (1.0 + SMALL / total);
        let error = ratio - self.estimate(&shares);
        // The expected variance: uncertainty of the factors plus noise.
        let expected = dot(&shares, &self.spread(&shares)) + noise;
        if error * error > OUTLIER * OUTLIER * expected && !self.accepts_outlier() {
            return CalibrationOutcome::Outlier;
        }
        self.outliers = 0;
        self.learn(&shares, error, noise);
        CalibrationOutcome::Learned
    }

    /// True to accept an outlier: after several in a row, learning starts over.
    fn accepts_outlier(&mut self) -> bool {
        self.outliers += 1;
        let changed = self.outliers >= OUTLIERS_IN_A_ROW;
        // The model behind the name has changed, so the old factors are worthless.
        if changed {
            // The factors stay as the starting point. With the prior's uncertainty the next
            // observation moves them most of the way.
            self.covariance = prior();
            self.noise = NOISE * NOISE;
        }
        changed
    }

    /// One step of recursive least squares.
    fn learn(&mut self, shares: &[f64; CLASSES], error: f64, noise: f64) {
        // Standard recursive least squares: gain, factors, covariance.
        let spread = self.spread(shares);
        let unknown = dot(shares, &spread);
        let gain = spread.map(|value| value / (unknown + noise));
        for (factor, gain) in self.factors.iter_mut().zip(gain) {
            // The classes are correlated, so an update can push the factor of a rare class below
            // zero, and a negative estimate means nothing.
            *factor = (*factor + gain * error).clamp(0.0, FACTOR_LIMIT);
        }
        for (row, gain) in self.covariance.iter_mut().zip(gain) {
            for (value, spread) in row.iter_mut().zip(spread) {
                *value -= gain * spread;
            }
        }
        self.forget();
        // The part of the error that the uncertainty does not explain is noise.
        let surprise = (error * error - unknown).max(LEAST_NOISE * LEAST_NOISE);
        // Limit the surprise: otherwise one bad figure widens the noise so far that real outliers
        // are believed for a long time.
        self.noise += NOISE_STEP * (surprise.min(OUTLIER * NOISE * NOISE) - self.noise);
        self.learned = self.learned.saturating_add(1);
    }

    /// Increases the uncertainty, up to that of the prior.
    fn forget(&mut self) {
        let limit = prior();
        // Never forget beyond the prior, otherwise the filter becomes unstable.
        let full =
            (0..CLASSES).any(|i| diagonal(&self.covariance, i) > diagonal(&limit, i) * MEMORY);
        if !full {
            self.covariance = self.covariance.map(|row| row.map(|value| value / MEMORY));
        }
    }

    fn estimate(&self, classes: &[f64; CLASSES]) -> f64 {
        dot(&self.factors, classes)
    }

    /// Multiplies the covariance by a vector.
    fn spread(&self, vector: &[f64; CLASSES]) -> [f64; CLASSES] {
        self.covariance.map(|row| dot(&row, vector))
    }
}

/// The prior covariance of the factors.
fn prior() -> [[f64; CLASSES]; CLASSES] {
    let mut covariance = [[0.0; CLASSES]; CLASSES];
    for (i, row) in covariance.iter_mut().enumerate() {
        for (j, value) in row.iter_mut().enumerate() {
            // Framing and media are guesses, so they do not share the deviation of the text
            // classes.
            let guessed = i >= TEXT_CLASSES || j >= TEXT_CLASSES;
            let shared = if guessed {
                0.0
            } else {
                SPREAD_ALL * SPREAD_ALL
            };
            let class_spread = SPREAD_CLASS.get(i).copied().unwrap_or_default();
            let alone = if i == j {
                class_spread * class_spread
            } else {
                0.0
            };
            *value = shared + alone;
        }
    }
    covariance
}

/// A diagonal element.
fn diagonal(matrix: &[[f64; CLASSES]; CLASSES], i: usize) -> f64 {
    let value = matrix.get(i).and_then(|row| row.get(i));
    value.copied().unwrap_or_default()
}

fn dot(a: &[f64; CLASSES], b: &[f64; CLASSES]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the conversion saturates, and below zero is zero"
)]
fn rounded_up(tokens: f64) -> u64 {
    tokens.ceil() as u64
}
