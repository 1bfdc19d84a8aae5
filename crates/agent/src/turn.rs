//! One turn: calls the model and executes its calls until it answers.
//!
//! This is the main loop of the agent. Before each model call the session makes the window fit. The
//! loop then sends it, streams the reply, handles failures, and runs the tools that the model
//! calls.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Instant;

use trimtab::session::{Moment, ReadyWindow, RecoveryOutcome};
use trimtab_model::{Message, MessageKind, Part, Usage};

use crate::model::{AnswerEnding, ModelAnswer, ModelError, ModelRequest, ReplyPiece};
use crate::{Agent, AgentError, AgentEvent};

/// How often a cut-off answer is continued, per call.
const RESUMES: u32 = 3;

/// The note to a model whose answer was cut off.
const GO_ON: &str = "[the connection broke off here: go on exactly where you stopped, without \
                     repeating anything]";

/// The note that the user interrupted a turn.
const ABORTED: &str = "<turn-aborted>\nThe user interrupted the previous turn. Calls that were \
                       running may have been carried out in part: check before you go \
                       on.\n</turn-aborted>";

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The model answered.
    Answered,
    /// The answer reached the output limit.
    CutOff,
    /// The user interrupted.
    Interrupted,
    /// The turn reached the maximum number of rounds.
    OutOfRounds,
}

/// The result of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnResult {
    /// How it ended.
    pub end: TurnEnd,
    /// The answer, or the partial answer if it was interrupted.
    pub text: String,
    /// The number of model calls.
    pub rounds: u32,
    /// The total usage.
    pub usage: Usage,
}

/// The result of one request.
enum ModelCallOutcome {
    /// An answer.
    Answer(Box<ModelAnswer>),
    /// The user interrupted; contains the partial answer.
    Interrupted(String),
    /// It failed.
    Failed(FailedModelCall),
}

/// A failed request.
struct FailedModelCall {
    error: ModelError,
    /// The partial answer.
    text: String,
    /// True if anything was received, even reasoning. The client then does not retry by itself.
    delivered: bool,
}

/// What was tried after failures of one call of the model.
#[derive(Default)]
struct Attempts {
    /// How often a cut-off answer was continued.
    resumes: u32,
    /// True once the reasoning was removed because the model refused it.
    without_reasoning: bool,
}

impl Agent {
    /// Admits a user's message and works until the model answers.
    ///
    /// An error ends the turn and leaves the session valid for the next turn. So does dropping the
    /// future.
    pub async fn turn(&mut self, said: impl Into<String>) -> Result<TurnResult, AgentError> {
        self.turn_with(Message::user(said)).await
    }

    /// Like [`turn`](Self::turn), with a message that may contain more than text.
    pub async fn turn_with(&mut self, message: Message) -> Result<TurnResult, AgentError> {
        // Providers reject an open call before a user message.
        self.close_round("the session ended before this call was answered")?;
        self.session.admit(message)?;
        self.go_on().await
    }

    /// Continues an unfinished turn, after an error or a restart.
    pub async fn go_on(&mut self) -> Result<TurnResult, AgentError> {
        self.interrupt.clear();
        self.close_round("the session ended before this call was answered")?;
        let mut turn = TurnResult {
            end: TurnEnd::OutOfRounds,
            text: String::new(),
            rounds: 0,
            usage: Usage::default(),
        };
        // Events are forwarded even if the turn failed: they say what the session did before.
        let worked = self.work(&mut turn).await;
        self.tell_session();
        worked?;
        self.event_sender.send(AgentEvent::TurnEnded(turn.end));
        Ok(turn)
    }

