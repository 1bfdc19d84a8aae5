//! Admits messages to a conversation: those of the client, and rounds that the client does not see.

use trimtab::session::SessionError;
use trimtab_engine::view::tools;
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, Output, Part, Role, Treatment, work};
use trimtab_wire::scan::BodyScan;

use super::{Branch, BranchError};
use crate::conversation::hidden_rounds::{self, PendingOwnCalls};
use crate::conversation::message_map;
use crate::prefix_cache::fingerprint::FingerprintChain;

impl Branch {
    /// Admits the messages of the body that are new.
    pub(crate) fn admit(
        &mut self,
        scan: &BodyScan<'_>,
        chain: &FingerprintChain,
    ) -> Result<(), BranchError> {
        self.body_bytes = scan.body().len();
        let known = self.message_map.fingerprints.len();
        let summarised = scan.newest_boundary(known).unwrap_or_default();
        for (at, message) in (known..).zip(scan.messages(known)) {
            let unread = || BranchError::Mismatch(format!("message {at} cannot be read"));
            let fingerprint = chain.get(at).ok_or_else(unread)?;
            let mut message = message.ok_or_else(unread)?;
            // Fields of a body must not decide whether the model sees a message, or make it one of
            // ours.
            (message.meta.agent_visible, message.meta.kind) = (None, None);
            message_map::mark(&mut message, fingerprint);
            let (mut pending, mut came) = (None, None);
            if message.role == Role::Assistant {
                let logged = self.session.projection().log().len();
                let kept = std::mem::take(&mut self.pending_calls);
                pending = hidden_rounds::calls_in_message(kept, &message, logged);
                let said = self.said_in_hidden();
                // The log then holds another message than the one that came, so the client's side
                // is measured here.
                if pending.is_some() || !said.is_empty() {
                    came = Some(Measure::of(&message));
                    message =
                        hidden_rounds::restore_provider_message(message, &said, pending.as_ref());
                }
            }
            self.received.count_reasoning(&message);
            let place = if at < summarised {
                self.session.admit_summarised(message)?
            } else {
                self.session.admit(message)?
            };
            let projection = self.session.projection();
            let admitted = || projection.measure(place).copied().unwrap_or_default();
            if let Some(message) = projection.log().get(place) {
                self.received.add(message, came.unwrap_or_else(admitted));
                self.message_map
                    .add_client_message(fingerprint, message, place);
            }
            if let Some(pending) = pending {
                // The calls are in the log by now. A call without its output would be invalid, so
                // this must not stop half-way.
                work::without_cancel(|| self.admit_outputs(pending.outputs))?;
            }
        }
        if std::mem::take(&mut self.starts_over) && self.received.reasoning > 0 {
            // These answers followed other windows, and providers bind reasoning to its window.
            self.session.front_changes()?;
        }
        Ok(())
    }

    /// The visible parts of each hidden round after the client's last message.
    fn said_in_hidden(&self) -> Vec<Vec<Part>> {
        let last = self
            .message_map
            .last_log_position()
            .map_or(0, |place| place + 1);
        let log = self.session.projection().log().messages();
        let behind = log.get(last..).unwrap_or_default().iter();
        behind
            .filter(|message| message.role == Role::Assistant)
            .map(|message| hidden_rounds::visible_parts(message, tools::is_retrieval))
            .collect()
    }

    /// How surely `message` is the answer that this branch waits for. Branches that differ only in
    /// their hidden rounds are told apart by this.
    pub(crate) fn awaits(&self, message: &Message) -> (bool, usize) {
        let logged = self.session.projection().log().len();
        let mut pending = self.pending_calls.iter();
        let has_our_calls = pending.any(|pending| pending.belongs_to(message, logged));
        let repeated = hidden_rounds::repeated_parts(message, &self.said_in_hidden());
        (has_our_calls, repeated)
    }

    /// Admits a round that the client does not see.
    pub(crate) fn admit_hidden(
        &mut self,
        answer: Message,
        outputs: Vec<Output>,
    ) -> Result<(), BranchError> {
        self.received.count_reasoning(&answer);
        self.session.admit(answer)?;
        self.admit_outputs(outputs)
    }

    fn admit_outputs(&mut self, outputs: Vec<Output>) -> Result<(), BranchError> {
        for output in outputs {
            let message = Message::new(Role::Tool, vec![Part::Output(output)]);
            self.session.admit(message)?;
        }
        Ok(())
    }

    /// Stores calls of our tools until the client sends its outputs.
    pub(crate) fn keep_pending_calls(
        &mut self,
        mut pending: PendingOwnCalls,
    ) -> Result<(), BranchError> {
        // The answer itself is not in the log yet: the client brings it with its next request.
        pending.at = self.session.projection().log().len();
        let kept = hidden_rounds::keep(self.session.store().as_ref(), self.session.id(), &pending);
        // Copies of a request have answers of their own, and the client continues any of them.
        self.pending_calls.retain(|other| other.at == pending.at);
        if self.pending_calls.len() >= hidden_rounds::MOST_PENDING {
            self.pending_calls.remove(0);
        }
        self.pending_calls.push(pending);
        Ok(kept.map_err(SessionError::from)?)
    }
}

/// The client's messages so far, as they came.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReceivedMessages {
    /// Their size.
    pub(super) total: Measure,
    /// The size of the system messages among them.
    system: Measure,
    /// The size of those that the provider ignores, because a summary of its own follows.
    ignored: Measure,
    /// The number of messages with reasoning, including rounds that the client does not see.
    pub(super) reasoning: usize,
}

impl ReceivedMessages {
    /// Adds a message of the client.
    pub(super) fn add(&mut self, message: &Message, measure: Measure) {
        if message.has_part_with(Treatment::Boundary) {
            self.ignored = self.total - self.system;
        }
        if message.role == Role::System {
            self.system += measure;
        }
        self.total += measure;
    }

    pub(super) fn count_reasoning(&mut self, message: &Message) {
        let mut parts = message.parts.iter();
        self.reasoning += usize::from(parts.any(|part| matches!(part, Part::Reasoning(_))));
    }

    /// The size that the provider reads.
    pub(super) fn read_by_provider(&self) -> Measure {
        self.total - self.ignored
    }
}
