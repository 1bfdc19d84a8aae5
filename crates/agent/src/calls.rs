//! Executes the calls of an answer.
//!
//! It runs between two model calls of a turn: each output is admitted to the session, which stores
//! it and decides how much of it the model sees.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio::time::timeout;
use trimtab_engine::view::tools::is_retrieval;
use trimtab_model::{Call, Message, Output, Part, Role};

use crate::tools::ToolOutcome;
use crate::{Agent, AgentError, AgentEvent};

impl Agent {
    /// Executes calls and admits their outputs in the model's order. Adjacent calls that only read
    /// run in parallel. False if the user interrupted.
    pub(crate) async fn carry_out(&mut self, calls: &[Call]) -> Result<bool, AgentError> {
        let reads = |call: &Call| {
            let tool = self.tools.get(&call.name);
            tool.is_some_and(|tool| tool.only_reads())
        };
        let batches: Vec<&[Call]> = calls
            .chunk_by(|one, next| reads(one) && reads(next))
            .collect();
        for batch in batches {
            for call in batch {
                self.event_sender.send(AgentEvent::Call(call.clone()));
            }
            let Some(outcomes) = self.outcomes(batch).await else {
                return Ok(false);
            };
            // Admit in the order of the calls, not of their completion: the window must be
            // reproducible.
            for (call, outcome) in batch.iter().zip(outcomes) {
                self.session.admit(output(call, outcome))?;
            }
            self.tell_session();
            self.tell_outputs(batch)?;
        }
        Ok(true)
    }

    /// The outcomes of some calls in their order; none if the user interrupted.
    async fn outcomes(&self, calls: &[Call]) -> Option<Vec<ToolOutcome>> {
        let reads = calls.iter().filter(|call| is_retrieval(&call.name));
        // The calls of one batch share the room that is left in the window.
        let limits = self.session.retrieval_limits(reads.count());
        self.answer_room.set(limits);
        // Dropping the set ends the calls that are still running.
        let mut running = JoinSet::new();
        for (at, call) in calls.iter().cloned().enumerate() {
            let (tools, workspace) = (self.tools.clone(), self.settings.workspace.clone());
            let time = self.settings.tool_time;
            // A task per call, so that a panic in a tool does not end the agent.
            running.spawn(async move {
                let outcome = timeout(time, tools.call(&call, &workspace)).await;
                (
                    at,
                    outcome.unwrap_or_else(|_| hung_outcome(&call, time.as_secs())),
                )
            });
        }
        let mut outcomes: Vec<Option<ToolOutcome>> = vec![None; calls.len()];
        loop {
            let ended = tokio::select! {
                biased;
                () = self.interrupt.interrupted() => {
                    // Wait until nothing runs any more before the user is told.
                    running.shutdown().await;
                    return None;
                }
                ended = running.join_next() => ended,
            };
            match ended {
                Some(Ok((at, outcome))) => {
                    if let Some(place) = outcomes.get_mut(at) {
                        *place = Some(outcome);
                    }
                }
                // The tool panicked. Its place stays empty.
                Some(Err(_)) => {}
                None => break,
            }
        }
        let broken =
            || ToolOutcome::error("error: the tool broke down; this is a fault in the tool");
        let outcomes = outcomes.into_iter();
        Some(
            outcomes
                .map(|outcome| outcome.unwrap_or_else(broken))
                .collect(),
        )
    }

    /// Reports the views of the outputs, as the model will see them.
    fn tell_outputs(&mut self, calls: &[Call]) -> Result<(), AgentError> {
        let window = self.session.window()?;
        let newest: Vec<Arc<Message>> = window
            .messages()
            .rev()
            .take_while(|message| message.role == Role::Tool)
            .map(Arc::clone)
            .collect();
        for call in calls {
            let outputs = newest.iter().flat_map(|message| message.outputs());
            for output in outputs.filter(|output| output.call_id == call.id) {
                self.event_sender.send(AgentEvent::Output {
                    tool: call.name.clone(),
                    output: output.clone(),
                });
            }
        }
        Ok(())
    }
}

fn hung_outcome(call: &Call, seconds: u64) -> ToolOutcome {
    ToolOutcome::error(format!(
        "error: `{}` did not end within {seconds} s and was stopped",
        call.name
    ))
}

fn output(call: &Call, outcome: ToolOutcome) -> Message {
    let output = Output {
        tool: Some(call.name.clone()),
        is_error: outcome.is_error,
        ..Output::new(&call.id, outcome.text)
    };
    Message::new(Role::Tool, vec![Part::Output(output)])
}
