//! The bill of a policy, with what the agent pays to get back what its windows lack.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde::Serialize;
use trimtab::model::Message;

use crate::entry::{Entries, Entry};
use crate::needs::{Kind, Need};

/// The tokens that the agent gets when it reads a part of an output by its ref.
const SLICE: u64 = 1_000;
/// The maximum of tokens when it repeats a call.
const WHOLE: u64 = 8_000;
/// The tokens of the call that asks for it.
const ASK: u64 = 120;
/// A fetched output is available for this many messages.
const STAYS: usize = 20;
/// The share of the cases in which the agent asks for the rest of an output that was cut.
const ASKS_AGAIN: f64 = 0.5;
/// An output counts as shown from this share of its tokens on.
const SHOWN: f64 = 0.95;
/// A name is usable with this many characters of its line on either side.
const AROUND: usize = 16;
/// Occurrences of a name that are compared with the window.
const MOST_OCCURRENCES: usize = 200;

/// The prices of tokens; plain input costs 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// A token from the cache.
    pub(crate) read: f64,
    /// A token written to the cache.
    pub(crate) write: f64,
    /// A token of an answer.
    pub(crate) answer: f64,
}

impl Rates {
    /// The cost of one more call that reads the window and gets `got` tokens.
    fn extra_call(&self, window: u64, got: u64) -> f64 {
        window as f64 * self.read + got as f64 * self.write + ASK as f64 * self.answer
    }
}

/// The figures of conversations under one rule, by name:
///
/// - `calls`, `over` (windows larger than the model's), `needing` (calls that took a text from an
///   output), `ready` (those that have to fetch nothing), `fetches`;
/// - `arrived` (new outputs in the windows), `unseen` (those that are cut);
/// - `bill`, `bill_all` (of sending everything), `fetching`, `asking_again`: costs;
/// - `fresh_name`, `fresh_line`, `old_name`, `old_line`: needed texts; with `_shown`, `_by_ref` and
///   `_lost`, those that are in the window, whose output has a ref in it, and without either.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub(crate) struct Score(BTreeMap<String, f64>);

impl Score {
    /// A figure.
    pub(crate) fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// A figure as a share of another one.
    pub(crate) fn share(&self, name: &str, of: &str) -> f64 {
        self.get(name) / self.get(of).max(1.0)
    }

    fn count(&mut self, name: impl Into<String>, by: impl Into<f64>) {
        *self.0.entry(name.into()).or_default() += by.into();
    }

    /// Adds the score of another conversation.
    pub(crate) fn add(&mut self, other: &Self) {
        for (name, by) in &other.0 {
            self.count(name, *by);
        }
    }

    /// The bill with all extra calls, as a share of sending everything.
    pub(crate) fn effective(&self) -> f64 {
        let extra = self.share("fetching", "bill_all") + self.share("asking_again", "bill_all");
        self.share("bill", "bill_all") + extra
    }
}

/// Scores the windows of one conversation, in order.
pub(crate) struct Scorer<'a> {
    log: &'a [Arc<Entry>],
    needs: &'a HashMap<usize, Vec<Need>>,
    limit: u64,
    rates: Rates,
    entries: Entries,
    /// The last window.
    before: Vec<Arc<Message>>,
    /// The tokens of the conversation at the last call.
    all_before: u64,
    /// The last call for which an output was fetched, by the position of the output.
    fetched: HashMap<usize, usize>,
    score: Score,
}

impl<'a> Scorer<'a> {
    /// A scorer of a conversation with these needs, for a model with a window of `limit` tokens.
    pub(crate) fn new(
        log: &'a [Arc<Entry>],
        needs: &'a HashMap<usize, Vec<Need>>,
        limit: u64,
        rates: Rates,
    ) -> Self {
        Self {
            log,
            needs,
            limit,
            rates,
            entries: Entries::default(),
            before: Vec::new(),
            all_before: 0,
            fetched: HashMap::new(),
            score: Score::default(),
        }
    }

    /// The score of the windows so far.
    pub(crate) fn finish(self) -> Score {
        self.score
    }

    /// Adds the window of the call that message `call` answers. `refs` has the refs that it shows,
    /// by the ids of their calls.
    pub(crate) fn add(
        &mut self,
        call: usize,
        messages: &[Arc<Message>],
        refs: &HashMap<&str, &str>,
    ) {
        let window = self.entries.of(messages);
        let size = tokens(&window);
        self.score.count("calls", 1);
        self.score.count("over", size > self.limit);
        self.bill(call, messages, &window);
        self.count_arrived(call, &window, size);
        if let Some(needs) = self.needs.get(&call) {
            self.count_needs(call, needs, &window, refs);
        }
    }

