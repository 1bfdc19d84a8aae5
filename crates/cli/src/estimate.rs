//! Tokens, before a provider reports them.

/// What an image costs, whatever its size.
const MEDIA: u64 = 1_200;

use trimtab_model::{Call, Output, Part};

/// Tokens of a text: a quarter of its bytes, rounded up.
pub fn text(text: &str) -> u64 {
    (text.len() as u64).div_ceil(4)
}

/// Tokens of a call: its name and its arguments.
pub fn call(call: &Call) -> u64 {
    text(&call.name).saturating_add(text(&call.arguments))
}

/// Tokens of an output.
pub fn output(output: &Output) -> u64 {
    output.content.iter().map(part).sum()
}

/// Tokens of any part.
pub fn part(part: &Part) -> u64 {
    match part {
        Part::Text(piece) => text(&piece.text),
        Part::Reasoning(thought) => {
            let seal = thought.seal.as_deref().map_or(0, text);
            text(&thought.text).saturating_add(seal)
        }
        Part::Media(_) => MEDIA,
        Part::Call(asked) => call(asked),
        Part::Output(given) => output(given),
        Part::Opaque(opaque) => text(opaque.raw.as_str()),
    }
}
