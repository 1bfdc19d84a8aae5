//! Splits the input of the summariser into requests that fit its window.
//!
//! A conversation that is too long for its own window is often too long for the summariser too. It
//! is then sent in chunks, cut where no round is split. Each request after the first contains the
//! answer to the previous one, so that the last answer covers everything. All of this is data:
//! [`requests`] decides, [`SummaryRequests::next`] returns one request after another as the answers
//! come in, and [`SummaryRequests::result`] combines the answers.

mod fit;
mod units;

use std::borrow::Borrow;

use trimtab_model::{Dialect, Message, Role};

use super::answer::SummaryAnswer;
use super::prompt::SummaryPrompt;
use super::request::{self, SummaryRequestForm};
use fit::RequestBudget;
pub use fit::WeighMessage;

/// The tag around the previous answer, in requests with the conversation as text.
const PREVIOUS: &str = "previous-summary";
/// The tag around each of several answers that are merged.
const PART: &str = "summary-part";
/// The introduction of a summary, in requests with the messages themselves.
const PREVIOUS_MESSAGE: &str = "[Previous conversation summary]\n\n";
/// The note of the design `turns` about oversized messages.
const OMITTED: &str =
    "\n[Note: Some oversized messages were omitted from this summary for efficiency.]";
/// The instructions to merge two summaries.
const MERGE: &str = "Two summaries of consecutive parts of one conversation follow, the older \
first. Merge them into one that keeps everything either of them says; where they differ, the \
newer one is right.";
/// With less room for the conversation, a request is pointless.
const LEAST: u64 = 512;
/// The maximum of requests. Outputs are cut shorter instead of sending more.
const MOST: usize = 8;
/// The characters of an output if the whole conversation fits one request: the first limit with
/// which it does.
const WIDE_LIMITS: [usize; 5] = [64_000, 24_000, 12_000, 6_000, 3_000];
/// The same if the window is unknown.
const UNKNOWN_WINDOW_LIMIT: usize = 6_000;
/// The characters of an output: the first limit that needs at most [`MOST`] requests.
const OUTPUT_LIMITS: [usize; 3] = [request::OUTPUT_LIMIT, 600, 200];

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

/// The content of one request.
#[derive(Clone, Debug)]
enum RequestStep {
    /// These messages.
    Messages(Vec<Message>),
    /// Messages as text.
    Text(String),
    /// Merge the answers so far.
    Merge,
}

/// The requests for one summary.
#[derive(Clone, Debug)]
pub struct SummaryRequests {
    steps: Vec<RequestStep>,
    instructions: String,
    retain: bool,
    summariser: SummaryModel,
    note: &'static str,
    /// Additional context besides the conversation.
    background: String,
}

/// The requests for a summary of the messages `old`, in the form `form` with `prompt`, within the
/// window of the `summariser`; `weigh` returns the tokens of a message in it.
///
/// Every message is in exactly one request; one that is too large on its own is cut in its middle.
/// There is no request if nothing can be read, or if the window has no room for the conversation
/// besides the instructions and the answer. Then the summary without a model is used.
///
/// ```
/// use trimtab_engine::compaction::summary_requests::{SummaryModel, requests};
/// use trimtab_engine::compaction::prompt::SummaryPrompt;
/// use trimtab_engine::policy::SummaryRequestForm;
/// use trimtab_model::Message;
///
/// let old: Vec<Message> = (0..40).map(|n| Message::user(format!("{n} {}", "x".repeat(400)))).collect();
/// let weigh = |message: &Message| message.text().len().div_ceil(4) as u64;
/// let summariser = SummaryModel { window: Some(3_000), max_output: 500, ..SummaryModel::default() };
/// let requests = requests(&old, SummaryRequestForm::Text, &SummaryPrompt::default(), summariser, &weigh);
/// assert_eq!(requests.len(), 3);
///
/// assert!(requests.next(&[], &weigh).is_some());
/// let second = requests.next(&[Some("<summary>so far</summary>")], &weigh).unwrap();
/// assert!(second.messages[0].text().contains("so far"));
/// ```
pub fn requests<M: Borrow<Message>>(
    old: &[M],
    form: SummaryRequestForm,
    prompt: &SummaryPrompt,
    summariser: SummaryModel,
    weigh: WeighMessage<'_>,
) -> SummaryRequests {
    let mut requests = SummaryRequests {
        steps: Vec::new(),
        instructions: prompt.instructions(),
        retain: prompt.retain.is_some(),
        summariser,
        note: "",
        background: String::new(),
    };
    if let Some(room) = requests.room(weigh).filter(|room| room.budget >= LEAST) {
        match form {
            SummaryRequestForm::Messages => {
                let all = request::without_open_end(old);
                let chunks = best_chunks(old, summariser, &room, |limit, room| {
                    units::in_messages(&all, limit, summariser.dialect, room)
                });
                requests.steps = chunks.into_iter().map(RequestStep::Messages).collect();
            }
            SummaryRequestForm::Text => {
                let all: Vec<&Message> = old.iter().map(Borrow::borrow).collect();
                let chunks = best_chunks(old, summariser, &room, |limit, room| {
                    units::in_text(&all, limit, room)
                });
                requests.steps = chunks.into_iter().map(RequestStep::Text).collect();
            }
            SummaryRequestForm::Turns => requests.turns(old, &room),
        }
    }
    requests
}

