//! Adds up the savings of the proxy, in tokens and in money.
//!
//! Tokens are the sum of `Record::saved`. Money compares the provider's reported usage with the
//! estimated cost of the original prompts, both at the catalogue's prices. The comparison favours
//! the original prompts: if the provider's cache is in use at all, everything that a client sent
//! before counts as cached, in whichever branch of its session. Where a model caches by markers,
//! only what the client's own markers cover counts as written or read. A call that would not have
//! fit the window counts as a full window, in tokens and in money: what is new in it as new, the
//! rest as cached. The money against a model with the same prices, whose window holds everything,
//! is a figure of its own.

use std::collections::HashSet;

use serde::Serialize;
use trimtab_model::{SavedTokens, Usage};
use trimtab_wire::catalogue::{Catalogue, ModelInfo};

use crate::models::catalogue_lookups::CatalogueLookups;
use crate::records::record::{Record, RecordAction};

/// The number of client sessions in each of the two generations.
const SESSIONS: usize = 4_096;

/// The savings so far.
pub struct Savings {
    catalogue: CatalogueLookups,
    /// The client sessions that used the provider's cache.
    caching: HashSet<String>,
    /// The older generation. A session moves back when it is used again.
    older_caching: HashSet<String>,
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

/// What the provider's cache would have done with an original prompt, in tokens from its front.
#[derive(Clone, Copy)]
struct OriginalCache {
    /// The part that would have been read.
    read: u64,
    /// The part that would have been in the cache after the call.
    kept: u64,
    /// The part that would have been written for the long lifetime, unless it was read.
    kept_long: u64,
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
            catalogue: CatalogueLookups::new(catalogue),
            caching: HashSet::new(),
            older_caching: HashSet::new(),
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
        let caches = self.note_cache_use(record, &usage);
        let original = if record.action == RecordAction::Edited {
            let minimum = model.cache.minimum.unwrap_or(0);
            OriginalUsage::of_edited(record, &usage, &OriginalCache::of(record, caches, minimum))
        } else {
            OriginalUsage::of_unchanged(record, usage)
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

    /// True if the client session has used the provider's cache: a later call without hits is a
    /// miss. Unused sessions are forgotten, so that clients with many sessions cannot fill the
    /// memory.
    fn note_cache_use(&mut self, record: &Record, usage: &Usage) -> bool {
        let name = &record.client_session;
        if self.caching.contains(name) {
            return true;
        }
        let uses_now = usage.cache_read > 0 || usage.cache_creation > 0;
        let is_known = self.older_caching.remove(name);
        if uses_now || is_known {
            if self.caching.len() >= SESSIONS {
                self.older_caching = std::mem::take(&mut self.caching);
            }
            self.caching.insert(name.clone());
        }
        uses_now || is_known
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
    pub(crate) fn priced(&mut self, name: &str) -> Option<ModelInfo> {
        let found = self.catalogue.find(name)?.model;
        Some(found).filter(|model| model.prices.is_some())
    }
}

impl OriginalCache {
    /// `caches` is true if the client session uses the provider's cache, which keeps no prefix
    /// below `minimum` tokens.
    fn of(record: &Record, caches: bool, minimum: u64) -> Self {
        let before = record.saved.without + record.beyond_window;
        let usage = record.usage.unwrap_or_default();
        // A provider that caches without being asked does so for the original prompt as well.
        let marked = record.marked.filter(|marked| marked.all > 0 || !caches);
        let known = marked.is_some() || caches;
        let recently = record.sent_before.recently;
        // On the first call since a restart, hits show that the conversation was sent not long ago.
        // They must be most of the prompt: other conversations have the same instructions. Later
        // calls hit what the calls before them sent.
        let is_warm = recently == 0 && usage.cache_read > usage.prompt() / 2;
        let sent = [
            Some(recently).filter(|_| known),
            Some(record.sent_before.sometime).filter(|_| is_warm),
        ];
        // Tokens that hit the cache now would also have hit it without the proxy.
        let read = usage.cache_read.saturating_sub(record.our_tools);
        let sent = sent.into_iter().flatten().fold(read, u64::max);
        let Some(marked) = marked else {
            // If the provider bills writes now, it would have billed them for this part too.
            let writes = usage.cache_creation > 0;
            return Self {
                read: sent,
                kept: if writes { before } else { sent },
                kept_long: 0,
            };
        };
        let large = |tokens: u64| if tokens < minimum { 0 } else { tokens };
        let kept = large(marked.all.min(before));
        Self {
            read: large(sent.min(kept)),
            kept,
            kept_long: marked.long.min(kept),
        }
    }
}

impl OriginalUsage {
    /// Estimates the usage that the original of an edited request would have had.
    fn of_edited(record: &Record, usage: &Usage, cache: &OriginalCache) -> Self {
        let before = record.saved.without + record.beyond_window;
        let usage_of = |prompt: u64| {
            // Whatever had to be left out of a full window, it was not what is new.
            let input = before
                .saturating_sub(cache.kept.max(cache.read))
                .min(prompt);
            let written = cache.kept.saturating_sub(cache.read).min(prompt - input);
            let long = cache.kept_long.saturating_sub(cache.read);
            Usage {
                input,
                cache_creation: written,
                cache_creation_long: long.min(written),
                cache_read: prompt - input - written,
                ..*usage
            }
        };
        Self {
            bounded: usage_of(record.saved.without),
            unbounded: usage_of(before),
        }
    }

    /// A request with the client's own messages costs what it cost, without our tools before them.
    /// They are read from the cache if anything is.
    fn of_unchanged(record: &Record, mut usage: Usage) -> Self {
        let mut ours = record.our_tools;
        let kinds = [
            &mut usage.cache_read,
            &mut usage.cache_creation,
            &mut usage.input,
        ];
        for tokens in kinds {
            let part = ours.min(*tokens);
            *tokens -= part;
            ours -= part;
        }
        usage.cache_creation_long = usage.cache_creation_long.min(usage.cache_creation);
        Self {
            bounded: usage,
            unbounded: usage,
        }
    }
}

#[cfg(test)]
mod tests;
