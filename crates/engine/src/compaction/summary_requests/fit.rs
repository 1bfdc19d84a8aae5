//! Cuts messages and texts to the room in the summariser's window.

use std::fmt::Write as _;

use trimtab_model::{Message, Output, Part};

use crate::compaction::request;
use crate::compaction::text::head_and_tail;

/// The tokens of a message.
pub type WeighMessage<'w> = &'w dyn Fn(&Message) -> u64;

/// Texts are not cut below this many characters.
const SHORTEST: usize = 16;
/// Outputs that are cut below this many characters lose their ref too, so that they get shorter.
const LEAST_WITH_REF: usize = 200;

/// A budget for the conversation in one request.
#[derive(Clone, Copy)]
pub(super) struct RequestBudget<'w> {
    pub(super) budget: u64,
    weigh: WeighMessage<'w>,
}

impl<'w> RequestBudget<'w> {
    pub(super) fn new(budget: u64, weigh: WeighMessage<'w>) -> Self {
        Self { budget, weigh }
    }

    /// The share of the previous answer, which has at most `max_output` tokens.
    pub(super) fn share(&self, max_output: u64) -> Self {
        Self::new(max_output.min(self.previous()), self.weigh)
    }

    /// The rest besides `text`.
    pub(super) fn without(&self, text: &str) -> Self {
        let left = self.budget.saturating_sub(self.weight_of(text));
        Self::new(left, self.weigh)
    }

    /// The rest besides the previous answer.
    pub(super) fn beside_previous(&self) -> Self {
        Self::new(self.budget - self.previous(), self.weigh)
    }

    /// The maximum for the previous answer: a third.
    fn previous(&self) -> u64 {
        self.budget / 3
    }

    pub(super) fn weight(&self, messages: &[Message]) -> u64 {
        messages.iter().map(|message| (self.weigh)(message)).sum()
    }

    pub(super) fn weight_of(&self, text: &str) -> u64 {
        (self.weigh)(&Message::user(text))
    }

    /// `text`, cut in its middle as far as necessary.
    pub(super) fn text(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        let mut limit = text.chars().count();
        // Halving weighs the text a logarithmic number of times, whatever the measure.
        while self.weight_of(&shown) > self.budget && limit > SHORTEST {
            limit /= 2;
            shown = head_and_tail(text, limit);
        }
        shown
    }

    /// The texts of `messages`, each cut in its middle as far as necessary for all to fit.
    pub(super) fn conversation(&self, messages: &[&Message], output_limit: usize) -> String {
        let mut shown = request::conversation(messages.iter().copied(), output_limit);
        let mut limit = longest(messages);
        while self.weight_of(&shown) > self.budget && limit > SHORTEST {
            limit /= 2;
            let short = messages
                .iter()
                .map(|message| cut_long_texts(message, limit));
            shown = request::conversation(short, output_limit);
        }
        // Even the shortest messages can be too many. Then the text as a whole is cut.
        self.text(&shown)
    }

    /// `messages` with long texts cut in their middle until all fit; the originals if that is not
    /// enough.
    pub(super) fn messages(&self, messages: Vec<Message>) -> Result<Vec<Message>, Vec<Message>> {
        if self.weight(&messages) <= self.budget {
            return Ok(messages);
        }
        let mut limit = longest(&messages.iter().collect::<Vec<_>>());
        while limit > SHORTEST {
            limit /= 2;
            let short = || {
                messages
                    .iter()
                    .map(|message| cut_long_texts(message, limit))
            };
            // Weigh first and keep later, so that only one copy exists at a time.
            if short().map(|message| (self.weigh)(&message)).sum::<u64>() <= self.budget {
                return Ok(short().collect());
            }
        }
        Err(messages)
    }
}

/// The length of the longest text: cutting starts below it.
fn longest(messages: &[&Message]) -> usize {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts.map(length).max().unwrap_or(0)
}

fn length(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.text.len(),
        Part::Call(call) => call.arguments.len(),
        Part::Output(output) => output.text().len(),
        Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => 0,
    }
}

/// `message` with every long text cut in its middle.
fn cut_long_texts(message: &Message, limit: usize) -> Message {
    let mut message = message.clone();
    for part in &mut message.parts {
        match part {
            Part::Text(text) => text.text = head_and_tail(&text.text, limit),
            Part::Call(call) if call.arguments.len() > limit => {
                let shown = head_and_tail(&call.arguments, limit);
                // Providers require valid JSON here.
                call.arguments = serde_json::json!({ "cut": shown }).to_string();
            }
            Part::Output(output) => output.content = vec![Part::text(cut_output(output, limit))],
            Part::Call(_) | Part::Reasoning(_) | Part::Media(_) | Part::Opaque(_) => {}
        }
    }
    message
}

/// An output, cut in its middle if it is long, with its ref.
fn cut_output(output: &Output, limit: usize) -> String {
    let text = output.text();
    let mut shown = head_and_tail(&text, limit);
    let is_cut = shown != text && limit >= LEAST_WITH_REF;
    if let Some(stored) = output.stored.as_ref().filter(|_| is_cut)
        && !shown.contains(stored.id())
    {
        // Writing into a String cannot fail.
        let _ = write!(shown, "\n[trimtab: the whole output has ref={stored}]");
    }
    shown
}
