//! What a decision is made from.

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Usage};

use crate::budget::{DEFAULT_MAX_OUTPUT, Floor, FloorTooLarge};
use crate::compaction::rebuild::SummaryPlacement;
use crate::log::Log;
use crate::normalise::Slot;
use crate::policy::{EstimateBy, Policy};
use crate::trigger::TriggerInputs;
use crate::window::{Projection, Window};

use super::floor::floor;
use super::rewrite::{PriceCliff, TokenRates};

/// The least that an answer gets when its reserve is lowered.
const LEAST_ANSWER: u64 = 256;
/// Bytes of a request around a message, a call and an output, beside their ids.
const AROUND_MESSAGE: u64 = 34;
const AROUND_CALL: u64 = 84;
const AROUND_OUTPUT: u64 = 22;
/// One byte in so many of a text is escaped in JSON, and takes two.
const ESCAPED: u64 = 14;
/// The same of arguments, which are JSON themselves.
const ESCAPED_ARGUMENTS: u64 = 6;

/// The conversation as it stands.
#[derive(Clone, Copy, Debug)]
pub struct ConversationState<'a> {
    /// The messages as they came.
    pub log: &'a Log,
    /// The log with the plans that hold, not yet normalised.
    pub slots: &'a [Slot],
    /// What would be sent.
    pub window: &'a Window,
    /// What is wanted.
    pub policy: &'a Policy,
    /// All of that, where the oldest outputs are found without walking it.
    pub projection: &'a Projection,
    /// How many messages of the log have been sent.
    pub sent: usize,
    /// How long the log was when it was compacted last.
    pub compacted_at: Option<usize>,
    /// Outputs before this position would not become shorter by being archived.
    pub archive_from: usize,
    /// How many messages of the log stand before the first answer. What the user says among them
    /// is the task: see [`Log::opening`].
    pub opening: usize,
    /// What the provider speaks.
    pub dialect: Dialect,
}

impl ConversationState<'_> {
    /// True if system messages stay where the client put them when rounds are replaced. Messages
    /// has a field for the system prompt, and refuses a conversation that begins with one.
    pub(super) fn system_stays(&self) -> bool {
        self.dialect == Dialect::Messages
    }
}

/// What is known beside the conversation.
#[derive(Clone, Copy)]
pub struct CallConditions<'a> {
    /// The model's window, where it is known.
    pub window: Option<u64>,
    /// What is reserved for the answer.
    pub max_output: Option<u64>,
    /// The most bytes that the messages may take.
    pub bytes: Option<u64>,
    /// The tokens of the tool definitions.
    pub tools: u64,
    /// The tokens that the first ref in a window brings along: the definitions of the retrieval
    /// tools, where they are offered with it. 0 if the window shows a ref.
    pub first_ref: u64,
    /// True if whatever goes is to be named with the call that gets it back: the model has the
    /// retrieval tools. Else only the presets' own texts name refs.
    pub can_retrieve: bool,
    /// What the provider reported last, and the measure of the window it was for, unless an
    /// edit has made it stale.
    pub usage: Option<(Usage, Measure)>,
    /// Our estimate, corrected by what was learned of this model.
    pub tokens: &'a dyn Fn(&Measure) -> u64,
    /// True if the next call finds nothing in the provider's prompt cache.
    pub cold: bool,
    /// What cached and uncached tokens cost.
    pub rates: TokenRates,
    /// Where the price rises with the length of the prompt, by rising length.
    pub cliffs: &'a [PriceCliff],
}

