//! A request, read and judged.

use serde_json::Value;
use trimtab_model::{Dialect, Role};
use trimtab_wire::scan::BodyScan;

use super::cache::CachedTokens;
use super::canonical::CanonicalPrompt;
use super::exchange::UpstreamExchange;
use super::model_rules::{BINDING_BETA, ModelRules, unknown_beta};
use super::refusal::ProviderRefusal;
use super::rules::{self, BrokenRule};
use super::{ReceivedRequest, binding};

/// A request that could be read.
pub(super) struct JudgedPrompt {
    pub(super) body: Value,
    pub(super) canonical: CanonicalPrompt,
    /// The tokens that have to do with the cache.
    pub(super) cached: CachedTokens,
}

impl JudgedPrompt {
    /// Reads the body of `received`, notes what it says there, and judges it.
    pub(super) fn read(
        received: &mut ReceivedRequest,
        dialect: Dialect,
        exchange: &UpstreamExchange,
    ) -> Result<(Self, Vec<BrokenRule>), ProviderRefusal> {
        let bytes = received.body.clone();
        let body: Value = serde_json::from_slice(&bytes)
            .map_err(|error| ProviderRefusal::not_json(dialect, &error.to_string()))?;
        let scan = BodyScan::new(&bytes, dialect)
            .map_err(|error| unreadable(dialect, &error.to_string()))?;
        note(received, &scan);
        received.tokens = exchange.options.count.prompt(&scan);
        let canonical = CanonicalPrompt::new(&body, dialect);
        let mut broken = rules::judge(&body, &scan, received, exchange.options.prefill);
        if dialect == Dialect::Messages {
            let knows = exchange.options.block_binding;
            let has_beta = received.has_beta(BINDING_BETA);
            broken.extend(ModelRules::of(&received.model).judge(&body, has_beta, knows));
            if exchange.options.unknown_betas && has_beta {
                broken.push(unknown_beta());
            }
        }
        if exchange.options.sign {
            let thoughts = &exchange.state().thoughts;
            let always = exchange.options.binds_always;
            broken.extend(binding::judge(
                &body, &canonical, received, thoughts, always,
            ));
        }
        let mut prompt = Self {
            body,
            canonical,
            cached: CachedTokens::default(),
        };
        if broken.is_empty() {
            prompt.cached = prompt.see(received, dialect, exchange);
        }
        Ok((prompt, broken))
    }

    /// Notes how much of the prompt an earlier one began with; what that means for the cache.
    fn see(
        &self,
        received: &mut ReceivedRequest,
        dialect: Dialect,
        exchange: &UpstreamExchange,
    ) -> CachedTokens {
        let cache = &exchange.options.cache;
        let (model, tokens) = (&received.model, received.tokens);
        let mut state = exchange.state();
        let known = state.fronts.see(model, &self.canonical.bytes);
        let read = cache.tokens(tokens, known, self.canonical.bytes.len());
        let cached = if cache.by_markers && dialect == Dialect::Messages {
            cache.marked(&mut state.written, model, &self.canonical, tokens)
        } else {
            CachedTokens {
                read,
                ..CachedTokens::default()
            }
        };
        received.stable = read;
        cached
    }
}

/// Notes what a body says.
fn note(received: &mut ReceivedRequest, scan: &BodyScan<'_>) {
    received.model = scan.model().unwrap_or_default().into_owned();
    received.stream = scan.is_stream();
    received.answer_limit = scan.answer_limit();
    received.messages = scan.len();
    let user = (0..scan.len()).find(|at| scan.role(*at) == Some(Role::User));
    let text = |at: usize| {
        let message = scan.message(at);
        message.map(|message| message.text().into_owned())
    };
    received.first_user = user.and_then(text).unwrap_or_default();
    let last = scan.len().checked_sub(1);
    received.last = last.and_then(text).unwrap_or_default();
    let tools = scan.request().tool_list.iter();
    let names = tools.filter_map(|tool| scan.string(tool.name));
    received.tools = names.map(std::borrow::Cow::into_owned).collect();
}

fn unreadable(dialect: Dialect, problem: &str) -> ProviderRefusal {
    match dialect {
        Dialect::Messages => ProviderRefusal::anthropic(format!("messages: {problem}")),
        Dialect::Chat | Dialect::Responses => ProviderRefusal::openai(problem, None, None),
    }
}
