//! The requests to the summariser, within its window.
//!
//! One request has the whole conversation. If that is too long for the summariser, outputs are cut
//! shorter, and then all texts. The design `turns` asks about two batches and has both summaries
//! merged. All of this is data: [`requests`] decides, [`SummaryRequests::next`] returns one request
//! after another as the answers come in, and [`SummaryRequests::result`] combines the answers.

use std::borrow::Borrow;
use std::sync::Arc;

use trimtab_model::{Dialect, Message};

use super::answer::SummaryAnswer;
use super::conversation::{self, Cut, conversation, framed};
use crate::decide::summary::conversation::head_and_tail;
use crate::normalise::{NormaliseOptions, OpenCallRepair, normalise};
use crate::policy::{SummaryPrompt, SummaryRequestForm};
use crate::quote::escaped;

/// The tag around each of the answers that are merged.
const PART: &str = "summary-part";
/// The note of the design `turns` about oversized messages.
const OMITTED: &str =
    "\n[Note: Some oversized messages were omitted from this summary for efficiency.]";
/// The instructions to merge two summaries.
const MERGE: &str = "Two summaries of consecutive parts of one conversation follow, the older \
first. Merge them into one that keeps everything either of them says; where they differ, the \
newer one is right.";
/// With less room for the conversation, a request is pointless.
const LEAST: u64 = 512;
/// The characters of an output: the first limit with which the conversation fits.
const OUTPUT_LIMITS: [usize; 8] = [
    64_000,
    24_000,
    12_000,
    6_000,
    3_000,
    conversation::OUTPUT_LIMIT,
    600,
    200,
];
/// The first of them if the window is unknown.
const UNKNOWN_WINDOW_LIMIT: usize = 6_000;
/// Texts are not cut below this many characters.
const SHORTEST: usize = 16;

/// The tokens of a message.
pub type WeighMessage<'w> = &'w dyn Fn(&Message) -> u64;

/// The model that writes summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SummaryModel {
    /// Its window in tokens; none if unknown.
    pub window: Option<u64>,
    /// The limit of its answer in tokens.
    pub max_output: u64,
    /// Its dialect.
    pub dialect: Dialect,
    /// The characters of an output that it gets; none for as many as fit.
    pub output_chars: Option<usize>,
}

/// One request to a summariser: these messages, no tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The messages; the last one contains the instructions.
    pub messages: Vec<Message>,
    /// The limit of the answer in tokens.
    pub max_output: u64,
}

/// The requests for one summary: none, one, or two whose answers a third one merges.
#[derive(Clone, Debug)]
pub struct SummaryRequests {
    asked: Vec<Vec<Message>>,
    instructions: String,
    retain: bool,
    summariser: SummaryModel,
    note: &'static str,
}

/// The requests for a summary of the messages `old`, in the form `form` with `prompt`, within the
/// window of the `summariser`; `weigh` returns the tokens of a message in it. The `background` is
/// more context besides the conversation.
///
/// There is no request if nothing can be read, or if the window has no room for the conversation
/// besides the instructions and the answer. Then the summary without a model is used.
///
/// ```
/// use trimtab_engine::decide::summary::requests::{SummaryModel, requests};
/// use trimtab_engine::policy::SummaryPrompt;
/// use trimtab_engine::policy::SummaryRequestForm;
/// use trimtab_model::Message;
///
/// let old: Vec<Message> = (0..40).map(|n| Message::user(format!("{n} {}", "x".repeat(400)))).collect();
/// let weigh = |message: &Message| message.text().len().div_ceil(4) as u64;
/// let summariser = SummaryModel { window: Some(3_000), max_output: 500, ..SummaryModel::default() };
/// let prompt = SummaryPrompt::default();
/// let requests = requests(&old, SummaryRequestForm::Text, &prompt, "", summariser, &weigh);
/// assert_eq!(requests.len(), 1);
/// assert!(requests.next(&[], &weigh).is_some());
/// ```
pub fn requests<M: Borrow<Message>>(
    old: &[M],
    form: SummaryRequestForm,
    prompt: &SummaryPrompt,
    background: &str,
    summariser: SummaryModel,
    weigh: WeighMessage<'_>,
) -> SummaryRequests {
    let mut requests = SummaryRequests {
        asked: Vec::new(),
        instructions: prompt.instructions(),
        retain: !prompt.retain.is_empty(),
        summariser,
        note: "",
    };
    let room = requests.room(weigh).without(background);
    if room.tokens < LEAST {
        return requests;
    }
    let batches = if form == SummaryRequestForm::Turns {
        let window = summariser.window.unwrap_or(u64::MAX);
        let (batches, omitted) = conversation::readable_batches(old, window);
        if omitted {
            requests.note = OMITTED;
        }
        batches
    } else {
        vec![(0..old.len()).collect()]
    };
    for batch in batches {
        let messages = batch.iter().filter_map(|at| old.get(*at));
        let messages: Vec<&Message> = messages.map(Borrow::borrow).collect();
        let fitted = match form {
            SummaryRequestForm::Messages => fitted_messages(&messages, summariser, &room),
            SummaryRequestForm::Text | SummaryRequestForm::Turns => {
                Vec::from_iter(fitted_text(&messages, summariser, &room))
            }
        };
        if !fitted.is_empty() {
            let asked = with_instructions(fitted, form, background, &requests.instructions);
            requests.asked.push(asked);
        }
    }
    requests
}