    async fn work(&mut self, turn: &mut TurnResult) -> Result<(), AgentError> {
        while turn.rounds < self.settings.max_rounds {
            turn.rounds += 1;
            let Some(answer) = self.ask(turn).await? else {
                return self.abort(turn);
            };
            let calls: Vec<_> = answer.message.calls().cloned().collect();
            turn.text = answer.message.text().into_owned();
            // Admit the answer before its calls run, so that a crash cannot lose a call with
            // effects.
            self.session.admit(answer.message)?;
            self.checkpoint(Moment::AfterAnswer).await?;
            if calls.is_empty() {
                turn.end = match answer.ending {
                    AnswerEnding::CutOff => TurnEnd::CutOff,
                    _ => TurnEnd::Answered,
                };
                self.checkpoint(Moment::BeforeFinal).await?;
                return self.checkpoint(Moment::AfterTurn).await;
            }
            if !self.carry_out(&calls).await? {
                return self.abort(turn);
            }
            self.checkpoint(Moment::AfterOutputs).await?;
        }
        self.checkpoint(Moment::AfterTurn).await
    }

    /// Calls the model until it answers. None if the user interrupted.
    async fn ask(&mut self, turn: &mut TurnResult) -> Result<Option<ModelAnswer>, AgentError> {
        let mut attempts = Attempts::default();
        self.session.begin_call();
        loop {
            // The session needs the idle time to know whether the prompt cache is still warm.
            if let Some(asked) = self.last_call.replace(Instant::now()) {
                self.session.idle(asked.elapsed());
            }
            self.checkpoint(Moment::BeforeCall).await?;
            if self.interrupt.is_set() {
                return Ok(None);
            }
            match self.call_model().await? {
                ModelCallOutcome::Answer(answer) => {
                    self.learn(turn, &answer)?;
                    return Ok(Some(*answer));
                }
                ModelCallOutcome::Interrupted(said) => {
                    turn.text.clone_from(&said);
                    self.keep_said(said)?;
                    return Ok(None);
                }
                ModelCallOutcome::Failed(failed) => {
                    if !self.recover(&failed, &mut attempts).await? {
                        return Err(failed.error.into());
                    }
                }
            }
        }
    }

    /// Handles a failure. True to call the model again.
    async fn recover(
        &mut self,
        failed: &FailedModelCall,
        attempts: &mut Attempts,
    ) -> Result<bool, AgentError> {
        self.keep_said(failed.text.clone())?;
        if failed.error.is_stale_reasoning() && !attempts.without_reasoning {
            attempts.without_reasoning = true;
            self.session.reasoning_was_refused()?;
            self.tell_session();
            return Ok(true);
        }
        if let ModelError::Overflow { verdict, .. } = &failed.error {
            let recovered = self.session.recover(verdict)?;
            self.tell_session();
            return match recovered {
                RecoveryOutcome::Retry => Ok(true),
                RecoveryOutcome::Summarise(pending) => {
                    self.summarise(pending).await?;
                    Ok(true)
                }
                RecoveryOutcome::GiveUp => Ok(false),
            };
        }
        // The client has already retried failures before the first byte. Only a cut-off answer is
        // continued.
        if !failed.error.is_passing() || !failed.delivered || attempts.resumes >= RESUMES {
            return Ok(false);
        }
        attempts.resumes += 1;
        let why = failed.error.without_hint();
        self.event_sender.send(AgentEvent::BrokeOff { why });
        // Without any text there is nothing to continue; the same request is simply sent again.
        if !failed.text.trim().is_empty() {
            let note = Message::user(GO_ON).with_kind(MessageKind::Note);
            self.session.admit(note)?;
        }
        Ok(true)
    }

    /// Sends the window and receives the reply.
    async fn call_model(&mut self) -> Result<ModelCallOutcome, AgentError> {
        let request = self.request()?;
        let mut reply = self.settings.model.client.call(request);
        let (mut said, mut begun) = (String::new(), false);
        loop {
            // Check for an interrupt first: a fast stream must not starve it.
            let piece = tokio::select! {
                biased;
                () = self.interrupt.interrupted() => return Ok(ModelCallOutcome::Interrupted(said)),
                piece = reply.next() => piece,
            };
            let error = match piece {
                Some(Ok(ReplyPiece::End(answer))) => return Ok(ModelCallOutcome::Answer(answer)),
                Some(Ok(piece)) => {
                    begun |= !matches!(piece, ReplyPiece::Retry { .. });
                    self.tell_piece(piece, &mut said);
                    continue;
                }
                Some(Err(error)) => error,
                None => ModelError::Cut {
                    why: "the client ended without an answer".to_owned(),
                },
            };
            return Ok(ModelCallOutcome::Failed(FailedModelCall {
                error,
                text: said,
                delivered: begun,
            }));
        }
    }

