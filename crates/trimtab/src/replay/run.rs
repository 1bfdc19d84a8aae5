//! Replays one conversation, call by call.

use std::sync::Arc;

use trimtab_engine::verify::verify;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Part, Role};
use trimtab_wire::catalogue::{Money, PriceTier, Prices};

use super::bill;
use super::judge::WindowJudge;
use super::manager::{SentWindow, WindowManager};
use super::needs::{Need, needs};
use super::report::{CacheBreak, ReplayReport};
use super::served_needs::{ReplayedCall, ServedNeeds};
use super::sizes::{MessageSizer, TokenCount, common_front, larger_count};

/// The maximum of faults that are reported as text.
const TOLD: usize = 5;

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
    /// True if the prompt cache is cold after every user message, because people take longer to
    /// answer than a cache is kept.
    pub cold_turns: bool,
    /// How the tokens of the bill are counted.
    pub count: TokenCount,
    /// True if every window comes with its refs. They are also there where they are measured.
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
            cold_turns: false,
            count: TokenCount::default(),
            shows_refs: false,
        }
    }

    /// The prices of a call with a prompt of this length.
    fn prices_at(&self, tokens: u64) -> &Prices {
        // The tiers rise, so the last one that is exceeded counts.
        let tier = self.tiers.iter().rev().find(|tier| tokens > tier.above);
        tier.map_or(&self.prices, |tier| &tier.prices)
    }

    /// True if the cache is cold for the call that message `at` answers.
    pub(super) fn is_cold(&self, log: &[Arc<Message>], at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| log.get(before));
        let asked = before.is_some_and(|message| message.is_real_user());
        // The first call never has a cache, so it does not count.
        let begun = log.iter().take(at).any(|m| m.role == Role::Assistant);
        self.cold_turns && asked && begun
    }
}

/// One call of a replay.
#[derive(Debug)]
pub struct ReplayStep<'a> {
    /// Position of the model's answer.
    pub call: usize,
    /// The window that was sent.
    pub sent: &'a SentWindow,
    /// Its estimated tokens.
    pub tokens: u64,
}

