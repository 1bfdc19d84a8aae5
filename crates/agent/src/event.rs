//! Events that an agent reports while it works.

use std::time::Duration;

use tokio::sync::mpsc;
use trimtab::session;
use trimtab_model::{Call, Output, Usage};

use crate::turn::TurnEnd;

/// An event of a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// More text of the answer.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// A call is about to run.
    Call(Call),
    /// A call has ended.
    Output {
        /// The tool.
        tool: String,
        /// The view of the output, with the ref of the full output.
        output: Output,
    },
    /// The usage that the provider reported for a model call.
    Usage(Usage),
    /// A model call failed and is repeated after a delay.
    Retry {
        /// The number of the failed attempt, from 1.
        attempt: u32,
        /// The delay before the next attempt.
        wait: Duration,
        /// The reason.
        why: String,
    },
    /// The answer was cut off. The partial answer stays, and the model is asked to continue.
    BrokeOff {
        /// The reason.
        why: String,
    },
    /// A summary is being written.
    Summarising {
        /// True if the agent continues meanwhile.
        background: bool,
        /// Estimated tokens of the window.
        tokens: u64,
        /// Number of messages in the window.
        messages: usize,
    },
    /// The session trimmed, compacted, or issued a warning.
    Session(session::SessionEvent),
    /// The turn has ended.
    TurnEnded(TurnEnd),
}

/// The events of an agent, in order.
pub type AgentEvents = mpsc::UnboundedReceiver<AgentEvent>;

/// The sending end of an agent's events.
#[derive(Clone, Debug)]
pub(crate) struct EventSender(mpsc::UnboundedSender<AgentEvent>);

impl EventSender {
    pub(crate) fn new() -> (Self, AgentEvents) {
        let (sender, events) = mpsc::unbounded_channel();
        (Self(sender), events)
    }

    pub(crate) fn send(&self, event: AgentEvent) {
        // The agent works even if nobody listens.
        let _ = self.0.send(event);
    }
}
