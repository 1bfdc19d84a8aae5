//! What a message weighs: as much as anybody might count.

use trimtab_model::estimate::Measure;

/// Bytes of a request around a message, a call and an output, beside their ids.
const AROUND_MESSAGE: u64 = 34;
const AROUND_CALL: u64 = 84;
const AROUND_OUTPUT: u64 = 22;
/// One byte in so many of a text is escaped in JSON, and takes two.
const ESCAPED: u64 = 14;
/// The same of arguments, which are JSON themselves.
const ESCAPED_ARGUMENTS: u64 = 6;

/// The tokens of a measure that was estimated at `tokens`: that, or a quarter of the bytes that
/// it takes in a request, whichever is more.
///
/// Whoever counts bytes instead of tokens should find that the window fits as well.
///
/// ```
/// # use trimtab_engine::steady::weight;
/// # use trimtab_model::{Message, estimate::Measure};
/// let measure = Measure::of(&Message::user("word ".repeat(1_000)));
/// assert!(weight(measure.tokens(), &measure) > 5_000 / 4);
/// ```
pub fn weight(tokens: u64, measure: &Measure) -> u64 {
    let sizes = measure.sizes();
    let texts = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
    let text: u64 = texts.iter().map(|text| u64::from(text.bytes)).sum();
    let around = u64::from(sizes.messages) * AROUND_MESSAGE
        + u64::from(sizes.calls) * AROUND_CALL
        + u64::from(sizes.outputs) * AROUND_OUTPUT
        + u64::from(sizes.call_ids)
        + u64::from(sizes.output_ids);
    let arguments = u64::from(sizes.arguments.bytes);
    let escaped = (text - arguments) / ESCAPED + arguments / ESCAPED_ARGUMENTS;
    tokens.max((text + escaped + around).div_ceil(4))
}
