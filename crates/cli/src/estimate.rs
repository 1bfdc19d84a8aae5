//! Tokens, before a provider reports them: the model crate's own estimate.
//!
//! A long text is estimated from samples of it: looking at every byte would cost more than
//! reading the file.

use trimtab_model::estimate::Measure;
use trimtab_model::{Call, Message, Output, Part, Role};

/// Texts up to this many bytes are looked at as a whole.
const WHOLE: usize = 2 * 1024;
/// Of a longer one, a sample of so many bytes is taken from every stretch of so many, three
/// at least.
const SAMPLE: usize = 384;
const STRETCH: usize = 2 * 1024;
const AT_LEAST: usize = 3;
/// Where in its stretch a sample lies moves by this, lest it meets what repeats.
const SHIFT: usize = 977;

/// Estimates tokens.
#[derive(Clone, Copy, Debug)]
pub struct Estimator {
    /// Tokens that a provider puts around every message.
    pub around_message: u64,
    around_call: u64,
    around_output: u64,
}

impl Default for Estimator {
    fn default() -> Self {
        let part = |part| Measure::of_parts(&[part]).tokens();
        Self {
            around_message: Measure::of(&Message::new(Role::User, Vec::new())).tokens(),
            around_call: part(Part::Call(Call::new("", "", ""))),
            around_output: part(Part::Output(Output::new("", ""))),
        }
    }
}

impl Estimator {
    /// Tokens of a part.
    pub fn part(&self, part: &Part) -> u64 {
        match part {
            Part::Text(piece) => text(&piece.text),
            Part::Reasoning(thought) => text(&thought.text),
            Part::Call(call) => self.around_call + text(&call.name) + text(&call.arguments),
            Part::Output(output) => {
                let content: u64 = output.content.iter().map(|part| self.part(part)).sum();
                self.around_output + content
            }
            Part::Media(_) => Measure::of_parts(std::slice::from_ref(part)).tokens(),
            Part::Opaque(opaque) => text(opaque.raw.as_str()),
        }
    }
}

/// Tokens of a text.
///
/// ```
/// use trimtab_cli::estimate::text;
/// let line = "error: 17 of 240 tests failed in src/lib.rs\n";
/// let (short, long) = (text(&line.repeat(10)), text(&line.repeat(10_000)));
/// assert!(long.abs_diff(short * 1_000) < short * 20);
/// ```
pub fn text(text: &str) -> u64 {
    if text.len() <= WHOLE {
        return Measure::of_text(text).tokens();
    }
    let (mut bytes, mut measure) = (0, Measure::default());
    let samples = (text.len() / STRETCH).max(AT_LEAST);
    for number in 0..samples {
        let sample = sample(text, number, text.len() / samples);
        bytes += sample.len() as u64;
        measure += Measure::of_text(sample);
    }
    let scaled = u128::from(measure.tokens()) * text.len() as u128 / u128::from(bytes.max(1));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// The sample of one stretch, cut where words end if there are words.
fn sample(text: &str, number: usize, stretch: usize) -> &str {
    let shift = number.wrapping_mul(SHIFT) % (stretch - SAMPLE);
    let start = boundary(text, number * stretch + shift);
    let end = boundary(text, start + SAMPLE);
    let sample = text.get(start..end).unwrap_or_default();
    let blank = |byte: &u8| byte.is_ascii_whitespace();
    let bytes = sample.as_bytes();
    let (first, last) = (bytes.iter().position(blank), bytes.iter().rposition(blank));
    match (first, last) {
        (Some(first), Some(last)) if last - first > SAMPLE / 2 => {
            sample.get(first..last).unwrap_or(sample)
        }
        _ => sample,
    }
}

/// The last place at or before `at` where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    let found = (0..=at).rev().find(|&at| text.is_char_boundary(at));
    found.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_tell_what_the_whole_would() {
        let code = include_str!("estimate.rs").repeat(9);
        let data = "{\"id\": 7919, \"name\": \"a row\", \"ok\": true}\n".repeat(3_000);
        let han = "\u{6f22}\u{5b57}\u{306f}\u{8868}\u{610f}\u{6587}\u{5b57}\u{3002}".repeat(900);
        for long in [code, data, han, "x".repeat(50_000)] {
            let (exact, sampled) = (Measure::of_text(&long).tokens(), text(&long));
            let off = exact.abs_diff(sampled);
            assert!(
                off * 10 <= exact + 10,
                "{sampled} for {exact}: {:?}",
                long.get(..40)
            );
        }
    }
}