impl SummaryRequests {
    /// Adds `background` to each request, before the conversation, or before the instructions if
    /// the messages themselves are sent. The window of the summariser must have room for it.
    #[must_use]
    pub fn with_background(mut self, background: String) -> Self {
        self.background = background;
        self
    }

    /// The number of requests.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// True if there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The request that follows the `answers` so far: one for each earlier request, none for one
    /// that failed. None if there is nothing more to ask: all requests were made, or one failed on
    /// which the rest depends.
    pub fn next(
        &self,
        answers: &[Option<&str>],
        weigh: WeighMessage<'_>,
    ) -> Option<SummaryRequest> {
        let step = self.steps.get(answers.len())?;
        // A failed request ends the chain: the next one would build on its answer.
        let before: Option<Vec<&str>> = answers.iter().copied().collect();
        let before = before?;
        let messages = match step {
            RequestStep::Merge => vec![self.merge_request(&before, weigh)?],
            step => {
                // Batches that are merged later do not build on each other.
                let previous = before.last().filter(|_| !self.merges());
                let previous = previous.map(|answer| self.answer_text(answer));
                self.request_messages(step, previous, weigh)
            }
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
        Some(if self.note.is_empty() {
            text
        } else {
            with_note(&text, self.note)
        })
    }

    fn merges(&self) -> bool {
        matches!(self.steps.last(), Some(RequestStep::Merge))
    }

    /// The room of the conversation besides everything else; none if there is none.
    fn room<'w>(&self, weigh: WeighMessage<'w>) -> Option<RequestBudget<'w>> {
        let Some(window) = self.summariser.window else {
            // Nothing is known that could be exceeded.
            return Some(RequestBudget::new(u64::MAX, weigh));
        };
        let instructions = weigh(&Message::user(self.instructions.as_str()));
        // Estimates can be slightly too low.
        let margin = window / 20;
        let around = instructions + self.summariser.max_output + margin;
        let left = window.checked_sub(around)?;
        Some(RequestBudget::new(left, weigh))
    }

    /// The text of an answer, for the request that builds on it.
    fn answer_text(&self, answer: &str) -> String {
        let answer = SummaryAnswer::parse(answer, self.retain);
        let texts = [answer.retain, answer.effective_summary];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        // Escape before cutting, because escaping makes it longer.
        request::escaped(&texts.join("\n\n"))
    }

    fn request_messages(
        &self,
        step: &RequestStep,
        previous: Option<String>,
        weigh: WeighMessage<'_>,
    ) -> Vec<Message> {
        let room = self.room(weigh).unwrap_or(RequestBudget::new(LEAST, weigh));
        let room = room.share(self.summariser.max_output);
        let previous = previous.map(|text| room.without(&tagged(PREVIOUS, "")).text(&text));
        let mut messages = match step {
            RequestStep::Messages(messages) => messages.clone(),
            RequestStep::Text(text) => {
                let before = previous
                    .map(|text| tagged(PREVIOUS, &text))
                    .unwrap_or_default();
                let background = &self.background;
                let asked = format!("{background}{before}{text}\n\n{}", self.instructions);
                return vec![Message::user(asked)];
            }
            RequestStep::Merge => Vec::new(),
        };
        if let Some(text) = previous {
            let system = messages
                .iter()
                .take_while(|message| message.role == Role::System);
            let at = system.count();
            messages.insert(at, Message::user(format!("{PREVIOUS_MESSAGE}{text}")));
        }
        // Behind the messages: in front, it would change the beginning that the provider may have
        // in its cache.
        if !self.background.is_empty() {
            messages.push(Message::user(self.background.trim_end()));
        }
        messages.push(Message::user(self.instructions.as_str()));
        messages
    }

    fn merge_request(&self, answers: &[&str], weigh: WeighMessage<'_>) -> Option<Message> {
        let parts = u64::try_from(answers.len().max(1)).unwrap_or(1);
        let room = self.room(weigh)?.without(MERGE);
        let each = RequestBudget::new(room.budget / parts, weigh).without(&tagged(PART, ""));
        if each.budget == 0 {
            return None;
        }
        let mut text = MERGE.to_owned();
        for answer in answers {
            text.push_str("\n\n");
            text.push_str(&tagged(PART, &each.text(&self.answer_text(answer))));
        }
        text.push_str(&self.instructions);
        Some(Message::user(text))
    }

    /// User and assistant texts in whole turns, in one batch or in two that are merged; in more if
    /// two do not fit.
    fn turns<M: Borrow<Message>>(&mut self, old: &[M], room: &RequestBudget<'_>) {
        let window = self.summariser.window.unwrap_or(u64::MAX);
        let (batches, omitted) = request::readable_batches(old, window);
        if omitted {
            self.note = OMITTED;
        }
        for batch in &batches {
            let messages = batch.iter().filter_map(|at| old.get(*at));
            let messages: Vec<&Message> = messages.map(Borrow::borrow).collect();
            let texts = units::in_text(&messages, request::OUTPUT_LIMIT, room);
            self.steps.extend(texts.into_iter().map(RequestStep::Text));
        }
        if self.steps.len() > 1 {
            self.steps.push(RequestStep::Merge);
        }
    }
}

