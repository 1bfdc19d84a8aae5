//! One turn: the model is asked, its calls are carried out, until it has an answer.

use std::sync::Arc;
use std::time::Instant;

use trimtab::request::loop_lost_reasoning;
use trimtab::session::{Moment, Ready, Recovered};
use trimtab_model::{Kind, Message, Part, Usage};

use crate::model::{Answer, Ending, ModelError, Piece, Request};
use crate::{Agent, AgentError, Event};

/// How often an answer that broke off is asked to go on, per call.
const RESUMES: u32 = 3;

/// Said to a model whose answer broke off.
const GO_ON: &str = "[the connection broke off here: go on exactly where you stopped, without \
                     repeating anything]";

/// Says that the user broke a turn off.
const ABORTED: &str = "<turn-aborted>\nThe user interrupted the previous turn. Calls that were \
                       running may have been carried out in part: check before you go \
                       on.\n</turn-aborted>";

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnEnd {
    /// The model answered.
    Answered,
    /// Its answer was longer than it may be.
    CutOff,
    /// It was broken off.
    Interrupted,
    /// It took as many rounds as it may.
    OutOfRounds,
}

/// What a turn came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// How it ended.
    pub end: TurnEnd,
    /// The answer; what there is of it, if it was broken off.
    pub text: String,
    /// How often the model was asked.
    pub rounds: u32,
    /// What all of that used together.
    pub usage: Usage,
}

/// What became of one request.
enum Heard {
    /// An answer.
    Answer(Box<Answer>),
    /// The user broke it off; this was said until then.
    Interrupted(String),
    /// It failed.
    Failed(Failed),
}

/// A request that failed.
struct Failed {
    error: ModelError,
    /// What was said until then.
    said: String,
    /// True if something came, be it a thought: the client does not ask again by itself then.
    begun: bool,
}

impl Agent {
    /// Takes what the user says and works until the model has an answer.
    ///
    /// An error ends the turn and leaves the session as it is: valid, and ready for the next
    /// turn. So does dropping the future.
    pub async fn turn(&mut self, said: impl Into<String>) -> Result<Turn, AgentError> {
        self.turn_with(Message::user(said)).await
    }

    /// The same with a message that may hold more than text.
    pub async fn turn_with(&mut self, message: Message) -> Result<Turn, AgentError> {
        self.close_round("the session ended before this call was answered")?;
        self.session.admit(message)?;
        self.go_on().await
    }

    /// Goes on with a turn that has not come to its end, after an error or a restart.
    pub async fn go_on(&mut self) -> Result<Turn, AgentError> {
        self.interrupt.clear();
        self.close_round("the session ended before this call was answered")?;
        let mut turn = Turn {
            end: TurnEnd::OutOfRounds,
            text: String::new(),
            rounds: 0,
            usage: Usage::default(),
        };
        let worked = self.work(&mut turn).await;
        self.tell_session();
        worked?;
        self.teller.tell(Event::TurnEnded(turn.end));
        Ok(turn)
    }

    async fn work(&mut self, turn: &mut Turn) -> Result<(), AgentError> {
        while turn.rounds < self.settings.max_rounds {
            turn.rounds += 1;
            let Some(answer) = self.ask(turn).await? else {
                return self.abort(turn);
            };
            let calls: Vec<_> = answer.message.calls().cloned().collect();
            turn.text = answer.message.text().into_owned();
            self.session.admit(answer.message)?;
            self.pass(Moment::AfterAnswer).await?;
            if calls.is_empty() {
                turn.end = match answer.ending {
                    Ending::CutOff => TurnEnd::CutOff,
                    _ => TurnEnd::Answered,
                };
                self.pass(Moment::BeforeFinal).await?;
                return self.pass(Moment::AfterTurn).await;
            }
            if !self.carry_out(&calls).await? {
                return self.abort(turn);
            }
            self.pass(Moment::AfterOutputs).await?;
        }
        self.pass(Moment::AfterTurn).await
    }

    /// Asks the model until it answers. None if the user broke it off.
    async fn ask(&mut self, turn: &mut Turn) -> Result<Option<Answer>, AgentError> {
        let mut resumes = 0;
        loop {
            if let Some(asked) = self.asked.replace(Instant::now()) {
                self.session.idle(asked.elapsed());
            }
            self.pass(Moment::BeforeCall).await?;
            if self.interrupt.is_set() {
                return Ok(None);
            }
            match self.hear().await? {
                Heard::Answer(answer) => {
                    self.learn(turn, &answer)?;
                    return Ok(Some(*answer));
                }
                Heard::Interrupted(said) => {
                    turn.text.clone_from(&said);
                    self.keep_said(said)?;
                    return Ok(None);
                }
                Heard::Failed(failed) => {
                    if !self.mend(&failed, &mut resumes).await? {
                        return Err(failed.error.into());
                    }
                }
            }
        }
    }