/// Replays `log` under `manager`; `see` gets every window.
pub fn replay(
    log: &[Arc<Message>],
    manager: &mut dyn WindowManager,
    settings: &ReplaySettings,
    see: &mut dyn FnMut(&ReplayStep<'_>),
) -> ReplayReport {
    let needs = needs(log);
    replay_needing(log, &needs, manager, settings, see)
}

/// The same, with known needs.
pub fn replay_needing(
    log: &[Arc<Message>],
    needs: &[Need],
    manager: &mut dyn WindowManager,
    settings: &ReplaySettings,
    see: &mut dyn FnMut(&ReplayStep<'_>),
) -> ReplayReport {
    let mut reasoned = 0;
    let mut run = ReplayRun {
        settings,
        served: ServedNeeds::new(log, needs),
        judge: WindowJudge::new(settings.dialect),
        sizer: MessageSizer::default(),
        before: Vec::new(),
        before_reasoning: 0,
        checked: WindowCheck::Whole,
        before_tools: settings.tools,
        before_at: 0,
        cold: false,
        report: ReplayReport::default(),
    };
    for (at, message) in log.iter().enumerate() {
        if message.role == Role::Assistant {
            run.report.calls += 1;
            run.cold = settings.is_cold(log, at);
            if run.cold {
                manager.cache_is_cold();
            }
            match manager.send() {
                Ok(mut sent) => {
                    run.report.reasoning += reasoned;
                    if settings.shows_refs || run.served.has_needs(at) {
                        sent.refs.extend(manager.refs(&sent.messages));
                    }
                    run.call(at, sent, &manager.decided(), see);
                }
                Err(failed) => {
                    run.report.unsent += 1;
                    run.fault(format!("message {at}: {failed}"));
                }
            }
        }
        reasoned += u64::from(has_reasoning(message));
        if let Err(failed) = manager.admit(message) {
            run.fault(format!("message {at}: {failed}"));
        }
    }
    run.check_rest();
    run.report.compactions = manager.compactions();
    run.report.own_calls = manager.own_calls();
    run.report
}

/// How much of a window was checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WindowCheck {
    /// All of it, without a fault.
    Whole,
    /// Only its end, without a fault.
    End,
    /// It has a fault.
    Faulty,
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

fn has_reasoning(message: &Message) -> bool {
    let is_reasoning = |part: &Part| matches!(part, Part::Reasoning(_));
    message.parts.iter().any(is_reasoning)
}

struct ReplayRun<'a> {
    settings: &'a ReplaySettings,
    served: ServedNeeds<'a>,
    judge: WindowJudge,
    sizer: MessageSizer,
    before: Vec<Arc<Message>>,
    /// The number of messages in it with reasoning.
    before_reasoning: u64,
    /// How much of it was checked.
    checked: WindowCheck,
    /// The tools that were sent with it.
    before_tools: Measure,
    /// Position of the answer to that window.
    before_at: usize,
    /// True if the cache is cold for the next call.
    cold: bool,
    report: ReplayReport,
}

impl ReplayRun<'_> {
    fn call(
        &mut self,
        at: usize,
        sent: SentWindow,
        why: &str,
        see: &mut dyn FnMut(&ReplayStep<'_>),
    ) {
        let front = common_front(&self.before, &sent.messages);
        let extends = front == self.before.len();
        self.check(at, &sent.messages, extends);
        let (known, kept) = if extends {
            (front, self.before_reasoning)
        } else {
            (0, 0)
        };
        let new = sent.messages.iter().skip(known);
        self.before_reasoning = kept + new.filter(|one| has_reasoning(one)).count() as u64;
        self.report.reasoning_kept += self.before_reasoning;
        let size = self.bill(at, &sent, front, why);
        let tokens = self.settings.count.tokens(&size);
        let call = ReplayedCall {
            at,
            sent: &sent,
            tokens,
            prices: self.settings.prices_at(tokens),
            count: self.settings.count,
        };
        self.served
            .measure(&call, extends, &mut self.sizer, &mut self.report);
        see(&ReplayStep {
            call: at,
            sent: &sent,
            tokens: size.tokens(),
        });
        self.before_tools = self.tools(&sent);
        self.before = sent.messages;
        self.before_at = at;
    }

    /// Checks a window. Of one that goes on like the one before, only its end is checked: whole
    /// windows with every call would take the square of the length of the conversation.
    fn check(&mut self, at: usize, window: &[Arc<Message>], extends: bool) {
        if extends && self.checked != WindowCheck::Faulty {
            let end = end_of(window, self.before.len());
            if self.fault_in(at, &end).is_none() {
                self.checked = WindowCheck::End;
                return;
            }
        }
        let fault = self.fault_in(at, window);
        self.checked = match &fault {
            Some(_) => WindowCheck::Faulty,
            None => WindowCheck::Whole,
        };
        if let Some(fault) = fault {
            self.fault(fault);
        }
    }

    /// Checks the last window as a whole, if only its end was.
    fn check_rest(&mut self) {
        if self.checked == WindowCheck::End {
            let window = std::mem::take(&mut self.before);
            if let Some(fault) = self.fault_in(self.before_at, &window) {
                self.fault(fault);
            }
        }
    }

    /// The first fault of a window, as messages, and as the bytes that the provider would get.
    fn fault_in(&mut self, at: usize, window: &[Arc<Message>]) -> Option<String> {
        if let Some(first) = verify(window, self.settings.dialect).first() {
            return Some(format!("message {at}: {first}"));
        }
        let first = self.judge.fault(window)?;
        Some(format!("message {at}, as it would be sent: {first}"))
    }

    fn fault(&mut self, text: String) {
        self.report.faults += 1;
        if self.report.fault_texts.len() < TOLD {
            self.report.fault_texts.push(text);
        }
    }

    /// The tools that are sent with a window.
    fn tools(&self, sent: &SentWindow) -> Measure {
        self.settings.tools + sent.added_tools
    }

    /// Bills a window that begins with `front` messages of the one before. Returns the size of its
    /// messages.
    fn bill(&mut self, at: usize, sent: &SentWindow, front: usize, why: &str) -> Measure {
        let tools = self.tools(sent);
        // A prompt cache matches from the front, so everything after the first difference is
        // written again, and tools come before all messages.
        let common = if self.before_tools == tools { front } else { 0 };
        let cached = if self.cold { 0 } else { common };
        let mut read = if cached == self.before.len() {
            // Measured with the last call.
            self.sizer.window(&self.before)
        } else {
            self.sizer.total(sent.messages.iter().take(cached))
        };
        if !self.cold && !self.before.is_empty() && self.before_tools == tools {
            read += tools;
        }
        let all = self.sizer.window(&sent.messages);
        let settings = self.settings;
        let tokens = |part: &Measure| settings.count.tokens(part);
        let (read, prompt) = (tokens(&read), tokens(&(all + tools)));
        let prices = settings.prices_at(prompt);
        let report = &mut self.report;
        report.tokens += tokens(&all);
        report.largest = report.largest.max(larger_count(&all));
        report.over += u64::from(larger_count(&all) > self.settings.window);
        report.billed = report.billed + bill::with_cache(prices, read, prompt.saturating_sub(read));
        report.cold = report.cold + bill::cold(prices, prompt);
        if common == self.before.len() {
            report.extended += 1;
        } else {
            self.record_break(at, common, (sent, prices), why);
        }
        all
    }

    /// Records that the window of the call at `at` differs from the previous one after `common` messages.
    fn record_break(
        &mut self,
        at: usize,
        common: usize,
        (sent, prices): (&SentWindow, &Prices),
        why: &str,
    ) {
        // What came since the previous call is at the end of the window.
        let new = at.saturating_sub(self.before_at);
        let old = sent.messages.len().saturating_sub(new);
        let again = sent.messages.iter().take(old).skip(common);
        let mut again = self.sizer.total(again);
        if self.before_tools != self.tools(sent) {
            // Only the old tools could have been read.
            again += self.before_tools;
        }
        let tokens = self.settings.count.tokens(&again);
        let written = bill::with_cache(prices, 0, tokens).pico();
        let cost = written.saturating_sub(bill::with_cache(prices, tokens, 0).pico());
        self.report.breaks.push(CacheBreak {
            number: self.report.calls,
            call: at,
            message: common,
            tokens,
            cost: Money::from_pico(if self.cold { 0 } else { cost }),
            why: why.to_owned(),
        });
    }
}
