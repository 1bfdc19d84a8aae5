//! What an agent tells while it works.

use std::time::Duration;

use tokio::sync::mpsc;
use trimtab::session;
use trimtab_model::{Call, Output, Usage};

use crate::turn::TurnEnd;

/// Something that happens in a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// More text of the answer.
    Text(String),
    /// More of what the model thinks.
    Reasoning(String),
    /// A call of the model is about to be carried out.
    Call(Call),
    /// A call was carried out.
    Output {
        /// The tool.
        tool: String,
        /// What the model sees of it, with the ref of the whole.
        output: Output,
    },
    /// What the provider reported for a call of the model.
    Usage(Usage),
    /// The model could not be asked, and is asked again after a while.
    Retry {
        /// Which attempt failed, from 1.
        attempt: u32,
        /// How long until the next.
        wait: Duration,
        /// Why it failed.
        why: String,
    },
    /// The answer broke off. What was said stays, and the model is asked to go on.
    BrokeOff {
        /// Why.
        why: String,
    },
    /// A summary is being written.
    Summarising {
        /// True if the agent goes on meanwhile.
        background: bool,
        /// Tokens of the window, by estimate.
        tokens: u64,
        /// Messages of the window.
        messages: usize,
    },
    /// The session did something: it trimmed, compacted, gave a warning.
    Session(session::Event),
    /// The turn has come to its end.
    TurnEnded(TurnEnd),
}

/// The events of an agent, in order.
pub type Events = mpsc::UnboundedReceiver<Event>;

/// Where an agent puts its events.
#[derive(Clone, Debug)]
pub(crate) struct Teller(mpsc::UnboundedSender<Event>);

impl Teller {
    pub(crate) fn new() -> (Self, Events) {
        let (sender, events) = mpsc::unbounded_channel();
        (Self(sender), events)
    }

    pub(crate) fn tell(&self, event: Event) {
        // An agent that nobody watches works all the same.
        let _ = self.0.send(event);
    }
}
