//! The results of the demo.

use serde::Serialize;
use trimtab_model::{SavedTokens, Usage};
use trimtab_wire::catalogue::ModelInfo;

use crate::proxy::savings::SavingsTotal;

/// The results of the demo.
#[derive(Debug, Serialize)]
pub(super) struct DemoReport {
    /// The model whose prices count.
    pub(super) model: String,
    /// The window of the model in the demo, in tokens.
    pub(super) window: u64,
    /// The preset.
    pub(super) preset: String,
    /// Calls, in order.
    pub(super) calls: Vec<DemoCall>,
    /// The session without the proxy.
    pub(super) without: RunTotals,
    /// The session through the proxy.
    pub(super) with: RunTotals,
    /// The savings as the proxy counts them, and as its dashboard shows them: a call that would not
    /// have fit the window counts as a full window.
    pub(super) counted: SavingsTotal,
    /// The first call, counted from 1, whose window would have been too large without the proxy.
    pub(super) overflows_at: Option<usize>,
    /// Requests that the strict provider rejected because they broke its rules.
    pub(super) violations: Vec<String>,
    /// Overflows that the proxy recovered from.
    pub(super) recovered: u64,
    /// Retrieval calls that the proxy served.
    pub(super) retrievals: u64,
    /// The duration in milliseconds.
    pub(super) took_ms: u64,
}

/// One call.
#[derive(Clone, Debug, Serialize)]
pub(super) struct DemoCall {
    /// A description of the call.
    pub(super) what: String,
    /// Tokens of the window without the proxy.
    pub(super) without: u64,
    /// Tokens of the window with it.
    pub(super) with: u64,
    /// The part of those that was read from the provider's cache.
    pub(super) cached: u64,
}

/// The totals of one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct RunTotals {
    /// Tokens that were sent.
    pub(super) tokens: u64,
    /// The part of those that was read from the provider's cache.
    pub(super) cached: u64,
    /// The largest window, in tokens.
    pub(super) largest: u64,
    /// The cost in dollars.
    pub(super) dollars: f64,
}

impl RunTotals {
    /// The sum of `usages`, at the prices of `model`.
    pub(super) fn of(usages: &[Usage], model: &ModelInfo) -> Self {
        let cost = |usage: &Usage| model.cost(usage).unwrap_or_default().dollars();
        Self {
            tokens: usages.iter().map(Usage::prompt).sum(),
            cached: usages.iter().map(|usage| usage.cache_read).sum(),
            largest: usages.iter().map(Usage::prompt).max().unwrap_or(0),
            dollars: usages.iter().map(cost).sum(),
        }
    }
}

impl DemoReport {
    /// The tokens that the provider counted without and with the proxy.
    pub(super) fn tokens(&self) -> SavedTokens {
        SavedTokens {
            without: self.without.tokens,
            with: self.with.tokens,
            over_window: 0,
        }
    }
}
