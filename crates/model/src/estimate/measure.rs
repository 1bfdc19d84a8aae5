//! The measure of a message, computed once and kept.

use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use super::linear::{self, CLASSES, PARTS, TokenClass};
use super::media::media_tokens;
use super::size::{Length, MeasuredItem, MessageSizes, walk};
use crate::{Message, Part, work};

/// Tokens that providers add around a message, a call and an output: a guess that calibration
/// corrects.
const PER_MESSAGE: u32 = 4;
const PER_CALL: u32 = 6;
const PER_OUTPUT: u32 = 4;

/// The size of a message in every measure that an estimator needs.
///
/// It is computed once, when the message is admitted, and kept with it: about a hundred bytes,
/// `Copy`. Measures can be added and subtracted, so the measure of a window is a running sum, and
/// every estimator reads its tokens in constant time. Only the heuristics round per message: keep
/// running sums of [`Heuristic::sizes`](super::Heuristic::sizes) for them.
///
/// Only the readable text of encrypted reasoning is measured, because the size of the rest is known
/// to the provider only.
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
    sizes: MessageSizes,
    /// Estimated tokens by class, in sixteenths.
    classes: [u32; CLASSES],
}

impl Measure {
    /// Measures a message.
    pub fn of(message: &Message) -> Self {
        Self::with_known_texts(message, &BTreeMap::new())
    }

    /// Measures a message, some parts of which have one text that is measured already: `known` has
    /// its [`of_text`](Self::of_text), by the number of the part.
    ///
    /// ```
    /// use trimtab_model::{Message, estimate::Measure};
    ///
    /// let message = Message::output("c1", "a long output");
    /// let text = Measure::of_text("a long output");
    /// assert_eq!(Measure::with_known_texts(&message, &[(0, text)].into()), Measure::of(&message));
    /// ```
    pub fn with_known_texts(message: &Message, known: &BTreeMap<usize, Self>) -> Self {
        let mut measure = Self::default();
        measure.sizes.messages = 1;
        measure.add_class(TokenClass::Framing, PER_MESSAGE);
        for (at, part) in message.parts.iter().enumerate() {
            let Some(text) = known.get(&at) else {
                // `of_parts` returns classes only, so the sizes are added apart.
                let part = std::slice::from_ref(part);
                measure.sizes += MessageSizes::of_parts(part);
                measure += Self::of_parts(part);
                continue;
            };
            if let Part::Output(output) = part {
                // The known measure covers the text of the output, not its framing and its id.
                let around = MeasuredItem::Output(&output.call_id);
                measure.sizes.add_item(&around);
                measure.add_item(&around);
            }
            measure += *text;
        }
        measure
    }

    /// Measures the JSON of tool definitions: a list, or one definition.
    pub fn of_tools(json: &str) -> Self {
        let mut measure = Self::of_text(json);
        measure.sizes.add_tools(json);
        measure
    }

    /// Measures a text that is not a message.
    pub fn of_text(text: &str) -> Self {
        let mut measure = Self::of_length(text);
        measure.add_text(text);
        measure
    }

    /// Measures only the length of a text. Every estimate of the result is a lower bound, and the
    /// words of the text are not read.
    pub fn of_length(text: &str) -> Self {
        let mut measure = Self::default();
        measure.sizes.text = Length::of(text);
        measure
    }

    /// Measures some parts without the framing of their message. Its [`sizes`](Self::sizes) stay
    /// empty.
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
        walk(parts, &mut |item| measure.add_item(&item));
        measure
    }

    fn add_item(&mut self, item: &MeasuredItem<'_>) {
        match item {
            MeasuredItem::Text(text) | MeasuredItem::Reasoning(text) => self.add_text(text),
            MeasuredItem::Call(call) => {
                self.add_class(TokenClass::Framing, PER_CALL);
                self.add_text(&call.name);
                self.add_text(&call.arguments);
            }
            // The content of the output follows as separate items.
            MeasuredItem::Output(_) => self.add_class(TokenClass::Framing, PER_OUTPUT),
            MeasuredItem::Media(media) => {
                self.add_class(TokenClass::Media, media_tokens(media));
            }
            MeasuredItem::Opaque(opaque) => self.add_text(opaque.raw.as_str()),
        }
    }

    fn add_class(&mut self, class: TokenClass, tokens: u32) {
        if let Some(parts) = self.classes.get_mut(class as usize) {
            *parts = parts.saturating_add(tokens.saturating_mul(PARTS));
        }
    }

    fn add_text(&mut self, text: &str) {
        // Measuring reads client input, so it counts as work and can be cancelled.
        work::step_text(text);
        for (sum, parts) in self.classes.iter_mut().zip(linear::classes(text)) {
            *sum = sum.saturating_add(parts);
        }
    }

    /// The plain sizes.
    pub fn sizes(&self) -> &MessageSizes {
        &self.sizes
    }

    /// The estimated tokens for an unknown model, rounded up.
    pub fn tokens(&self) -> u64 {
        // Sum first and round once: rounding each class up would add almost a token per class.
        let parts: u64 = self.classes.iter().map(|&parts| u64::from(parts)).sum();
        parts.div_ceil(u64::from(PARTS))
    }

    /// The estimated tokens of one class.
    pub fn class(&self, class: TokenClass) -> f64 {
        let parts = self.classes.get(class as usize).copied().unwrap_or(0);
        f64::from(parts) / f64::from(PARTS)
    }

    /// The estimated tokens of all classes, in the order of [`TokenClass`].
    pub(super) fn by_class(&self) -> [f64; CLASSES] {
        self.classes
            .map(|parts| f64::from(parts) / f64::from(PARTS))
    }
}

impl AddAssign for Measure {
    fn add_assign(&mut self, other: Self) {
        self.sizes += other.sizes;
        for (sum, parts) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.saturating_add(parts);
        }
    }
}

impl SubAssign for Measure {
    fn sub_assign(&mut self, other: Self) {
        self.sizes -= other.sizes;
        for (sum, parts) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.saturating_sub(parts);
        }
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
