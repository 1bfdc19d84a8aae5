//! What is remembered of a message so that it is counted only once.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use super::TokenCounter;
use super::linear::{self, CLASSES, Class, PARTS, TEXT_CLASSES};
use super::size::{Item, Length, Sizes, walk};
use crate::{Message, Part, work};

/// What providers put around a message, around a call and around an output, in tokens: a
/// guess that calibration corrects.
const PER_MESSAGE: u32 = 4;
const PER_CALL: u32 = 6;
const PER_OUTPUT: u32 = 4;
/// What an image costs before anything is known of the model, in tokens.
const PER_MEDIA: u32 = 1200;

/// The size of a message in every measure that an estimator needs.
///
/// Made once, when the message comes in, and kept beside it: about a hundred bytes, `Copy`.
/// Measures add up and can be taken out again, so the measure of a window is a running sum, and
/// every estimator gives its tokens from it in constant time. Only the heuristics round per
/// message: of those, keep running sums of [`Heuristic::sizes`](super::Heuristic::sizes).
///
/// Of a sealed thought only the readable text is measured: what its seal stands for, nobody but
/// the provider knows.
///
/// ```
/// use trimtab_model::{Message, estimate::Measure};
///
/// let log = [Message::user("hello"), Message::assistant("hello to you")];
/// let mut window: Measure = log.iter().map(Measure::of).sum();
/// assert_eq!(window.sizes().messages, 2);
/// window -= Measure::of(&log[0]);
/// assert_eq!(window, Measure::of(&log[1]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    sizes: Sizes,
    /// Estimated tokens by class, in sixteenths.
    classes: [u32; CLASSES],
    /// Counted tokens of the texts that were counted exactly.
    counted: u32,
    /// How many messages or texts in the sum were only estimated.
    estimated: u32,
}

impl Measure {
    /// Measures a message.
    pub fn of(message: &Message) -> Self {
        Self::new(message, None)
    }

    /// Measures a message and counts its texts exactly.
    ///
    /// The estimates by class then add up to the exact count, which also serves a model of
    /// another vocabulary: the split is calibrated, and starts from better figures.
    pub fn counted(message: &Message, counter: &dyn TokenCounter) -> Self {
        Self::new(message, Some(counter))
    }

    /// Measures a text that is not a message, such as the JSON of the tool definitions.
    pub fn of_text(text: &str) -> Self {
        Self::new_text(text, None)
    }

    /// Measures a text that is not a message, and counts it exactly.
    pub fn counted_text(text: &str, counter: &dyn TokenCounter) -> Self {
        Self::new_text(text, Some(counter))
    }

    fn new_text(text: &str, counter: Option<&dyn TokenCounter>) -> Self {
        let mut measure = Self::default();
        measure.sizes.text = Length::of(text);
        measure.add_text(text, counter);
        measure.estimated = u32::from(counter.is_none());
        measure
    }

    /// Measures some parts alone, without what is put around their message.
    ///
    /// ```
    /// use trimtab_model::{Message, estimate::Measure};
    ///
    /// let message = Message::user("hello");
    /// let around = Measure::of(&message).tokens() - Measure::of_parts(&message.parts).tokens();
    /// assert_eq!(around, 4);
    /// ```
    pub fn of_parts(parts: &[Part]) -> Self {
        let mut measure = Self::default();
        walk(parts, &mut |item| measure.add_item(&item, None));
        measure.estimated = 1;
        measure
    }

    fn new(message: &Message, counter: Option<&dyn TokenCounter>) -> Self {
        let mut measure = Self {
            sizes: Sizes::of(message),
            ..Self::default()
        };
        measure.add_class(Class::Framing, PER_MESSAGE);
        walk(&message.parts, &mut |item| measure.add_item(&item, counter));
        measure.estimated = u32::from(counter.is_none());
        measure
    }

