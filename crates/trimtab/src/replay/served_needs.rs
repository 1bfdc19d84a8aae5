//! Measures what an agent can do with a window: whether it shows what the next call needs, and what
//! must be fetched first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use memchr::memmem;
use trimtab_model::{Message, Role};
use trimtab_wire::catalogue::{Money, Prices};

use super::bill;
use super::manager::SentWindow;
use super::needs::{Need, argument_strings, raw_arguments};
use super::report::ReplayReport;
use super::sizes::{MessageSizer, TokenCount};

/// The tokens that the agent gets when it reads a part of an output by its ref.
const SLICE: u64 = 1_000;
/// The maximum of tokens when it repeats a call.
const WHOLE: u64 = 8_000;
/// The tokens of the call that asks for it.
const ASK: u64 = 120;
/// A fetched output is available for this many messages.
const STAYS: usize = 20;
/// An output counts as shown from this percentage on.
const SHOWN_PERCENT: u64 = 95;
/// In one of this many cases, the agent asks for the rest of an output that was cut.
const ASKS_ONE_IN: u64 = 2;

/// Measures the windows of one conversation.
pub(super) struct ServedNeeds<'a> {
    log: &'a [Arc<Message>],
    needs: &'a [Need],
    /// The last call for which an output was fetched, by its position.
    fetched: HashMap<usize, usize>,
    /// The text of the first messages of the last window, and their number.
    text: (String, usize),
}

/// The window of a call, and the prices of tokens.
pub(super) struct ReplayedCall<'s> {
    pub(super) at: usize,
    pub(super) sent: &'s SentWindow,
    pub(super) tokens: u64,
    pub(super) prices: &'s Prices,
    pub(super) count: TokenCount,
}

impl<'a> ServedNeeds<'a> {
    pub(super) fn new(log: &'a [Arc<Message>], needs: &'a [Need]) -> Self {
        Self {
            log,
            needs,
            fetched: HashMap::new(),
            text: (String::new(), 0),
        }
    }

    /// True if the call at this position needs anything.
    pub(super) fn has_needs(&self, call: usize) -> bool {
        let needs = &self.needs;
        needs.binary_search_by_key(&call, |need| need.call).is_ok()
    }

    /// Adds to the report what the window of a call shows and lacks. `extends` says that it begins
    /// with all of the window before.
    pub(super) fn measure(
        &mut self,
        call: &ReplayedCall<'_>,
        extends: bool,
        sizer: &mut MessageSizer,
        report: &mut ReplayReport,
    ) {
        self.measure_arrived(call, sizer, report);
        if !extends {
            self.text = (String::new(), 0);
        }
        // The needs are in the order of their calls.
        let first = self.needs.partition_point(|need| need.call < call.at);
        let needs = self.needs.get(first..).unwrap_or_default();
        let needs: Vec<&Need> = needs
            .iter()
            .take_while(|need| need.call == call.at)
            .collect();
        if needs.is_empty() {
            return;
        }
        let (mut text, known) = std::mem::take(&mut self.text);
        let messages = &call.sent.messages;
        add_texts(&mut text, messages.iter().skip(known));
        let mut missing: BTreeMap<usize, bool> = BTreeMap::new();
        for need in needs {
            let behind_ref = is_behind(&text, call.sent, need);
            let is_shown = shows(&text, &need.text);
            report
                .recall
                .add(need, is_shown, behind_ref, || shows(&text, &need.line));
            if !is_shown && !self.is_at_hand(need.source, call.at) {
                missing.insert(need.source, behind_ref);
            }
        }
        report.needing += 1;
        report.ready += u64::from(missing.is_empty());
        for (source, behind_ref) in missing {
            self.fetched.insert(source, call.at);
            let all = self.log.get(source);
            let all = all.map_or(0, |message| call.count.tokens(&sizer.size(message)));
            let got = if behind_ref { SLICE } else { all.min(WHOLE) };
            report.fetches += 1;
            report.fetching = report.fetching + extra_call(call, got);
        }
        self.text = (text, messages.len());
    }

    fn is_at_hand(&self, source: usize, at: usize) -> bool {
        let fetched = self.fetched.get(&source);
        fetched.is_some_and(|fetched| fetched + STAYS >= at)
    }

    /// Measures how much of each output since the last answer is shown when it arrives.
    fn measure_arrived(
        &self,
        call: &ReplayedCall<'_>,
        sizer: &mut MessageSizer,
        report: &mut ReplayReport,
    ) {
        let came = self.log.get(..call.at).unwrap_or_default();
        let came = came.iter().rev();
        let came = came.take_while(|message| message.role == Role::Tool);
        let came: Vec<&Arc<Message>> = came.collect();
        // Near the end of the window. Repairs and insertions may stand between the outputs.
        let newest = call.sent.messages.iter().rev().take(came.len() * 2 + 2);
        let shown: HashMap<&str, &Arc<Message>> = newest
            .flat_map(|message| {
                let outputs = message.outputs();
                outputs.map(move |output| (output.call_id.as_str(), message))
            })
            .collect();
        for message in came {
            let Some(shown) = message
                .outputs()
                .find_map(|output| shown.get(output.call_id.as_str()))
            else {
                continue;
            };
            let (all, seen) = (
                call.count.tokens(&sizer.size(message)),
                call.count.tokens(&sizer.size(shown)),
            );
            report.arrived += 1;
            report.arrived_tokens += all;
            report.arrived_shown += seen.min(all);
            if seen * 100 < all * SHOWN_PERCENT {
                report.cut_unseen += 1;
                let again = extra_call(call, (all - seen).min(WHOLE));
                report.asking_again =
                    report.asking_again + Money::from_pico(again.pico() / ASKS_ONE_IN);
            }
        }
    }
}

/// The cost of one more call that reads the window from the cache and gets `got` tokens.
fn extra_call(call: &ReplayedCall<'_>, got: u64) -> Money {
    let answer = call.prices.output.pico();
    // If answers have no price, assume five times the input, which is usual.
    let answer = if answer > 0 {
        answer
    } else {
        call.prices.input.pico() * 5
    };
    bill::with_cache(call.prices, call.tokens, got) + Money::from_pico(answer * ASK)
}

/// Adds all texts of messages.
fn add_texts<'m>(text: &mut String, messages: impl Iterator<Item = &'m Arc<Message>>) {
    for message in messages {
        text.push_str(&message.text());
        for output in message.outputs() {
            text.push('\n');
            text.push_str(&output.text());
        }
        for said in [raw_arguments(message), argument_strings(message)] {
            text.push('\n');
            text.push_str(&said);
        }
        // Separates messages, so that no text is found across two of them.
        text.push('\0');
    }
}

fn shows(text: &str, wanted: &str) -> bool {
    memmem::find(text.as_bytes(), wanted.as_bytes()).is_some()
}

fn is_behind(text: &str, sent: &SentWindow, need: &Need) -> bool {
    let mut refs = sent.refs.iter();
    refs.any(|shown| shown.position == need.source && shows(text, shown.stored.id()))
}
