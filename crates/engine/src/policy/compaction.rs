//! The settings of compaction: when old rounds become a summary, and what survives.

use serde::{Deserialize, Serialize};

use super::SummaryPrompt;
use crate::trigger::{Trigger, TriggerRule};

/// A moment at which the conditions are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before every call to the model.
    BeforeCall,
    /// An answer came, with its usage; its calls are not executed yet.
    AfterAnswer,
    /// All outputs of a round are there.
    AfterOutputs,
    /// The last answer of a turn came and is about to be shown to the user.
    BeforeFinal,
    /// A turn has ended.
    AfterTurn,
}

/// What a compaction leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// A summary and what `keep` selects.
    #[default]
    Summary,
    /// Only the system messages and the newest user message, without a summary.
    Deletion,
    /// The same as `summary`. The design `checkpoint` has this name for conversations without
    /// tools.
    SlidingWindow,
    /// The same as `summary`. The design `checkpoint` has this name for conversations with tools.
    Selective,
    /// `selective` if tools were called, `deletion` below five messages, otherwise `sliding_window`
    /// (design `checkpoint`).
    Automatic,
}

/// One rule for what survives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "keep", rename_all = "snake_case")]
pub enum KeepRule {
    /// The last turns, after the summary.
    LastTurns {
        /// How many.
        turns: usize,
    },
    /// The newest messages up to a number of tokens, after the summary.
    RecentTokens {
        /// How many tokens.
        tokens: u64,
    },
    /// The newest messages, after the summary.
    RecentMessages {
        /// How many.
        messages: usize,
    },
    /// The newest messages in whole turns, after the summary: from the turn boundary nearest to a
    /// number of messages before the end (design `turns`).
    RecentTurns {
        /// The approximate number of messages.
        messages: usize,
    },
    /// User messages, newest first up to a number of tokens, before the summary.
    UserMessages {
        /// How many tokens.
        tokens: u64,
    },
    /// The same, but the newest message that does not fit is cut in its middle to the remaining
    /// budget, and no older one is taken.
    UserMessagesCut {
        /// How many tokens.
        tokens: u64,
    },
    /// Rounds that call a protected tool, after the summary.
    ProtectedTools {
        /// Names or globs of the tools.
        tools: Vec<String>,
    },
    /// Rounds with a call that has no output yet, after the summary.
    OpenCalls,
}

/// The place of the summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "placement", rename_all = "snake_case")]
pub enum SummaryPlacement {
    /// A user message, after the user's own messages and before the recent ones.
    Message {
        /// The beginning of the summary.
        prefix: String,
    },
    /// The end of the system messages. A summary that quotes outputs stands in a user message.
    System {
        /// The beginning of the summary.
        prefix: String,
    },
}

impl SummaryPlacement {
    /// The beginning of the summary.
    pub(crate) fn prefix(&self) -> &str {
        let (Self::Message { prefix } | Self::System { prefix }) = self;
        prefix
    }
}

/// The form of a request to the summariser.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SummaryRequestForm {
    /// The messages themselves, with the instructions at the end.
    #[default]
    Messages,
    /// The conversation as text in one message.
    Text,
    /// User and assistant texts in whole turns, in one batch or in two that are merged (design
    /// `turns`).
    Turns,
}

/// Settings for outputs among the messages kept after the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolDigest {
    /// True to archive the oldest of them and insert a digest at the end (design `archive`).
    pub enabled: bool,
    /// The number that stays visible.
    pub cutoff: usize,
}

impl Default for ToolDigest {
    fn default() -> Self {
        Self {
            enabled: false,
            cutoff: 10,
        }
    }
}

/// When old rounds become a summary, and what survives.
#[expect(
    clippy::struct_excessive_bools,
    reason = "settings that users set independently"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionPolicy {
    /// False: never, not even by hand.
    pub enabled: bool,
    /// False: only by hand, not even on overflow.
    pub auto: bool,
    /// When the conditions are evaluated.
    pub moments: Vec<Moment>,
    /// The conditions; see `rule` for how they are combined.
    pub when: Vec<Trigger>,
    /// How the conditions of `when` are combined.
    pub rule: TriggerRule,
    /// True to write summaries while the agent continues, if the moment allows it.
    pub background: bool,
    /// The model that writes summaries; empty for the agent's own.
    pub model: String,
    /// The window of that model, in tokens; 0 for the window of the agent's model.
    pub model_window: u64,
    /// The limit of a summary in tokens. At most a tenth of the window.
    pub summary_tokens: u64,
    /// What a compaction leaves.
    pub strategy: Strategy,
    /// The form of the request to the summariser.
    pub form: SummaryRequestForm,
    /// The instructions for the summariser.
    pub prompt: SummaryPrompt,
    /// What survives, besides the system messages and the newest user message.
    pub keep: Vec<KeepRule>,
    /// The limit of the messages kept after the summary, in percent of the window. A larger turn is
    /// compacted inside, between two rounds.
    pub keep_percent: u64,
    /// The place of the summary.
    pub placement: SummaryPlacement,
    /// The beginnings of summaries that other tools write.
    pub summary_prefixes: Vec<String>,
    /// Settings for outputs among the messages kept after the summary.
    pub digest: ToolDigest,
    /// True to name the ref of the replaced messages in the window, even for a model without
    /// retrieval tools. With these tools, the ref is always named.
    pub show_ref: bool,
    /// True to write a summary without a model if the summariser fails; false to leave the
    /// conversation unchanged while it fits.
    pub fallback: bool,
    /// From this number of compactions on, each comes with a warning; 0 for never.
    pub warn_after: u32,
}

impl Default for CompactionPolicy {
    fn default() -> Self {
        Self {
            enabled: true,
            auto: true,
            moments: vec![Moment::BeforeCall],
            when: Vec::new(),
            rule: TriggerRule::Any,
            background: false,
            model: String::new(),
            model_window: 0,
            summary_tokens: 4_000,
            strategy: Strategy::Summary,
            form: SummaryRequestForm::Messages,
            prompt: SummaryPrompt::default(),
            keep: vec![KeepRule::LastTurns { turns: 1 }],
            keep_percent: 50,
            placement: SummaryPlacement::Message {
                prefix: String::new(),
            },
            summary_prefixes: Vec::new(),
            digest: ToolDigest::default(),
            show_ref: true,
            fallback: true,
            warn_after: 4,
        }
    }
}
