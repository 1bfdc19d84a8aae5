//! Replays one conversation, call by call.

use std::fmt::Write as _;
use std::sync::Arc;

use trimtab_engine::policy::Policy;
use trimtab_engine::verify::verify;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Role};
use trimtab_wire::catalogue::{PriceTier, Prices};
use trimtab_wire::scan::BodyScan;
use trimtab_wire::validate::validate;

use super::bill;
use super::managed::{ManagedSession, ReplayError, ShownRef};
use super::report::ReplayReport;
use super::sizes::{MessageSizer, common_front, larger_count};
use crate::request::fields;
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
    /// True if every window comes with its refs. Finding them takes as long as the conversation.
    pub shows_refs: bool,
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
            shows_refs: false,
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
#[derive(Debug)]
pub struct ReplayStep<'a> {
    /// Position of the model's answer.
    pub call: usize,
    /// The window that was sent.
    pub messages: &'a [Arc<Message>],
    /// The refs of outputs that it does not show in full, if the settings ask for them.
    pub refs: Vec<ShownRef>,
    /// Its estimated tokens.
    pub tokens: u64,
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
        tools: settings.tools + session.retrieval_tools(),
        sizer: MessageSizer::default(),
        before: SentWindow::default(),
        report: ReplayReport::default(),
    };
    for (at, message) in log.iter().enumerate() {
        if message.role == Role::Assistant {
            run.report.calls += 1;
            match session.window() {
                Ok(messages) => {
                    let size = run.send(at, messages);
                    session.sent(larger_count(&size));
                    let messages = &run.before.messages;
                    let refs = settings.shows_refs.then(|| session.refs(messages));
                    see(ReplayStep {
                        call: at,
                        messages,
                        refs: refs.unwrap_or_default(),
                        tokens: size.tokens(),
                    });
                }
                Err(failed) => {
                    run.report.unsent += 1;
                    run.fault(format!("message {at}: {failed}"));
                }
            }
        }
        if let Err(failed) = session.admit(message) {
            run.fault(format!("message {at}: {failed}"));
        }
    }
    run.check_rest();
    Ok(session.completed(run.report))
}

/// The beginning of a window up to its first answer, and its end, from the last answer before
/// message `known` on. Nothing in between depends on what comes after it.
fn end_of(window: &[Arc<Message>], known: usize) -> Vec<Arc<Message>> {
    let is_answer = |message: &Arc<Message>| message.role == Role::Assistant;
    let head = window
        .iter()
        .take_while(|message| !is_answer(message))
        .count();
    let old = window.get(..known).unwrap_or_default();
    let end = old.iter().rposition(is_answer).unwrap_or(0).max(head);
    let parts = window.iter().take(head).chain(window.iter().skip(end));
    parts.cloned().collect()
}

/// The first fault of a window, as messages, and as the bytes that the provider would get.
pub(super) fn fault_in(window: &[Arc<Message>], dialect: Dialect) -> Option<String> {
    if let Some(first) = verify(window, dialect).first() {
        return Some(first.to_string());
    }
    let mut body = String::new();
    for field in fields(window, dialect) {
        let separator = if body.is_empty() { '{' } else { ',' };
        // Writing into a String cannot fail.
        let _ = write!(
            body,
            "{separator}\"{}\":{}",
            field.name,
            field.value.as_str()
        );
    }
    body.push('}');
    let fault = match BodyScan::new(body.as_bytes(), dialect) {
        Ok(scan) => validate(&scan).first()?.to_string(),
        Err(error) => error.to_string(),
    };
    Some(format!("as it would be sent: {fault}"))
}

/// A window that was sent.
#[derive(Default)]
struct SentWindow {
    messages: Vec<Arc<Message>>,
    size: Measure,
    /// Position of its answer.
    call: usize,
    /// How much of it was checked.
    checked: WindowCheck,
}

/// How much of a window was checked.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum WindowCheck {
    /// All of it, without a fault.
    #[default]
    Whole,
    /// Only its end, without a fault.
    End,
    /// It has a fault.
    Faulty,
}

struct ReplayRun<'a> {
    settings: &'a ReplaySettings,
    /// The tools that are sent with every window.
    tools: Measure,
    sizer: MessageSizer,
    before: SentWindow,
    report: ReplayReport,
}

impl ReplayRun<'_> {
    /// Checks and bills the window of the call that message `at` answers. Returns its size.
    fn send(&mut self, at: usize, messages: Vec<Arc<Message>>) -> Measure {
        let front = common_front(&self.before.messages, &messages);
        let extends = front == self.before.messages.len();
        let checked = self.check(at, &messages, extends);
        // A prompt cache matches from the front, so everything after the first difference is
        // written again.
        let (common, new) = messages.split_at(front);
        let common = if extends {
            self.before.size
        } else {
            self.sizer.total(common)
        };
        let size = common + self.sizer.total(new);
        let read = if self.before.messages.is_empty() {
            Measure::default()
        } else {
            common + self.tools
        };
        let (read, prompt) = (read.tokens(), (size + self.tools).tokens());
        let prices = self.settings.prices_at(prompt);
        let report = &mut self.report;
        report.tokens += size.tokens();
        report.largest = report.largest.max(larger_count(&size));
        report.over += u64::from(larger_count(&size) > self.settings.window);
        report.billed = report.billed + bill::with_cache(prices, read, prompt.saturating_sub(read));
        report.breaks += u64::from(!extends);
        self.before = SentWindow {
            messages,
            size,
            call: at,
            checked,
        };
        size
    }

    /// Checks a window. Of one that goes on like the one before, only its end is checked: whole
    /// windows with every call would take the square of the length of the conversation.
    fn check(&mut self, at: usize, window: &[Arc<Message>], extends: bool) -> WindowCheck {
        if extends && self.before.checked != WindowCheck::Faulty {
            let end = end_of(window, self.before.messages.len());
            if fault_in(&end, self.settings.dialect).is_none() {
                return WindowCheck::End;
            }
        }
        match fault_in(window, self.settings.dialect) {
            Some(fault) => {
                self.fault(format!("message {at}: {fault}"));
                WindowCheck::Faulty
            }
            None => WindowCheck::Whole,
        }
    }

    /// Checks the last window as a whole, if only its end was.
    fn check_rest(&mut self) {
        if self.before.checked == WindowCheck::End {
            let last = std::mem::take(&mut self.before);
            if let Some(fault) = fault_in(&last.messages, self.settings.dialect) {
                self.fault(format!("message {}: {fault}", last.call));
            }
        }
    }

    fn fault(&mut self, text: String) {
        self.report.refused += 1;
        if self.report.fault_texts.len() < REPORTED_FAULTS {
            self.report.fault_texts.push(text);
        }
    }
}
