//! Adds up the savings of the proxy, in tokens and in money.
//!
//! Tokens are the sum of `Record::saved`. Money compares the provider's reported usage with the
//! estimated cost of the original prompts, both at the catalogue's prices. The comparison favours
//! the original prompts: if the provider's cache is in use at all, everything that a session sent
//! before counts as cached. A call that would not have fit the window counts as a full window, in
//! tokens and in money: what is new in it as new, the rest as cached. The money against a model
//! with the same prices, whose window holds everything, is a figure of its own.

use std::collections::HashMap;

use serde::Serialize;
use trimtab_model::{SavedTokens, Usage};
use trimtab_wire::catalogue::{Catalogue, ModelInfo};

use crate::records::record::{Record, RecordAction};

/// The assumed lifetime of a prompt in a cache of unknown lifetime.
const LIFETIME_MS: u64 = 5 * 60 * 1_000;

/// The savings so far.
pub struct Savings {
    catalogue: Catalogue,
    sessions: HashMap<String, SessionSavings>,
    total: SavingsTotal,
}

/// Figures of all calls so far.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SavingsTotal {
    /// Calls of models.
    pub calls: u64,
    /// Calls whose window the proxy changed.
    pub edited: u64,
    /// Prompt tokens without and with the proxy.
    pub tokens: SavedTokens,
    /// Tokens that observed calls would have saved.
    pub observed: i64,
    /// Calls that were sent again, smaller, after an overflow.
    pub recovered: u64,
    /// Retrieval calls that were served.
    pub retrievals: u64,
    /// Summaries requested from a model. Their cost counts as spent.
    pub summaries: u64,
    /// Money spent in dollars, on models with a known price.
    pub spent: f64,
    /// Money saved in dollars; negative if the proxy cost more.
    pub saved: f64,
    /// The same against a model with a window that holds everything.
    pub saved_unbounded: f64,
    /// Tokens of original prompts beyond the window.
    pub beyond_window: u64,
    /// Calls of unknown cost: the price or the usage is missing.
    pub unpriced: u64,
}

/// What one call cost, and what it saved, in dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CallMoney {
    /// What was spent on it.
    pub spent: f64,
    /// What it would have cost more without the proxy; negative if it cost more with it.
    pub saved: f64,
    /// The same against a model with a window that holds everything.
    pub saved_unbounded: f64,
}

#[derive(Default)]
struct SessionSavings {
    /// The tokens of the last original prompt, as the provider counts them, whether it would have
    /// fit or not.
    before: u64,
    when: u64,
    caches: bool,
}

/// The usage that an original request would have had.
#[derive(Clone, Copy)]
struct OriginalUsage {
    /// If a request that does not fit counts as a full window.
    bounded: Usage,
    /// If the window holds everything.
    unbounded: Usage,
}

impl Savings {
    /// Starts with nothing saved and takes prices from `catalogue`.
    pub fn new(catalogue: Catalogue) -> Self {
        Self {
            catalogue,
            sessions: HashMap::new(),
            total: SavingsTotal::default(),
        }
    }

    /// The figures so far.
    pub fn total(&self) -> &SavingsTotal {
        &self.total
    }

    /// Adds the record of one request. Gives what it cost; none if that is not known.
    pub fn add(&mut self, record: &Record) -> Option<CallMoney> {
        if !record.is_answered_call() {
            return None;
        }
        // Count tokens before the early return for summaries: their prompts reduce the savings.
        let tokens = record.saved;
        self.total.tokens += tokens;
        self.total.beyond_window += record.beyond_window;
        if record.action == RecordAction::Asked {
            return self.add_summary(record);
        }
        let total = &mut self.total;
        total.calls += 1;
        total.edited += u64::from(record.action == RecordAction::Edited);
        if record.action == RecordAction::Observed {
            let (came, would) = (record.tokens_before, record.tokens_after);
            total.observed += SavedTokens::of_changed(came, would, None, None).saved();
        }
        total.recovered += u64::from(record.recoveries > 0);
        total.retrievals += u64::from(record.retrievals);
        let priced = self.priced(&record.model);
        let (Some(usage), Some(model)) = (record.usage, priced) else {
            self.total.unpriced += 1;
            return None;
        };
        let cost = |usage: &Usage| model.cost(usage).unwrap_or_default().dollars();
        // A request without a session was sent unchanged.
        let original = if record.session.is_empty() {
            OriginalUsage::of_unchanged(usage)
        } else {
            let session = self.sessions.entry(record.session.clone()).or_default();
            session.next(&model, record, &usage)
        };
        // Without the proxy there would have been no retrieval calls, so their cost counts against
        // it.
        let hidden = record.hidden.as_ref().map_or(0.0, cost);
        let spent = cost(&usage) + hidden;
        Some(self.add_money(CallMoney {
            spent,
            saved: cost(&original.bounded) - spent,
            saved_unbounded: cost(&original.unbounded) - spent,
        }))
    }

    fn add_money(&mut self, money: CallMoney) -> CallMoney {
        self.total.spent += money.spent;
        self.total.saved += money.saved;
        self.total.saved_unbounded += money.saved_unbounded;
        money
    }

