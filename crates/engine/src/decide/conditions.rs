//! The inputs of a decision: the conversation, and everything else that is known about the call.

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Usage};

use crate::budget::DEFAULT_MAX_OUTPUT;
use crate::log::Log;
use crate::normalise::Slot;
use crate::policy::{EstimateBy, Policy, SummaryPlacement};
use crate::trigger::TriggerInputs;
use crate::view::WindowOutputs;
use crate::window::{Projection, Window};

use super::steady::{PriceCliff, TokenRates};

/// The smallest reserve for the answer.
const LEAST_ANSWER: u64 = 256;
/// JSON bytes of a request around a message, a call and an output, without their ids.
const AROUND_MESSAGE: u64 = 34;
const AROUND_CALL: u64 = 84;
const AROUND_OUTPUT: u64 = 22;
/// One byte in this many of a text is escaped in JSON, and takes two.
const ESCAPED: u64 = 14;
/// The same for arguments, which are JSON themselves.
const ESCAPED_ARGUMENTS: u64 = 6;

/// The current conversation, and the call that is decided about.
#[derive(Clone, Copy)]
pub struct ConversationState<'a> {
    /// The original messages.
    pub log: &'a Log,
    /// The log with the plans in force, not yet normalised, from [`Log::front`] on.
    pub slots: &'a [Slot],
    /// The messages that would be sent.
    pub window: &'a Window,
    /// The settings.
    pub policy: &'a Policy,
    /// The source of all that. It finds the oldest outputs without a walk.
    pub projection: &'a Projection,
    /// The number of messages of the log that were sent.
    pub sent: usize,
    /// The length of the log at the last compaction.
    pub compacted_at: Option<usize>,
    /// Archiving outputs before this position would not make them shorter.
    pub archive_from: usize,
    /// What is known about the next call.
    pub call: &'a CallConditions<'a>,
    /// The same without calibration and usage. Several processes may serve one conversation, and
    /// each learns something else; decisions by these conditions are the same in all of them.
    pub uncalibrated: &'a CallConditions<'a>,
}

impl<'a> ConversationState<'a> {
    /// The conversation of a projection, as its window was built last. All messages were sent.
    pub fn new(
        projection: &'a Projection,
        policy: &'a Policy,
        call: &'a CallConditions<'a>,
    ) -> Self {
        let log = projection.log();
        let compacted = projection.journal().newest_compaction();
        // The provider ignores what it has summarised by itself, so no plan begins before that.
        let front = log.front();
        let slots = projection.slots();
        let first = slots.partition_point(|slot| slot.source.position() < front);
        Self {
            log,
            slots: slots.get(first..).unwrap_or_default(),
            window: projection.last_window(),
            policy,
            projection,
            sent: log.len(),
            compacted_at: compacted.map(|plan| plan.at),
            archive_from: 0,
            call,
            uncalibrated: call,
        }
    }

    /// The outputs of the slots.
    pub(super) fn outputs(&self) -> WindowOutputs<'a, Slot> {
        if self.slots.len() == self.projection.slots().len() {
            return self.projection.outputs();
        }
        // The index of the window counts the outputs in front of the first slot as well.
        WindowOutputs::of(self.slots)
    }

    /// The measure of a slot, by its number.
    pub(super) fn measure_of_slot(&self, number: usize) -> Option<Measure> {
        let front = self.projection.slots().len() - self.slots.len();
        self.projection.measure_of_slot(front + number)
    }

    /// True if system messages stay where the client put them when rounds are replaced. Messages
    /// has a field for the system prompt, and rejects a conversation that begins with a system
    /// message.
    pub(super) fn system_stays(&self) -> bool {
        self.projection.dialect() == Dialect::Messages
    }

    /// The estimated tokens of the window, including the tool definitions.
    pub fn prompt_tokens(&self) -> u64 {
        self.call.prompt_tokens(&self.window.measures().total())
    }

    /// The tokens of a prompt with these messages by the estimate of the policy. Our own continues
    /// from the reported usage. The designs count everything with their
    /// heuristic.
    pub(super) fn tokens_by_policy(&self, messages: &Measure) -> u64 {
        let (estimate, call) = (self.policy.estimate, self.call);
        match estimate.tools(&call.tool_definitions) {
            None => call.prompt_tokens(messages),
            Some(tools) => estimate.tokens(messages, call.tokens).saturating_add(tools),
        }
    }

    /// The tokens by which the window and its answer exceed the model's window; none if they fit,
    /// or if the window is unknown.
    pub fn excess(&self) -> Option<u64> {
        let tokens = self
            .prompt_tokens()
            .saturating_add(self.call.answer_reserve());
        let window = self.call.window.unwrap_or(u64::MAX);
        // Four bytes to a token. If a step frees fewer bytes than that, the ladder takes another.
        let excess = tokens
            .saturating_sub(window)
            .max(self.excess_bytes().div_ceil(4));
        (excess > 0).then_some(excess)
    }

    /// The same, if removing something can help: no plan makes a window smaller than its floor.
    pub fn removable_excess(&self) -> Option<u64> {
        self.excess().filter(|_| self.check_hard_floor().is_ok())
    }

    /// The bytes by which the messages exceed the limit of a request.
    pub(super) fn excess_bytes(&self) -> u64 {
        let bytes = self.window.measures().total().sizes().bytes();
        bytes.saturating_sub(self.call.bytes.unwrap_or(u64::MAX))
    }

    /// The inputs of the policy's triggers. They count the newest answer, whether the log has it
    /// yet or not.
    pub fn trigger_inputs(&self) -> TriggerInputs {
        let (policy, call) = (self.policy, self.call);
        let measures = self.window.measures();
        let by = |measure: &Measure| policy.estimate.tokens(measure, call.tokens);
        let coming = call.coming_answer.unwrap_or_default();
        // A summary in the system prompt is not a message, and the designs that put it there do not
        // count it.
        let in_system = matches!(policy.compaction.placement, SummaryPlacement::System { .. });
        let log = if in_system {
            measures.log
        } else {
            measures.log + measures.summary
        };
        let log = log - measures.ignored + coming;
        let total = measures.total() + coming;
        // The design `archive` continues from the last usage, which includes the answer.
        let log_tokens = match (&call.usage, policy.estimate) {
            (Some(reported), EstimateBy::Archive) => {
                // Of the difference, because the design rounds up for each message.
                let since = by(&(total - reported.window - reported.answer));
                reported.usage.total().saturating_add(since)
            }
            _ => by(&log),
        };
        TriggerInputs {
            window: call.window,
            usage: call.usage.map(|reported| reported.usage),
            log_tokens,
            call_tokens: self
                .tokens_by_policy(&total)
                .saturating_add(call.answer_reserve()),
            messages: self.window.spoken() as u64 + u64::from(call.coming_answer.is_some()),
        }
    }
}