/// The messages of a request: the conversation with the background and the instructions.
fn with_instructions(
    mut messages: Vec<Message>,
    form: SummaryRequestForm,
    background: &str,
    instructions: &str,
) -> Vec<Message> {
    if form != SummaryRequestForm::Messages {
        let text: String = messages.iter().map(Message::text).collect();
        return vec![Message::user(format!(
            "{background}{text}\n\n{instructions}"
        ))];
    }
    // Behind the messages: in front, it would change the beginning that the provider may have in
    // its cache.
    if !background.is_empty() {
        messages.push(Message::user(background.trim_end()));
    }
    messages.push(Message::user(instructions));
    messages
}

impl SummaryRequests {
    /// The number of requests.
    pub fn len(&self) -> usize {
        self.asked.len() + usize::from(self.merges())
    }

    /// True if there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// The request that follows the `answers` so far: one for each earlier request, none for one
    /// that failed. None if there is nothing more to ask: all requests were made, or one failed on
    /// which the rest depends.
    pub fn next(
        &self,
        answers: &[Option<&str>],
        weigh: WeighMessage<'_>,
    ) -> Option<SummaryRequest> {
        // A failed request ends the chain: half of a summary is of no use.
        let before: Vec<&str> = answers.iter().copied().collect::<Option<_>>()?;
        let messages = match self.asked.get(before.len()) {
            Some(messages) => messages.clone(),
            None if before.len() < self.len() => vec![self.merge_request(&before, weigh)?],
            None => return None,
        };
        Some(SummaryRequest {
            messages,
            max_output: self.summariser.max_output,
        })
    }

    /// Combines the answers: the text to parse as the summariser's answer. None if there are not
    /// enough of them.
    ///
    /// If only the merging of two summaries failed, they are concatenated.
    pub fn result(&self, answers: &[Option<&str>]) -> Option<String> {
        let last = self.len().checked_sub(1)?;
        let answer = answers.get(last).copied().flatten();
        let answer = answer.filter(|answer| !answer.trim().is_empty());
        let text = match answer {
            Some(answer) => answer.to_owned(),
            None if self.merges() => {
                let parts: Option<Vec<&str>> = answers.get(..last)?.iter().copied().collect();
                let said = parts?.into_iter().map(|part| self.answer_text(part));
                said.collect::<Vec<_>>().join(" ")
            }
            None => return None,
        };
        Some(with_note(text, self.note))
    }

    fn merges(&self) -> bool {
        self.asked.len() > 1
    }

    /// The room of the conversation besides the instructions and the answer.
    fn room<'w>(&self, weigh: WeighMessage<'w>) -> Room<'w> {
        // If the window is unknown, nothing is known that could be exceeded.
        let window = self.summariser.window.unwrap_or(u64::MAX);
        // Estimates can be slightly too low.
        let margin = window / 20;
        let tokens = window.saturating_sub(self.summariser.max_output + margin);
        Room { tokens, weigh }.without(&self.instructions)
    }

    /// The text of an answer, for the request that merges it.
    fn answer_text(&self, answer: &str) -> String {
        let answer = SummaryAnswer::parse(answer, self.retain);
        let texts = [answer.retain, answer.effective_summary];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        // Escape before cutting, because escaping makes it longer.
        escaped(&texts.join("\n\n"))
    }

    fn merge_request(&self, answers: &[&str], weigh: WeighMessage<'_>) -> Option<Message> {
        let room = self.room(weigh).without(MERGE);
        let part = |text: &str| format!("<{PART}>\n{text}\n</{PART}>\n\n");
        let each = Room {
            tokens: room.tokens / self.asked.len() as u64,
            weigh,
        };
        let each = each.without(&part(""));
        if each.tokens == 0 {
            return None;
        }
        let mut text = MERGE.to_owned();
        for answer in answers {
            text.push_str("\n\n");
            text.push_str(&part(&each.cut(&self.answer_text(answer))));
        }
        text.push_str(&self.instructions);
        Some(Message::user(text))
    }
}