    /// Without the proxy there would have been no summary, so its cost counts against it.
    fn add_summary(&mut self, record: &Record) -> Option<CallMoney> {
        self.total.summaries += 1;
        let priced = self.priced(&record.model);
        let (Some(usage), Some(model)) = (record.usage, priced) else {
            self.total.unpriced += 1;
            return None;
        };
        let cost = model.cost(&usage).unwrap_or_default().dollars();
        Some(self.add_money(CallMoney {
            spent: cost,
            saved: -cost,
            saved_unbounded: -cost,
        }))
    }

    /// The model of that name, if its price is known.
    pub(crate) fn priced(&self, name: &str) -> Option<ModelInfo> {
        let found = self.catalogue.find(name).ok()?;
        Some(found.model).filter(|model| model.prices.is_some())
    }
}

impl SessionSavings {
    /// Estimates the usage that the original request would have had.
    fn next(&mut self, model: &ModelInfo, record: &Record, usage: &Usage) -> OriginalUsage {
        let before = record.saved.without + record.beyond_window;
        self.caches |= usage.cache_read > 0 || usage.cache_creation > 0;
        let lifetime = model.cache.lifetime.map(|time| time.as_millis());
        let lifetime = lifetime.and_then(|time| u64::try_from(time).ok());
        let age = record.time_ms.saturating_sub(self.when);
        let is_warm = self.caches && self.when > 0 && age <= lifetime.unwrap_or(LIFETIME_MS);
        // A cold cache would have been cold for the original prompt too.
        let sent_before = if is_warm { self.before } else { 0 };
        // Tokens that hit the cache now would also have hit it without the proxy.
        let cached = sent_before.max(usage.cache_read).min(before);
        let fresh = before - cached;
        // If the client writes to the cache now, it would have written this part too.
        let writes = usage.cache_creation > 0;
        (self.before, self.when) = (before, record.time_ms);
        if record.action != RecordAction::Edited {
            return OriginalUsage::of_unchanged(*usage);
        }
        let usage_of = |prompt: u64| {
            // Whatever had to be left out of a full window, it was not what is new.
            let fresh = fresh.min(prompt);
            Usage {
                input: if writes { 0 } else { fresh },
                cache_creation: if writes { fresh } else { 0 },
                cache_read: prompt - fresh,
                output: usage.output,
            }
        };
        OriginalUsage {
            bounded: usage_of(record.saved.without),
            unbounded: usage_of(before),
        }
    }
}