    fn bill(&mut self, call: usize, messages: &[Arc<Message>], window: &[Arc<Entry>]) {
        let pairs = self.before.iter().zip(messages);
        let common = pairs.take_while(|(before, now)| before == now).count();
        let (same, new) = window.split_at(common);
        let cost = |read: u64, written: u64| {
            read as f64 * self.rates.read + written as f64 * self.rates.write
        };
        self.score.count("bill", cost(tokens(same), tokens(new)));
        let all = tokens(self.log.get(..call).unwrap_or_default());
        self.score
            .count("bill_all", cost(self.all_before, all - self.all_before));
        self.all_before = all;
        self.before = messages.to_vec();
    }

    /// Counts the outputs since the last answer, and those that the window shows only in part.
    fn count_arrived(&mut self, call: usize, window: &[Arc<Entry>], size: u64) {
        let shown: HashMap<&str, u64> = window
            .iter()
            .filter_map(|entry| Some((entry.call_id.as_deref()?, entry.tokens())))
            .collect();
        let arrived = self.log.get(..call).unwrap_or_default().iter().rev();
        for output in arrived.take_while(|entry| entry.is_output()) {
            let id = output.call_id.as_deref().unwrap_or_default();
            let Some(seen) = shown.get(id) else { continue };
            let whole = output.tokens();
            self.score.count("arrived", 1);
            if (*seen as f64) < whole as f64 * SHOWN {
                self.score.count("unseen", 1);
                let rest = (whole - seen).min(WHOLE);
                let again = ASKS_AGAIN * self.rates.extra_call(size, rest);
                self.score.count("asking_again", again);
            }
        }
    }

    /// Counts what a call needs, and bills what it must fetch.
    fn count_needs(
        &mut self,
        call: usize,
        needs: &[Need],
        window: &[Arc<Entry>],
        refs: &HashMap<&str, &str>,
    ) {
        let text = joined(window);
        let outputs = self.log.get(..call).unwrap_or_default().iter();
        let outputs: Vec<&Arc<Entry>> = outputs.filter(|entry| entry.is_output()).collect();
        // What must be fetched, and whether the window has a ref of it.
        let mut missing: BTreeMap<usize, bool> = BTreeMap::new();
        for need in needs {
            let is_shown = text.contains(&need.text)
                && (need.kind == Kind::Line || has_in_line(&text, &need.text, &outputs));
            let source = self.log.get(need.source);
            let id = source.and_then(|source| source.call_id.as_deref());
            let has_ref = id.is_some_and(|id| refs.get(id).is_some_and(|id| text.contains(id)));
            let place = match (is_shown, has_ref) {
                (true, _) => "shown",
                (false, true) => "by_ref",
                (false, false) => "lost",
            };
            self.score.count(need.name(), 1);
            self.score.count(format!("{}_{place}", need.name()), 1);
            let fetched = self.fetched.get(&need.source);
            if !is_shown && fetched.is_none_or(|fetched| fetched + STAYS < call) {
                missing.insert(need.source, has_ref);
            }
        }
        self.score.count("needing", 1);
        self.score.count("ready", missing.is_empty());
        for (source, has_ref) in missing {
            self.fetched.insert(source, call);
            let whole = self.log.get(source).map_or(0, |output| output.tokens());
            let got = if has_ref { SLICE } else { whole.min(WHOLE) };
            self.score.count("fetches", 1);
            let cost = self.rates.extra_call(tokens(window), got);
            self.score.count("fetching", cost);
        }
    }
}

fn tokens(entries: &[Arc<Entry>]) -> u64 {
    entries.iter().map(|entry| entry.tokens()).sum()
}

/// All texts of a window. What separates them is in no text, so none is found across two of them.
fn joined(window: &[Arc<Entry>]) -> String {
    let texts = window.iter().flat_map(|entry| {
        let Entry {
            text,
            arguments,
            written,
            ..
        } = &**entry;
        [text.as_str(), "\0", arguments, "\0", written, "\0"]
    });
    texts.collect()
}

/// True if the window has a name with what surrounds it in a line of one of these outputs.
fn has_in_line(window: &str, name: &str, outputs: &[&Arc<Entry>]) -> bool {
    let lines = outputs.iter().flat_map(|output| output.text.split('\n'));
    let occurrences = lines.flat_map(|line| {
        let found = line.match_indices(name);
        found.map(move |(at, _)| around(line, at, name.len()))
    });
    let mut occurrences = occurrences.take(MOST_OCCURRENCES);
    occurrences.any(|around| window.contains(around))
}