/// The messages themselves, cut until they fit, in a valid form; as text if there are too many.
fn fitted_messages(old: &[&Message], summariser: SummaryModel, room: &Room<'_>) -> Vec<Message> {
    for cut in cuts(old, summariser) {
        let messages = valid(conversation::sendable(old, cut), summariser.dialect);
        if messages.iter().map(room.weigh).sum::<u64>() <= room.tokens {
            return messages;
        }
    }
    Vec::from_iter(fitted_text(old, summariser, room))
}

/// The conversation as text, cut until it fits; none if nobody said anything.
fn fitted_text(old: &[&Message], summariser: SummaryModel, room: &Room<'_>) -> Option<Message> {
    let room = room.without(&framed(""));
    let mut text = String::new();
    for cut in cuts(old, summariser) {
        text = conversation(old.iter().copied(), cut);
        if room.weight(&text) <= room.tokens {
            break;
        }
    }
    // Even the shortest messages can be too many. Then the text as a whole is cut.
    let text = room.cut(&text);
    (!text.trim().is_empty()).then(|| Message::user(framed(&text)))
}

/// The ways to cut a conversation, the least first: outputs shorter and shorter, then all texts.
/// Those that shorten nothing further are left out.
fn cuts(old: &[&Message], summariser: SummaryModel) -> impl Iterator<Item = Cut> {
    let unknown = summariser.window.is_none().then_some(UNKNOWN_WINDOW_LIMIT);
    let most = summariser.output_chars.or(unknown).unwrap_or(usize::MAX);
    let outputs = old.iter().flat_map(|message| message.outputs());
    let longest = outputs.map(|output| output.text().len()).max().unwrap_or(0);
    let mut limits = OUTPUT_LIMITS
        .into_iter()
        .filter(move |limit| *limit <= most);
    let first = limits.next();
    let shorter = limits.filter(move |limit| *limit < longest);
    let of_outputs = first.into_iter().chain(shorter).map(Cut::outputs);
    let parts = old.iter().flat_map(|message| &message.parts);
    let longest = parts.map(conversation::length).max().unwrap_or(0);
    let halves = std::iter::successors(Some(longest / 2), |limit| Some(limit / 2));
    let halves = halves.take_while(|limit| *limit >= SHORTEST / 2);
    of_outputs.chain(halves.map(Cut::all))
}

/// The same messages in a form that the dialect accepts. They begin and end anywhere in the
/// conversation, so they need the same repairs as a window.
fn valid(messages: Vec<Message>, dialect: Dialect) -> Vec<Message> {
    let messages = conversation::without_open_end(messages).into_iter();
    let messages: Vec<Arc<Message>> = messages.map(Arc::new).collect();
    let options = NormaliseOptions {
        habit: OpenCallRepair::Strip,
        ..NormaliseOptions::for_dialect(dialect)
    };
    let normalised = normalise(&messages, options);
    let messages = normalised.entries.into_iter().map(|entry| entry.message);
    messages.map(Arc::unwrap_or_clone).collect()
}

/// The room for texts in one request.
struct Room<'w> {
    tokens: u64,
    weigh: WeighMessage<'w>,
}

impl Room<'_> {
    /// The rest besides `text`.
    fn without(&self, text: &str) -> Self {
        let taken = if text.is_empty() {
            0
        } else {
            self.weight(text)
        };
        Self {
            tokens: self.tokens.saturating_sub(taken),
            weigh: self.weigh,
        }
    }

    fn weight(&self, text: &str) -> u64 {
        (self.weigh)(&Message::user(text))
    }

    /// `text`, cut in its middle as far as necessary.
    fn cut(&self, text: &str) -> String {
        let mut shown = text.to_owned();
        let mut limit = text.chars().count();
        // Halving weighs the text a logarithmic number of times, whatever the measure.
        while self.weight(&shown) > self.tokens && limit > SHORTEST {
            limit /= 2;
            shown = head_and_tail(text, limit);
        }
        shown
    }
}

/// An answer with a note at the end of its summary.
fn with_note(text: String, note: &str) -> String {
    if note.is_empty() {
        return text;
    }
    // Lower-casing ASCII keeps all byte positions.
    let end = text.to_ascii_lowercase().rfind("</summary>");
    let end = end.unwrap_or(text.len());
    let (before, after) = text.split_at_checked(end).unwrap_or((&text, ""));
    format!("{}{note}{after}", before.trim_end())
}

#[cfg(test)]
mod tests;
