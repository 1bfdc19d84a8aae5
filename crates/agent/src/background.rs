//! Compaction points, and summaries that are written while the agent goes on.

use tokio::task::JoinHandle;
use trimtab::session::{Answered, ByHand, Moment, Pending};

use crate::summary::Summariser;
use crate::{Agent, AgentError, Event};

/// How many plans may follow each other at one moment: archiving, then compacting, and one to
/// spare.
const PLANS: usize = 3;

/// A summary that is being written while the agent goes on. Dropping it breaks it off.
#[derive(Debug)]
pub(crate) struct Background {
    writing: JoinHandle<Pending>,
    /// What is wanted, in case the summariser breaks down.
    wanted: Pending,
}

impl Background {
    fn start(pending: Pending, summariser: Summariser) -> Self {
        let wanted = pending.clone();
        let writing = tokio::spawn(async move { summariser.answer(pending).await });
        Self { writing, wanted }
    }

    /// The plan without a summary, because whoever wrote it broke down.
    fn unwritten(&self) -> Pending {
        let mut pending = self.wanted.clone();
        pending.answer(Answered::Failed("it broke down".to_owned()));
        pending
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

impl Agent {
    /// Passes a moment at which the policy may want something done, and does it.
    pub(crate) async fn pass(&mut self, moment: Moment) -> Result<(), AgentError> {
        if self.has_late_summary() {
            self.take_background().await?;
        }
        for _ in 0..PLANS {
            let pending = self.session.check(moment)?;
            self.tell_session();
            let Some(pending) = pending else { break };
            if self.background.is_some() {
                // One is being written: where it must be now, it is waited for.
                if moment != Moment::BeforeCall {
                    break;
                }
                if !self.take_background().await? {
                    break;
                }
                continue;
            }
            if moment == Moment::AfterTurn && self.settings.policy.compaction.background {
                self.tell_summarising(true)?;
                self.background = Some(Background::start(pending, self.summariser()));
                break;
            }
            if !self.summarise(pending).await? {
                break;
            }
        }
        Ok(())
    }

    fn tell_summarising(&mut self, background: bool) -> Result<(), AgentError> {
        let (tokens, messages) = self.session.window_tokens()?;
        self.teller.tell(Event::Summarising {
            background,
            tokens,
            messages,
        });
        Ok(())
    }

    /// Has a summary written and carries out the plan that wants it. False if that came to
    /// nothing.
    pub(crate) async fn summarise(&mut self, pending: Pending) -> Result<bool, AgentError> {
        self.tell_summarising(false)?;
        let summariser = self.summariser();
        let answered = tokio::select! {
            biased;
            () = self.interrupt.interrupted() => return Ok(false),
            pending = summariser.answer(pending) => pending,
        };
        let done = self.session.finish(answered)?;
        self.tell_session();
        Ok(done)
    }

    /// Compacts because somebody asked for it. False if there was nothing to do, or if it was
    /// interrupted; the events tell what was saved, or why nothing was.
    pub async fn compact(&mut self, by_hand: &ByHand) -> Result<bool, AgentError> {
        self.interrupt.clear();
        if !self.take_background().await? {
            return Ok(false);
        }
        let pending = self.session.compact(by_hand)?;
        let done = match pending {
            Some(pending) => self.summarise(pending).await?,
            None => false,
        };
        self.tell_session();
        Ok(done)
    }

    /// Waits for a summary that is being written in the background, if there is one.
    pub async fn settle(&mut self) -> Result<(), AgentError> {
        self.interrupt.clear();
        self.take_background().await?;
        Ok(())
    }

    /// True if a summary is being written in the background, or waits to be taken in.
    pub fn is_summarising(&self) -> bool {
        self.background.is_some()
    }

    /// True if the summary in the background is written.
    fn has_late_summary(&self) -> bool {
        let background = self.background.as_ref();
        background.is_some_and(|background| background.writing.is_finished())
    }

    /// Waits for the summary in the background and takes it in. An interrupt ends the waiting,
    /// not the writing, and gives false.
    async fn take_background(&mut self) -> Result<bool, AgentError> {
        let Some(mut background) = self.background.take() else {
            return Ok(true);
        };
        let answered = tokio::select! {
            biased;
            () = self.interrupt.interrupted() => {
                self.background = Some(background);
                return Ok(false);
            }
            answered = &mut background.writing => answered,
        };
        let pending = answered.unwrap_or_else(|_| background.unwritten());
        self.session.finish(pending)?;
        self.tell_session();
        Ok(true)
    }

    fn summariser(&self) -> Summariser {
        Summariser {
            model: self.settings.summariser(),
            tools: self.tools.definitions(),
        }
    }
}