/// The bytes of a line from `at` on with [`AROUND`] characters on either side.
fn around(line: &str, at: usize, length: usize) -> &str {
    let (front, rest) = line.split_at_checked(at).unwrap_or_default();
    let back = rest.get(length..).unwrap_or_default();
    let front = front.char_indices().rev().take(AROUND).last();
    let start = front.map_or(at, |(start, _)| start);
    let end = back.char_indices().nth(AROUND);
    let end = at + length + end.map_or(back.len(), |(end, _)| end);
    line.get(start..end).unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::needs::needs;
    use crate::test_log::{listing_then_use, log};

    const RATES: Rates = Rates {
        read: 0.1,
        write: 1.25,
        answer: 5.0,
    };

    /// The score of the last call, with a window of one message.
    fn scored(text: &str, refs: &[(&str, &str)]) -> Score {
        let log = log(listing_then_use(2));
        let needs = needs(&log);
        let mut scorer = Scorer::new(&log, &needs, 1_000, RATES);
        let refs = refs.iter().copied().collect();
        scorer.add(log.len() - 1, &[Arc::new(Message::user(text))], &refs);
        scorer.finish()
    }

    #[test]
    fn name_counts_with_its_line_by_its_ref_or_as_lost() {
        let counted = |text, refs: &[(&str, &str)]| {
            let score = scored(text, refs);
            let figures = |names: [&str; 3]| names.map(|name| score.get(name).to_string());
            let shown = score.get("old_name_shown");
            assert_eq!(figures(["old_name", "needing", "calls"]), ["1", "1", "1"]);
            assert_eq!(
                figures(["ready", "fetches", "calls"])[..2],
                [shown, 1.0 - shown].map(|n| n.to_string())
            );
            figures(["old_name_shown", "old_name_by_ref", "old_name_lost"]).concat()
        };
        let refs = [("0", "abcdefghijklmnop")];
        assert_eq!(
            counted("long line: src/parser/lexer.rs is long", &[]),
            "100"
        );
        assert_eq!(
            counted("src/parser/lexer.rs, src/parser/tokens.rs", &[]),
            "001"
        );
        assert_eq!(counted("an excerpt: abcdefghijklmnop", &refs), "010");
        assert_eq!(counted("the ref is not in the window", &refs), "001");
    }

    #[test]
    fn fetch_by_ref_costs_a_slice_and_a_lost_output_all_of_it() {
        let text = "an excerpt: abcdefghijklmnop";
        let by_ref = scored(text, &[("0", "abcdefghijklmnop")]).get("fetching");
        let lost = scored(text, &[]).get("fetching");
        let whole = log(listing_then_use(2))[2].tokens();
        assert!((by_ref - lost - RATES.write * (SLICE as f64 - whole as f64)).abs() < 1e-9);
    }

    #[test]
    fn everything_costs_the_new_text_and_what_the_cache_has() {
        let messages: Vec<Arc<Message>> = listing_then_use(2).into_iter().map(Arc::new).collect();
        let log = Entries::default().of(&messages);
        let needs = needs(&log);
        let mut scorer = Scorer::new(&log, &needs, 1_000, RATES);
        let calls = [1, 3, 5, 7];
        for call in calls {
            scorer.add(call, &messages[..call], &HashMap::new());
        }
        let score = scorer.finish();
        assert_eq!(
            ["calls", "ready", "unseen"].map(|name| score.get(name).to_string()),
            ["4", "1", "0"]
        );
        assert!((score.effective() - 1.0).abs() < 1e-9, "{score:?}");
        let read: u64 = calls[..3].iter().map(|call| tokens(&log[..*call])).sum();
        let bill = read as f64 * RATES.read + tokens(&log[..7]) as f64 * RATES.write;
        assert!((score.get("bill") - bill).abs() < 1e-9, "{score:?}");
    }

    #[test]
    fn output_that_is_cut_before_it_is_seen_is_asked_for_again() {
        let messages = vec![
            Message::user("look"),
            crate::test_log::call("0", "{}"),
            Message::output("0", "one line of many\n".repeat(2_000)),
            Message::assistant("done"),
        ];
        let log = log(messages);
        let needs = needs(&log);
        let mut scorer = Scorer::new(&log, &needs, 50_000, RATES);
        let window = [
            Message::user("look"),
            Message::output("0", "one line of many"),
        ];
        scorer.add(3, &window.map(Arc::new), &HashMap::new());
        let score = scorer.finish();
        assert!(score.share("unseen", "arrived") > 0.9);
        assert!(score.get("asking_again") > 0.0);
    }
}
