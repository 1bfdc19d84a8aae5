//! Replays one conversation, call by call.

use std::sync::Arc;

use trimtab_engine::policy::Policy;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Role};
use trimtab_wire::catalogue::{PriceTier, Prices};

use super::bill;
use super::managed::{ManagedSession, ReplayError, ShownRef};
use super::report::ReplayReport;
use super::sizes::{common_front, larger_count};
use crate::session::Session;

/// The maximum of faults that are reported as text.
const REPORTED_FAULTS: usize = 5;

/// The conditions of a replay.
#[derive(Clone, Debug)]
pub struct ReplaySettings {
    /// The model's window in tokens.
    pub window: u64,
    /// The dialect whose rules the windows must follow.
    pub dialect: Dialect,
    /// The prices of tokens.
    pub prices: Prices,
    /// The prices above certain prompt lengths, by rising length.
    pub tiers: Vec<PriceTier>,
    /// The measure of the tool definitions. They are the front of every prompt.
    pub tools: Measure,
    /// True if the model rejects signed reasoning behind an edit.
    pub bound_reasoning: bool,
}

impl ReplaySettings {
    /// A window of `window` tokens, Chat Completions, usual prices.
    pub fn new(window: u64) -> Self {
        Self {
            window,
            dialect: Dialect::Chat,
            prices: bill::USUAL,
            tiers: Vec::new(),
            tools: Measure::default(),
            bound_reasoning: true,
        }
    }

    /// The prices of a call with a prompt of this length.
    fn prices_at(&self, tokens: u64) -> &Prices {
        // The tiers rise, so the last one that is exceeded counts.
        let tier = self.tiers.iter().rev().find(|tier| tokens > tier.above);
        tier.map_or(&self.prices, |tier| &tier.prices)
    }
}

/// One call of a replay.
pub struct ReplayStep<'a> {
    /// Position of the model's answer.
    pub call: usize,
    /// The window that was sent.
    pub messages: &'a [Arc<Message>],
    /// Its estimated tokens.
    pub tokens: u64,
    session: &'a ManagedSession,
}

impl ReplayStep<'_> {
    /// The refs of outputs that the window does not show in full. Finding them takes as long as the
    /// conversation.
    pub fn refs(&self) -> Vec<ShownRef> {
        self.session.refs(self.messages)
    }
}

/// Replays `log` under a policy; `see` gets every window.
pub fn replay(
    log: &[Arc<Message>],
    policy: Policy,
    settings: &ReplaySettings,
    see: &mut dyn FnMut(ReplayStep<'_>),
) -> Result<ReplayReport, ReplayError> {
    let (report, _) = replayed_session(log, policy, settings, see)?;
    Ok(report)
}

/// Replays `log` with everything sent.
pub fn replay_everything(
    log: &[Arc<Message>],
    settings: &ReplaySettings,
    see: &mut dyn FnMut(ReplayStep<'_>),
) -> Result<ReplayReport, ReplayError> {
    let policy = Policy::preset("none").map_err(|error| ReplayError(error.to_string()))?;
    replay(log, policy, settings, see)
}

/// The same as [`replay`], with the session after the last message.
pub(crate) fn replayed_session(
    log: &[Arc<Message>],
    policy: Policy,
    settings: &ReplaySettings,
    see: &mut dyn FnMut(ReplayStep<'_>),
) -> Result<(ReplayReport, Session), ReplayError> {
    let mut session = ManagedSession::new(policy, settings)?;
    let mut run = ReplayRun {
        settings,
        tools: settings.tools + session.retrieval,
        last: Vec::new(),
        last_size: Measure::default(),
        report: ReplayReport::default(),
    };
    for (at, message) in log.iter().enumerate() {
        if message.role == Role::Assistant {
            run.report.calls += 1;
            match session.window() {
                Ok((messages, size)) => {
                    run.send(messages, &size);
                    session.open = Some(larger_count(&size));
                    see(ReplayStep {
                        call: at,
                        messages: &run.last,
                        tokens: size.tokens(),
                        session: &session,
                    });
                }
                Err(failed) => run.fault(format!("message {at}: {failed}")),
            }
        }
        if let Err(failed) = session.admit(message) {
            run.fault(format!("message {at}: {failed}"));
        }
    }
    Ok(session.completed(run.report))
}

struct ReplayRun<'a> {
    settings: &'a ReplaySettings,
    /// The tools that are sent with every window.
    tools: Measure,
    /// The window that was sent last, and its size.
    last: Vec<Arc<Message>>,
    last_size: Measure,
    report: ReplayReport,
}

impl ReplayRun<'_> {
    /// Bills the window of a call.
    fn send(&mut self, messages: Vec<Arc<Message>>, size: &Measure) {
        let front = common_front(&self.last, &messages);
        let extends = front == self.last.len();
        // A prompt cache matches from the front, so everything after the first difference is
        // written again.
        let common = if extends {
            self.last_size
        } else {
            let front = messages.iter().take(front);
            front.map(|message| Measure::of(message)).sum()
        };
        let read = if self.last.is_empty() {
            Measure::default()
        } else {
            common + self.tools
        };
        let (read, prompt) = (read.tokens(), (*size + self.tools).tokens());
        let prices = self.settings.prices_at(prompt);
        let report = &mut self.report;
        report.tokens += size.tokens();
        report.largest = report.largest.max(larger_count(size));
        report.over += u64::from(larger_count(size) > self.settings.window);
        report.billed = report.billed + bill::with_cache(prices, read, prompt.saturating_sub(read));
        report.breaks += u64::from(!extends);
        self.last = messages;
        self.last_size = *size;
    }

    fn fault(&mut self, text: String) {
        self.report.refused += 1;
        if self.report.fault_texts.len() < REPORTED_FAULTS {
            self.report.fault_texts.push(text);
        }
    }
}