impl CallConditions<'_> {
    /// What is reserved for the answer.
    pub fn answer_reserve(&self) -> u64 {
        let answer = self.max_output.filter(|tokens| *tokens > 0);
        let answer = answer.unwrap_or(DEFAULT_MAX_OUTPUT);
        // Where nobody said how long it may be, half a small window is enough.
        self.window.map_or(answer, |window| answer.min(window / 2))
    }

    /// The room for messages: the window without tools and the answer's reserve.
    pub fn messages_room(&self) -> u64 {
        let window = self.window.unwrap_or(u64::MAX);
        window
            .saturating_sub(self.tools)
            .saturating_sub(self.answer_reserve())
    }

    /// The tokens of what was measured: our estimate, or more where bytes say so.
    pub fn weigh(&self, measure: &Measure) -> u64 {
        conservative_tokens((self.tokens)(measure), measure)
    }

    /// The least that is reserved for the answer when room is short.
    pub(crate) fn least_answer(&self) -> u64 {
        LEAST_ANSWER.min(self.answer_reserve())
    }

    /// The tokens of a window by our estimate: what was reported for the last call and what
    /// came since, else all of it. Tool definitions are in it.
    pub fn prompt_tokens(&self, measure: &Measure) -> u64 {
        let estimate = (self.tokens)(measure);
        match &self.usage {
            Some((usage, then)) => {
                let since = estimate.saturating_sub((self.tokens)(then));
                let by_bytes = request_quarter(measure).saturating_sub(request_quarter(then));
                usage.prompt().saturating_add(since.max(by_bytes))
            }
            None => self.weigh(measure).saturating_add(self.tools),
        }
    }

    /// By how many tokens a window and its answer are more than the model's window; none if
    /// they fit, or if nobody knows.
    pub fn excess(&self, window: &Window, answer: u64) -> Option<u64> {
        let total = window.measures().total();
        let tokens = self.prompt_tokens(&total).saturating_add(answer);
        let over = self
            .window
            .map_or(0, |window| tokens.saturating_sub(window));
        let over_bytes = self.excess_bytes(window).unwrap_or(0);
        // Four bytes make a token at least: enough to get below the limit by bytes.
        let excess = over.max(over_bytes.div_ceil(4));
        (excess > 0).then_some(excess)
    }

    /// By how many bytes the messages are more than a request may have.
    pub(crate) fn excess_bytes(&self, window: &Window) -> Option<u64> {
        let bytes = window.measures().total().sizes().bytes();
        self.bytes
            .map(|limit| bytes.saturating_sub(limit))
            .filter(|over| *over > 0)
    }

    /// An error that names what is too large if the floor alone is more than the window.
    pub fn check_floor(&self, conversation: &ConversationState<'_>) -> Result<(), FloorTooLarge> {
        self.floor(conversation)
            .check(self.window.unwrap_or(u64::MAX))
    }

    /// The same for what cannot even be shown shorter: the outputs of the newest round can.
    pub fn check_hard_floor(
        &self,
        conversation: &ConversationState<'_>,
    ) -> Result<(), FloorTooLarge> {
        let floor = Floor {
            open_calls: 0,
            ..self.floor(conversation)
        };
        floor.check(self.window.unwrap_or(u64::MAX))
    }

    fn floor(&self, conversation: &ConversationState<'_>) -> Floor {
        let tokens = |measure: &Measure| self.weigh(measure);
        let fixed = (self.tools, self.least_answer());
        floor(conversation.window, conversation.opening, fixed, tokens)
    }

    /// What the triggers of the policy are judged on.
    pub fn trigger_inputs(&self, conversation: &ConversationState<'_>) -> TriggerInputs {
        let policy = conversation.policy;
        let measures = conversation.window.measures();
        let by = |measure: &Measure| policy.estimate.tokens(measure, self.tokens);
        let in_system = matches!(policy.compaction.placement, SummaryPlacement::System { .. });
        let log = if in_system {
            measures.log
        } else {
            measures.log + measures.summary
        };
        let total = measures.total();
        let call = match policy.estimate {
            EstimateBy::Ours => self.prompt_tokens(&total),
            _ => by(&total).saturating_add(self.tools),
        };
        TriggerInputs {
            window: self.window,
            usage: self.usage.map(|(usage, _)| usage),
            log_tokens: self.log_tokens(policy, &log, &total),
            call_tokens: call.saturating_add(self.answer_reserve()),
            messages: conversation.window.spoken() as u64,
        }
    }

    /// The tokens of the log: the design `archive` counts on from the last usage.
    fn log_tokens(&self, policy: &Policy, log: &Measure, total: &Measure) -> u64 {
        let by = |measure: &Measure| policy.estimate.tokens(measure, self.tokens);
        match (&self.usage, policy.estimate) {
            (Some((usage, then)), EstimateBy::Archive) => {
                let since = by(total).saturating_sub(by(then));
                usage.total().saturating_add(since)
            }
            _ => by(log),
        }
    }
}

/// The tokens of a measure that was estimated at `tokens`: that, or a quarter of the bytes that
/// it takes in a request, whichever is more.
///
/// Whoever counts bytes instead of tokens should find that the window fits as well.
///
/// ```
/// # use trimtab_engine::planner::conservative_tokens;
/// # use trimtab_model::{Message, estimate::Measure};
/// let measure = Measure::of(&Message::user("word ".repeat(1_000)));
/// assert!(conservative_tokens(measure.tokens(), &measure) > 5_000 / 4);
/// ```
pub fn conservative_tokens(tokens: u64, measure: &Measure) -> u64 {
    tokens.max(request_quarter(measure))
}

/// A quarter of the bytes that a measure takes in a request.
fn request_quarter(measure: &Measure) -> u64 {
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
    (text + escaped + around).div_ceil(4)
}
