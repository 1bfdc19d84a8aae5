//! Tokens, before a provider reports them: the model crate's own estimate.

use std::slice;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Part, Role};

/// Tokens of a text.
pub fn text(text: &str) -> u64 {
    Measure::of_text(text).tokens()
}

/// Tokens of a part.
pub fn part(part: &Part) -> u64 {
    Measure::of_parts(slice::from_ref(part)).tokens()
}

/// Tokens that a provider puts around every message.
pub fn around_message() -> u64 {
    Measure::of(&Message::new(Role::User, Vec::new())).tokens()
}