/// One chunk if possible, with outputs as long as fit; otherwise chunks that leave room for the
/// previous answer, with outputs as long as the number of requests allows.
fn best_chunks<M: Borrow<Message>, C>(
    old: &[M],
    summariser: SummaryModel,
    room: &RequestBudget<'_>,
    chunked: impl Fn(usize, &RequestBudget<'_>) -> Vec<C>,
) -> Vec<C> {
    let (alone, several) = output_limits(old, summariser);
    for limit in alone {
        let chunks = chunked(limit, room);
        if chunks.len() <= 1 {
            return chunks;
        }
    }
    // From the second request on, each also contains the previous answer.
    let beside = room.beside_previous();
    let mut chunks = Vec::new();
    for limit in several {
        chunks = chunked(limit, &beside);
        if chunks.len() <= MOST {
            break;
        }
    }
    chunks
}

/// The output limits that are tried for one request, and those for several. Limits that shorten no
/// output further are left out.
fn output_limits<M: Borrow<Message>>(
    old: &[M],
    summariser: SummaryModel,
) -> (Vec<usize>, Vec<usize>) {
    let [usual, ..] = OUTPUT_LIMITS;
    let wide: &[usize] = match (summariser.output_chars, summariser.window) {
        (Some(_), _) => &[],
        (None, Some(_)) => &WIDE_LIMITS,
        (None, None) => &[UNKNOWN_WINDOW_LIMIT],
    };
    let least = summariser.output_chars.unwrap_or(usual);
    let outputs = old.iter().flat_map(|message| message.borrow().outputs());
    // A limit that cuts nothing gives the same request again.
    let longest = outputs.map(|output| output.text().len()).max().unwrap_or(0);
    let useful = |limits: Vec<usize>| -> Vec<usize> {
        let shorten = limits.iter().skip(1).filter(|limit| **limit < longest);
        limits.first().into_iter().chain(shorten).copied().collect()
    };
    let alone = wide.iter().copied().chain([least]).collect();
    let several = OUTPUT_LIMITS.map(|limit| limit.min(least)).to_vec();
    (useful(alone), useful(several))
}

/// `text` between tags that nothing in it can close.
fn tagged(tag: &str, text: &str) -> String {
    format!("<{tag}>\n{}\n</{tag}>\n\n", request::escaped(text))
}

/// An answer with a note at the end of its summary.
fn with_note(text: &str, note: &str) -> String {
    // Lower-casing ASCII keeps all byte positions.
    let end = text
        .to_ascii_lowercase()
        .rfind("</summary>")
        .unwrap_or(text.len());
    let (before, after) = text.split_at_checked(end).unwrap_or((text, ""));
    format!("{}{note}{after}", before.trim_end())
}

#[cfg(test)]
mod tests;