/// The usage that was reported for a call, and what it is about.
#[derive(Clone, Copy, Debug)]
pub struct ReportedUsage {
    /// The usage.
    pub usage: Usage,
    /// The window of the call.
    pub window: Measure,
    /// Its answer, as soon as it is known.
    pub answer: Measure,
}

/// What is known about the call besides the conversation.
#[derive(Clone, Copy)]
pub struct CallConditions<'a> {
    /// The model's window, if known.
    pub window: Option<u64>,
    /// The tokens reserved for the answer.
    pub max_output: Option<u64>,
    /// The limit of the messages in bytes.
    pub bytes: Option<u64>,
    /// The tokens of the tool definitions.
    pub tools: u64,
    /// Their measure, for designs that count them in a way of their own.
    pub tool_definitions: Measure,
    /// The cost of the first ref in a window: the definitions of the retrieval tools, if they are
    /// offered with it. 0 if the window already has a ref.
    pub first_ref: u64,
    /// True if the model has the retrieval tools, so that every removal names the call that
    /// retrieves it. Otherwise only the presets' own texts name refs.
    pub can_retrieve: bool,
    /// The last reported usage, unless an edit made it out of date.
    pub usage: Option<ReportedUsage>,
    /// The newest answer, if it is not in the log yet: a client brings it with its next request.
    pub coming_answer: Option<Measure>,
    /// Our estimate, calibrated for this model.
    pub tokens: &'a dyn Fn(&Measure) -> u64,
    /// True if the provider's prompt cache has nothing for the next call.
    pub cold: bool,
    /// True while a tool loop goes on whose signed reasoning an edit would make invalid. A rewrite
    /// that can wait comes after it.
    pub in_bound_loop: bool,
    /// What cached and uncached tokens cost.
    pub rates: TokenRates,
    /// The prompt lengths at which the price rises, in rising order.
    pub cliffs: &'a [PriceCliff],
}

impl<'a> CallConditions<'a> {
    /// A call about which only the estimate of tokens is known.
    pub fn new(tokens: &'a dyn Fn(&Measure) -> u64) -> Self {
        Self {
            window: None,
            max_output: None,
            bytes: None,
            tools: 0,
            tool_definitions: Measure::default(),
            first_ref: 0,
            can_retrieve: false,
            usage: None,
            coming_answer: None,
            tokens,
            cold: false,
            in_bound_loop: false,
            rates: TokenRates::default(),
            cliffs: &[],
        }
    }

    /// The tokens reserved for the answer.
    pub fn answer_reserve(&self) -> u64 {
        let answer = self.max_output.filter(|tokens| *tokens > 0);
        let answer = answer.unwrap_or(DEFAULT_MAX_OUTPUT);
        // A request can reserve more than the whole window. Messages keep at least half of it.
        self.window.map_or(answer, |window| answer.min(window / 2))
    }

    /// The room for messages: the window without tools and the answer's reserve.
    pub fn messages_room(&self) -> u64 {
        let window = self.window.unwrap_or(u64::MAX);
        window
            .saturating_sub(self.tools)
            .saturating_sub(self.answer_reserve())
    }

    /// The tokens of a measure: our estimate, or a quarter of the request bytes if that is more.
    pub fn weigh(&self, measure: &Measure) -> u64 {
        conservative_tokens((self.tokens)(measure), measure)
    }

    /// The smallest reserve for the answer if room is short.
    pub(crate) fn least_answer(&self) -> u64 {
        LEAST_ANSWER.min(self.answer_reserve())
    }

    /// The estimated tokens of a window: the usage of the last call plus what is new since then,
    /// otherwise everything. Includes the tool definitions.
    pub fn prompt_tokens(&self, measure: &Measure) -> u64 {
        let estimate = (self.tokens)(measure);
        match &self.usage {
            Some(ReportedUsage { usage, window, .. }) => {
                // The reported figure already contains the tool definitions, so `tools` is not
                // added here.
                let since = estimate.saturating_sub((self.tokens)(window));
                let by_bytes = request_quarter(measure).saturating_sub(request_quarter(window));
                usage.prompt().saturating_add(since.max(by_bytes))
            }
            None => self.weigh(measure).saturating_add(self.tools),
        }
    }
}

/// The tokens of a measure that was estimated as `tokens`: that, or a quarter of its bytes in a
/// request, whichever is more.
///
/// So the window also fits for a server that counts bytes instead of tokens.
///
/// ```
/// # use trimtab_engine::decide::conservative_tokens;
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
    // `text` contains the arguments, so this cannot be negative.
    let escaped = (text - arguments) / ESCAPED + arguments / ESCAPED_ARGUMENTS;
    (text + escaped + around).div_ceil(4)
}