    /// Does something about a failure: true to ask again.
    async fn mend(&mut self, failed: &Failed, resumes: &mut u32) -> Result<bool, AgentError> {
        self.keep_said(failed.said.clone())?;
        if let ModelError::Overflow { verdict, .. } = &failed.error {
            let recovered = self.session.recover(verdict)?;
            self.tell_session();
            return match recovered {
                Recovered::Retry => Ok(true),
                Recovered::Summarise(pending) => {
                    self.summarise(pending).await?;
                    Ok(true)
                }
                Recovered::GiveUp => Ok(false),
            };
        }
        if !failed.error.is_passing() || !failed.begun || *resumes >= RESUMES {
            return Ok(false);
        }
        *resumes += 1;
        let why = failed.error.without_hint();
        self.teller.tell(Event::BrokeOff { why });
        if !failed.said.trim().is_empty() {
            let note = Message::user(GO_ON).with_kind(Kind::Note);
            self.session.admit(note)?;
        }
        Ok(true)
    }

    /// Sends the window and listens to what comes back.
    async fn hear(&mut self) -> Result<Heard, AgentError> {
        let request = self.request()?;
        let mut reply = self.settings.model.client.call(request);
        let (mut said, mut begun) = (String::new(), false);
        loop {
            let piece = tokio::select! {
                biased;
                () = self.interrupt.interrupted() => return Ok(Heard::Interrupted(said)),
                piece = reply.next() => piece,
            };
            let error = match piece {
                Some(Ok(Piece::End(answer))) => return Ok(Heard::Answer(answer)),
                Some(Ok(piece)) => {
                    begun |= !matches!(piece, Piece::Usage(_) | Piece::Retry { .. });
                    self.tell_piece(piece, &mut said);
                    continue;
                }
                Some(Err(error)) => error,
                None => ModelError::Cut {
                    why: "the client ended without an answer".to_owned(),
                },
            };
            return Ok(Heard::Failed(Failed { error, said, begun }));
        }
    }

    fn request(&mut self) -> Result<Request, AgentError> {
        let ready = self.session.ready();
        self.tell_session();
        let ready = ready?;
        let window = self.session.window()?.clone();
        Ok(Request {
            lost_thought: loop_lost_reasoning(self.session.projection()),
            tools: self.tools.definitions(),
            max_output: answer_limit(&ready, self.session.setup().limits.window),
            window: self.session.setup().limits.window,
            estimate: Some(ready.tokens),
            conversation: Some(self.session.id().to_string()),
            ..Request::new(
                &self.settings.model.name,
                window.messages().map(Arc::clone).collect(),
            )
        })
    }

    fn tell_piece(&self, piece: Piece, said: &mut String) {
        match piece {
            Piece::Text(text) => {
                said.push_str(&text);
                self.teller.tell(Event::Text(text));
            }
            Piece::Reasoning(text) => self.teller.tell(Event::Reasoning(text)),
            Piece::Retry { attempt, wait, why } => {
                self.teller.tell(Event::Retry { attempt, wait, why });
            }
            // A call is told when it is carried out, usage when it is final.
            Piece::Call(_) | Piece::Usage(_) | Piece::End(_) => {}
        }
    }

    /// Learns from what the provider reported.
    fn learn(&mut self, turn: &mut Turn, answer: &Answer) -> Result<(), AgentError> {
        let Some(usage) = answer.usage() else {
            return Ok(());
        };
        turn.usage = turn.usage + usage;
        self.session.record(&usage)?;
        self.teller.tell(Event::Usage(usage));
        self.tell_session();
        Ok(())
    }

    /// What was said before an answer broke off stays in the log: the user has seen it.
    fn keep_said(&mut self, said: String) -> Result<(), AgentError> {
        if !said.trim().is_empty() {
            self.session.admit(Message::assistant(said))?;
        }
        Ok(())
    }

    /// Leaves a valid log behind a turn that the user broke off.
    fn abort(&mut self, turn: &mut Turn) -> Result<(), AgentError> {
        turn.end = TurnEnd::Interrupted;
        self.close_round("the user interrupted this call")?;
        let marker = Message::user(ABORTED).with_kind(Kind::TurnAborted);
        self.session.admit(marker)?;
        Ok(())
    }

    /// Answers the calls at the end of the log that have no output.
    fn close_round(&mut self, why: &str) -> Result<(), AgentError> {
        let log = self.session.projection().log().messages();
        let Some(at) = log.iter().rposition(|message| message.has_calls()) else {
            return Ok(());
        };
        let (_, behind) = log.split_at(at);
        let answered: Vec<&str> = behind
            .iter()
            .flat_map(|message| message.outputs())
            .map(|output| output.call_id.as_str())
            .collect();
        let later = behind
            .iter()
            .skip(1)
            .any(|message| message.outputs().next().is_none());
        let calls = behind.iter().take(1).flat_map(|message| message.calls());
        let open: Vec<String> = calls
            .filter(|call| !later && !answered.contains(&call.id.as_str()))
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

/// How long an answer to ask for. Where the window is all but full, the answer gives way to
/// what may have been miscounted, by a hundredth of the window and half of itself at most.
fn answer_limit(ready: &Ready, window: Option<u64>) -> Option<u64> {
    let asked = ready.max_output?;
    let Some(window) = window else {
        return Some(asked);
    };
    let room = (window - window / 100).saturating_sub(ready.tokens);
    Some(asked.min(room.max(asked / 2)))
}

#[cfg(test)]
mod tests;