    fn request(&mut self) -> Result<ModelRequest, AgentError> {
        let ready = self.session.ready();
        self.tell_session();
        let ready = ready?;
        let window = self.session.window()?.clone();
        Ok(ModelRequest {
            tools: self.tools.definitions(),
            max_output: answer_limit(&ready, self.session.setup().limits.window),
            window: self.session.setup().limits.window,
            estimate: Some(ready.tokens),
            conversation: Some(self.session.id().to_string()),
            ..ModelRequest::new(
                &self.settings.model.name,
                window.messages().map(Arc::clone).collect(),
            )
        })
    }

    fn tell_piece(&self, piece: ReplyPiece, said: &mut String) {
        match piece {
            ReplyPiece::Text(text) => {
                said.push_str(&text);
                self.event_sender.send(AgentEvent::Text(text));
            }
            ReplyPiece::Reasoning(text) => self.event_sender.send(AgentEvent::Reasoning(text)),
            ReplyPiece::Retry { attempt, wait, why } => {
                self.event_sender
                    .send(AgentEvent::Retry { attempt, wait, why });
            }
            // Calls are reported when they run, and usage when it is final.
            ReplyPiece::End(_) => {}
        }
    }

    /// Records the reported usage.
    fn learn(&mut self, turn: &mut TurnResult, answer: &ModelAnswer) -> Result<(), AgentError> {
        let Some(usage) = answer.usage() else {
            return Ok(());
        };
        turn.usage = turn.usage + usage;
        self.session.record(&usage)?;
        self.event_sender.send(AgentEvent::Usage(usage));
        self.tell_session();
        Ok(())
    }

    /// Keeps a partial answer in the log, because the user has seen it.
    fn keep_said(&mut self, said: String) -> Result<(), AgentError> {
        if !said.trim().is_empty() {
            self.session.admit(Message::assistant(said))?;
        }
        Ok(())
    }

    /// Leaves a valid log after an interrupted turn.
    fn abort(&mut self, turn: &mut TurnResult) -> Result<(), AgentError> {
        turn.end = TurnEnd::Interrupted;
        self.close_round("the user interrupted this call")?;
        let marker = Message::user(ABORTED).with_kind(MessageKind::TurnAborted);
        self.session.admit(marker)?;
        Ok(())
    }

    /// Answers the open calls at the end of the log.
    fn close_round(&mut self, why: &str) -> Result<(), AgentError> {
        let log = self.session.projection().log().messages();
        let Some(at) = log.iter().rposition(|message| message.has_calls()) else {
            return Ok(());
        };
        let (_, behind) = log.split_at(at);
        let answered: HashSet<&str> = behind
            .iter()
            .flat_map(|message| message.outputs())
            .map(|output| output.call_id.as_str())
            .collect();
        // If other messages follow, normalisation repairs the open calls: outputs must directly
        // follow their calls.
        let later = behind
            .iter()
            .skip(1)
            .any(|message| message.outputs().next().is_none());
        let calls = behind.iter().take(1).flat_map(|message| message.calls());
        let open: Vec<String> = calls
            .filter(|call| !later && !answered.contains(call.id.as_str()))
            .map(|call| call.id.clone())
            .collect();
        for id in open {
            let mut message = Message::output(id, why);
            for part in &mut message.parts {
                if let Part::Output(output) = part {
                    output.is_error = true;
                }
            }
            self.session.admit(message)?;
        }
        Ok(())
    }
}

/// The output limit of a request. If the window is almost full, the limit shrinks to allow for
/// estimation errors, by a hundredth of the window and half of itself at most.
fn answer_limit(ready: &ReadyWindow, window: Option<u64>) -> Option<u64> {
    let asked = ready.max_output?;
    let Some(window) = window else {
        return Some(asked);
    };
    let room = (window - window / 100).saturating_sub(ready.tokens);
    Some(asked.min(room.max(asked / 2)))
}

#[cfg(test)]
mod tests;