    fn add_item(&mut self, item: &Item<'_>, counter: Option<&dyn TokenCounter>) {
        match item {
            Item::Text(text) | Item::Reasoning(text) => self.add_text(text, counter),
            Item::Call(call) => {
                self.add_class(Class::Framing, PER_CALL);
                self.add_text(&call.name, counter);
                self.add_text(&call.arguments, counter);
            }
            Item::Output(_) => self.add_class(Class::Framing, PER_OUTPUT),
            Item::Media(_) => self.add_class(Class::Media, PER_MEDIA),
            Item::Opaque(opaque) => self.add_text(opaque.raw.as_str(), counter),
        }
    }

    fn add_class(&mut self, class: Class, tokens: u32) {
        if let Some(parts) = self.classes.get_mut(class as usize) {
            *parts = parts.saturating_add(tokens.saturating_mul(PARTS));
        }
    }

    fn add_text(&mut self, text: &str, counter: Option<&dyn TokenCounter>) {
        work::step_text(text);
        let mut classes = linear::classes(text);
        if let Some(counter) = counter {
            let tokens = u32::try_from(counter.count(text)).unwrap_or(u32::MAX);
            scale(&mut classes, tokens);
            self.counted = self.counted.saturating_add(tokens);
        }
        for (sum, parts) in self.classes.iter_mut().zip(classes) {
            *sum = sum.saturating_add(parts);
        }
    }

    /// The plain sizes.
    pub fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    /// The estimated tokens, rounded up, for a model that nothing is known of.
    pub fn tokens(&self) -> u64 {
        self.parts(0..CLASSES).div_ceil(u64::from(PARTS))
    }

    /// The tokens if all texts in it were counted exactly: that count, and an estimate of
    /// framing and media.
    pub fn exact_tokens(&self) -> Option<u64> {
        let around = self.parts(TEXT_CLASSES..CLASSES).div_ceil(u64::from(PARTS));
        (self.estimated == 0).then(|| u64::from(self.counted) + around)
    }

    /// The estimated tokens of one class.
    pub fn class(&self, class: Class) -> f64 {
        let parts = self.classes.get(class as usize).copied().unwrap_or(0);
        f64::from(parts) / f64::from(PARTS)
    }

    /// The estimated tokens of all classes, in the order of [`Class`].
    pub(super) fn by_class(&self) -> [f64; CLASSES] {
        self.classes
            .map(|parts| f64::from(parts) / f64::from(PARTS))
    }

    fn parts(&self, classes: std::ops::Range<usize>) -> u64 {
        let parts = self.classes.get(classes).unwrap_or_default();
        parts.iter().map(|&parts| u64::from(parts)).sum()
    }
}

/// Makes the classes of a text add up to its exact count.
fn scale(classes: &mut [u32; TEXT_CLASSES], tokens: u32) {
    let estimated: u64 = classes.iter().map(|&parts| u64::from(parts)).sum();
    let exact = u64::from(tokens) * u64::from(PARTS);
    for parts in classes {
        let scaled = (u64::from(*parts) * exact)
            .checked_div(estimated)
            .unwrap_or(0);
        *parts = u32::try_from(scaled).unwrap_or(u32::MAX);
    }
}

impl AddAssign for Measure {
    fn add_assign(&mut self, other: Self) {
        self.sizes += other.sizes;
        for (sum, parts) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.saturating_add(parts);
        }
        self.counted = self.counted.saturating_add(other.counted);
        self.estimated = self.estimated.saturating_add(other.estimated);
    }
}

impl SubAssign for Measure {
    fn sub_assign(&mut self, other: Self) {
        self.sizes -= other.sizes;
        for (sum, parts) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.saturating_sub(parts);
        }
        self.counted = self.counted.saturating_sub(other.counted);
        self.estimated = self.estimated.saturating_sub(other.estimated);
    }
}

impl Add for Measure {
    type Output = Self;

    fn add(mut self, other: Self) -> Self {
        self += other;
        self
    }
}

impl Sub for Measure {
    type Output = Self;

    fn sub(mut self, other: Self) -> Self {
        self -= other;
        self
    }
}

impl Sum for Measure {
    fn sum<I: Iterator<Item = Self>>(measures: I) -> Self {
        measures.fold(Self::default(), Add::add)
    }
}
