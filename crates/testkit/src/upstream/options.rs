//! How an upstream behaves.

use super::{Count, FaultSchedule, OverflowForm, PromptCacheRules, ReplySource};

/// How an upstream behaves.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own, and always set by name"
)]
pub struct UpstreamOptions {
    /// Where the replies come from.
    pub source: ReplySource,
    /// How many tokens the model takes; none for no limit.
    pub window: Option<u64>,
    /// How tokens are counted.
    pub count: Count,
    /// How a prompt that is too long is refused.
    pub overflow: OverflowForm,
    /// Whether the limit of the answer counts against the window too, where the provider has
    /// such a rule (Chat Completions and Messages).
    pub answer_counts: bool,
    /// Whether reasoning is signed against everything before it, and checked when it returns.
    pub sign: bool,
    /// How the prompt cache works.
    pub cache: PromptCacheRules,
    /// What goes wrong with which answer.
    pub faults: FaultSchedule,
    /// The key that requests must present; none takes any or none.
    pub key: Option<String>,
    /// Whether a Messages request may end with words put into the model's mouth.
    pub prefill: bool,
    /// Fields of a request that the model does not take: it refuses them as unsupported, which
    /// is no fault of the client.
    pub unsupported: Vec<String>,
    /// Whether Messages knows the setting that drops stale reasoning.
    pub block_binding: bool,
    /// Whether every value of `anthropic-beta` is refused as unknown.
    pub unknown_betas: bool,
    /// Whether every model of Messages binds its reasoning, whatever is known of its name.
    pub binds_always: bool,
    /// Whether the bodies of requests are kept for
    /// [`Upstream::requests`](super::Upstream::requests).
    pub keep_bodies: bool,
    /// The models that are listed.
    pub models: Vec<String>,
}

impl UpstreamOptions {
    /// Strict, without window, signatures and faults; replies from `source`.
    pub fn new(source: ReplySource) -> Self {
        Self {
            source,
            window: None,
            count: Count::default(),
            overflow: OverflowForm::default(),
            answer_counts: true,
            sign: false,
            cache: PromptCacheRules::default(),
            faults: FaultSchedule::none(),
            key: None,
            prefill: false,
            unsupported: Vec::new(),
            block_binding: true,
            unknown_betas: false,
            binds_always: false,
            keep_bodies: true,
            models: vec!["scripted".to_owned()],
        }
    }
}

impl Default for UpstreamOptions {
    /// A model that only ever says `done`.
    fn default() -> Self {
        Self::new(ReplySource::default())
    }
}