impl OriginalUsage {
    /// An unchanged request costs what it cost.
    fn of_unchanged(usage: Usage) -> Self {
        Self {
            bounded: usage,
            unbounded: usage,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Dialect;

    fn record(time_ms: u64, before: u64, after: u64, usage: Usage) -> Record {
        Record {
            time_ms,
            dialect: Some(Dialect::Messages),
            action: RecordAction::Edited,
            model: "claude-opus-5-5".to_owned(),
            session: "s".to_owned(),
            status: 200,
            tokens_before: before,
            tokens_after: after,
            saved: SavedTokens::of_changed(before, after, Some(usage.prompt()), None),
            usage: Some(usage),
            ..Record::default()
        }
    }

    /// The same of a call that took `usage` and nothing else.
    fn as_it_came(action: RecordAction, before: u64, usage: Usage) -> Record {
        Record {
            action,
            saved: SavedTokens::of_unchanged(usage.prompt()),
            ..record(1_000, before, 10_000, usage)
        }
    }

    fn savings() -> Savings {
        Savings::new(Catalogue::embedded())
    }

    #[test]
    fn without_a_cache_every_token_counts() {
        let mut savings = savings();
        let usage = Usage {
            input: 10_000,
            ..Usage::default()
        };
        savings.add(&record(1, 110_000, 10_000, usage));
        savings.add(&record(2, 110_000, 10_000, usage));
        let total = savings.total();
        // 200,000 tokens at $4 a million.
        assert!((total.saved - 0.8).abs() < 1e-9, "{total:?}");
        assert_eq!(total.tokens.saved(), 200_000);
    }

    #[test]
    fn earlier_prompt_counts_as_cached() {
        let mut savings = savings();
        let first = Usage {
            cache_creation: 10_000,
            ..Usage::default()
        };
        savings.add(&record(1_000, 110_000, 10_000, first));
        let at_first = savings.total().saved;
        let second = Usage {
            cache_read: 10_000,
            cache_creation: 1_000,
            ..Usage::default()
        };
        savings.add(&record(2_000, 121_000, 11_000, second));
        // 100,000 more read from the cache and 10,000 more written to it.
        let prices = Catalogue::embedded()
            .find("claude-opus-5-5")
            .unwrap()
            .model
            .prices
            .unwrap();
        let expected = prices.cache_read.of(100_000) + prices.cache_write.of(10_000);
        let gained = savings.total().saved - at_first;
        assert!((gained - expected.dollars()).abs() < 1e-9, "{gained}");
    }

    #[test]
    fn broken_cache_reduces_the_savings() {
        let mut savings = savings();
        let first = Usage {
            cache_creation: 10_000,
            ..Usage::default()
        };
        savings.add(&record(1_000, 10_000, 10_000, first));
        // All but nothing was cut, and the cache had to be written anew.
        savings.add(&record(2_000, 10_100, 10_000, first));
        assert!(savings.total().saved < 0.0);
    }

    #[test]
    fn unchanged_request_saves_nothing() {
        let mut savings = savings();
        let usage = Usage {
            input: 100,
            cache_read: 9_000,
            cache_creation: 900,
            output: 50,
        };
        // Whatever the estimates say.
        for (action, before) in [
            (RecordAction::Unchanged, 10_000),
            (RecordAction::Observed, 90_000),
        ] {
            savings.add(&as_it_came(action, before, usage));
        }
        assert!(savings.total().saved.abs() < 1e-12);
        assert_eq!(savings.total().tokens.saved(), 0);
        assert_eq!(savings.total().observed, 80_000);
    }

    #[test]
    fn summaries_reduce_the_savings() {
        let mut savings = savings();
        let usage = Usage {
            input: 100_000,
            ..Usage::default()
        };
        let asked = Record {
            action: RecordAction::Asked,
            saved: SavedTokens::of_extra(usage.prompt()),
            ..record(1, 0, 0, usage)
        };
        savings.add(&asked);
        let total = savings.total();
        // 100,000 tokens at $4 a million.
        assert!((total.spent - 0.4).abs() < 1e-9, "{total:?}");
        assert!((total.saved + 0.4).abs() < 1e-9, "{total:?}");
        assert_eq!((total.calls, total.summaries), (0, 1));
        assert_eq!(total.tokens.saved(), -100_000);
    }

    #[test]
    fn retrieval_rounds_reduce_the_savings() {
        let mut savings = savings();
        let usage = Usage {
            input: 10_000,
            ..Usage::default()
        };
        savings.add(&record(1, 110_000, 10_000, usage));
        let before = savings.total().clone();
        let mut asked = Record {
            hidden: Some(usage),
            ..record(2, 110_000, 10_000, usage)
        };
        asked.saved += SavedTokens::of_extra(usage.prompt());
        savings.add(&asked);
        let total = savings.total();
        // Twice 10,000 tokens at $4 a million were spent, once 10,000 of them on asking.
        assert!(
            (total.spent - before.spent - 0.08).abs() < 1e-9,
            "{total:?}"
        );
        assert!(
            (total.saved - before.saved - 0.36).abs() < 1e-9,
            "{total:?}"
        );
        assert_eq!(total.tokens.saved() - before.tokens.saved(), 90_000);
    }

    #[test]
    fn oversized_call_counts_as_a_full_window() {
        let mut savings = savings();
        let usage = Usage {
            input: 10_000,
            ..Usage::default()
        };
        savings.add(&Record {
            saved: SavedTokens::of_changed(110_000, 10_000, Some(10_000), Some(60_000)),
            beyond_window: 50_000,
            ..record(1, 110_000, 10_000, usage)
        });
        let total = savings.total();
        assert_eq!(total.tokens.saved(), 50_000);
        // 50,000 tokens at $4 a million, and 100,000 if the window had room for them.
        assert!((total.saved - 0.2).abs() < 1e-9, "{total:?}");
        assert!((total.saved_unbounded - 0.4).abs() < 1e-9, "{total:?}");
        assert_eq!(total.tokens.over_window, 1);
    }

    #[test]
    fn new_part_of_an_oversized_call_is_not_cached() {
        let mut savings = savings();
        let usage = Usage {
            cache_read: 9_000,
            cache_creation: 1_000,
            ..Usage::default()
        };
        let call = |time_ms, came| Record {
            saved: SavedTokens::of_changed(came, 10_000, Some(10_000), Some(60_000)),
            beyond_window: came - 60_000,
            ..record(time_ms, came, 10_000, usage)
        };
        savings.add(&call(1, 100_000));
        let before = savings.total().clone();
        savings.add(&call(2, 120_000));
        let model = savings.priced("claude-opus-5-5").unwrap();
        let cost = |cache_read, cache_creation| {
            let usage = Usage {
                cache_read,
                cache_creation,
                ..Usage::default()
            };
            model.cost(&usage).unwrap().dollars()
        };
        let total = savings.total();
        let saved = total.saved - before.saved;
        let expected = cost(40_000, 20_000) - cost(9_000, 1_000);
        assert!((saved - expected).abs() < 1e-9, "{saved} {expected}");
        let unbounded = total.saved_unbounded - before.saved_unbounded;
        let expected = cost(100_000, 20_000) - cost(9_000, 1_000);
        assert!((unbounded - expected).abs() < 1e-9, "{unbounded}");
    }

    #[test]
    fn unknown_prices_are_reported() {
        let mut savings = savings();
        let usage = Usage {
            input: 1,
            ..Usage::default()
        };
        let unknown = Record {
            model: "zzz".to_owned(),
            ..record(1, 1, 1, usage)
        };
        savings.add(&unknown);
        assert_eq!(savings.total().unpriced, 1);
    }
}
