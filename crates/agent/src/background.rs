//! Moments at which the policy may compact, and summaries that are written while the agent
//! continues.

use tokio::task::JoinHandle;
use trimtab::session::{ManualCompaction, Moment, PendingSummary, SessionError, SummariserAnswer};

use crate::summary::ModelSummariser;
use crate::{Agent, AgentError, AgentEvent};

/// The maximum number of consecutive plans at one moment: archiving, compacting, and one spare.
const PLANS: usize = 3;

/// A summary that is written while the agent continues. Dropping it aborts it.
#[derive(Debug)]
pub(crate) struct BackgroundSummary {
    writing: JoinHandle<PendingSummary>,
    /// The requested summary, in case the summariser fails.
    wanted: PendingSummary,
}

impl BackgroundSummary {
    fn start(pending: PendingSummary, summariser: ModelSummariser) -> Self {
        let wanted = pending.clone();
        let writing = tokio::spawn(async move { summariser.answer(pending).await });
        Self { writing, wanted }
    }

    /// The plan without a summary, because the task that wrote it panicked.
    fn without_summary(&self) -> PendingSummary {
        let mut pending = self.wanted.clone();
        pending.answer(SummariserAnswer::Failed("it broke down".to_owned()));
        pending
    }
}

impl Drop for BackgroundSummary {
    fn drop(&mut self) {
        self.writing.abort();
    }
}

impl Agent {
    /// Reports a moment to the policy and executes the resulting plans.
    pub(crate) async fn checkpoint(&mut self, moment: Moment) -> Result<(), AgentError> {
        // A finished summary is applied first: it may make the next plan unnecessary.
        if self.has_late_summary() {
            self.take_background().await?;
        }
        // One plan can make the next one possible. The bound keeps a policy that never has enough
        // from looping.
        for _ in 0..PLANS {
            let pending = match self.session.check(moment) {
                // Nothing can be decided, so the conversation goes on as it is.
                Err(SessionError::WindowUnknown(_)) => None,
                checked => checked?,
            };
            self.tell_session();
            let Some(pending) = pending else { break };
            if self.background.is_some() {
                // One summary at a time. Only before a call must it be finished.
                if moment != Moment::BeforeCall {
                    break;
                }
                if !self.take_background().await? {
                    break;
                }
                continue;
            }
            // The user reads the answer now, so this is the time to write a summary unnoticed.
            if moment == Moment::AfterTurn && self.settings.policy.compaction.background {
                self.tell_summarising(true)?;
                self.background = Some(BackgroundSummary::start(pending, self.summariser()));
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
        self.event_sender.send(AgentEvent::Summarising {
            background,
            tokens,
            messages,
        });
        Ok(())
    }

    /// Requests a summary and executes the plan that needs it. False if nothing changed.
    pub(crate) async fn summarise(&mut self, pending: PendingSummary) -> Result<bool, AgentError> {
        self.tell_summarising(false)?;
        let summariser = self.summariser();
        let answered = tokio::select! {
            biased;
            // The plan is dropped with its summary. Nothing was changed yet, and the policy asks
            // again later.
            () = self.interrupt.interrupted() => return Ok(false),
            pending = summariser.answer(pending) => pending,
        };
        let done = self.session.finish(answered)?;
        self.tell_session();
        Ok(done)
    }

    /// Compacts on request. False if there was nothing to do or it was interrupted; events report
    /// the savings or the reason.
    pub async fn compact(&mut self, request: &ManualCompaction) -> Result<bool, AgentError> {
        self.interrupt.clear();
        // A summary in the background may already do what the user wants.
        if !self.take_background().await? {
            return Ok(false);
        }
        let pending = self.session.compact(request)?;
        let done = match pending {
            Some(pending) => self.summarise(pending).await?,
            None => false,
        };
        self.tell_session();
        Ok(done)
    }

    /// Waits for a summary in the background, if there is one.
    pub async fn settle(&mut self) -> Result<(), AgentError> {
        self.interrupt.clear();
        self.take_background().await?;
        Ok(())
    }

    /// True while a summary is in progress or waits to be used.
    pub fn is_summarising(&self) -> bool {
        self.background.is_some()
    }

    /// True if the summary in the background is finished.
    fn has_late_summary(&self) -> bool {
        let background = self.background.as_ref();
        background.is_some_and(|background| background.writing.is_finished())
    }

    /// Waits for the summary in the background and applies it. An interrupt ends the waiting but
    /// not the summary, and returns false.
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
        let pending = answered.unwrap_or_else(|_| background.without_summary());
        self.session.finish(pending)?;
        self.tell_session();
        Ok(true)
    }

    fn summariser(&self) -> ModelSummariser {
        ModelSummariser {
            model: self.settings.summariser(),
            tools: self.tools.definitions(),
        }
    }
}
