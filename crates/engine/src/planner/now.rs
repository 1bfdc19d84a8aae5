//! What a decision is made from.

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Usage};

use crate::budget::{DEFAULT_MAX_OUTPUT, Floor, FloorTooLarge};
use crate::compaction::rebuild::Placement;
use crate::log::Log;
use crate::normalise::Slot;
use crate::policy::{EstimateBy, Policy};
use crate::trigger::Situation;
use crate::window::Window;

/// The least that an answer gets when its reserve is lowered.
const LEAST_ANSWER: u64 = 256;

/// The conversation as it stands.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The messages as they came.
    pub log: &'a Log,
    /// The log with the plans that hold, not yet normalised.
    pub slots: &'a [Slot],
    /// What would be sent.
    pub window: &'a Window,
    /// How many messages of the log have been sent.
    pub sent: usize,
    /// How long the log was when it was compacted last.
    pub compacted_at: Option<usize>,
    /// What the provider speaks.
    pub dialect: Dialect,
}

impl State<'_> {
    /// True if system messages stay where the client put them when rounds are replaced. Messages
    /// has a field for the system prompt, and refuses a conversation that begins with one.
    pub(super) fn system_stays(&self) -> bool {
        self.dialect == Dialect::Messages
    }
}

/// What is known beside the conversation.
#[derive(Clone, Copy)]
pub struct Now<'a> {
    /// The model's window, where it is known.
    pub window: Option<u64>,
    /// What is reserved for the answer.
    pub max_output: Option<u64>,
    /// The most bytes that the messages may take.
    pub bytes: Option<u64>,
    /// The tokens of the tool definitions.
    pub tools: u64,
    /// How many messages of the log stand before the first answer. What the user says among them
    /// is the task.
    pub opening: usize,
    /// What the provider reported last, and the measure of the window it was for, unless an
    /// edit has made it stale.
    pub usage: Option<(Usage, Measure)>,
    /// Our estimate, corrected by what was learned of this model.
    pub tokens: &'a dyn Fn(&Measure) -> u64,
}

impl Now<'_> {
    /// What is reserved for the answer.
    pub fn answer(&self) -> u64 {
        let answer = self.max_output.filter(|tokens| *tokens > 0);
        let answer = answer.unwrap_or(DEFAULT_MAX_OUTPUT);
        // Where nobody said how long it may be, half a small window is enough.
        self.window.map_or(answer, |window| answer.min(window / 2))
    }

    /// The least that is reserved for the answer when room is short.
    pub(crate) fn least_answer(&self) -> u64 {
        LEAST_ANSWER.min(self.answer())
    }

    /// The tokens of a window by our estimate: what was reported for the last call and what
    /// came since, else all of it. Tool definitions are in it.
    pub fn prompt_tokens(&self, measure: &Measure) -> u64 {
        let estimate = (self.tokens)(measure);
        match &self.usage {
            Some((usage, then)) => {
                let since = estimate.saturating_sub((self.tokens)(then));
                let by_bytes = quarter(measure).saturating_sub(quarter(then));
                usage.prompt().saturating_add(since.max(by_bytes))
            }
            None => enough(estimate, measure).saturating_add(self.tools),
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
    pub fn check_floor(&self, window: &Window) -> Result<(), FloorTooLarge> {
        self.floor(window).check(self.window.unwrap_or(u64::MAX))
    }

    /// The same for what cannot even be shown shorter: the outputs of the newest round can.
    pub fn check_hard_floor(&self, window: &Window) -> Result<(), FloorTooLarge> {
        let floor = Floor {
            open_calls: 0,
            ..self.floor(window)
        };
        floor.check(self.window.unwrap_or(u64::MAX))
    }

    fn floor(&self, window: &Window) -> Floor {
        let anew = Self {
            usage: None,
            tools: 0,
            ..*self
        };
        let tokens = |measure: &Measure| anew.prompt_tokens(measure);
        let fixed = (self.tools, self.least_answer());
        Floor::of(window, self.opening, fixed, tokens)
    }

    /// What the triggers of `policy` are judged on.
    pub fn situation(&self, state: &State<'_>, policy: &Policy) -> Situation {
        let measures = state.window.measures();
        let by = |measure: &Measure| policy.estimate.tokens(measure, self.tokens);
        let in_system = matches!(policy.compaction.placement, Placement::System { .. });
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
        Situation {
            window: self.window,
            usage: self.usage.map(|(usage, _)| usage),
            log_tokens: self.log_tokens(policy, &log, &total),
            call_tokens: call.saturating_add(self.answer()),
            messages: state.window.spoken() as u64,
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

/// An estimate, or a quarter of the bytes, which is what many a counter says: whichever is more,
/// fits.
pub fn enough(tokens: u64, measure: &Measure) -> u64 {
    tokens.max(quarter(measure))
}

/// A quarter of the bytes of everything that is said.
fn quarter(measure: &Measure) -> u64 {
    let sizes = measure.sizes();
    let said = [sizes.text, sizes.reasoning, sizes.names, sizes.arguments];
    let bytes: u64 = said.iter().map(|length| u64::from(length.bytes)).sum();
    bytes.div_ceil(4)
}
