//! The settings of compaction: when old rounds become a summary, and what survives.

use serde::{Deserialize, Serialize};

use crate::compaction::keep_rules::KeepRule;
use crate::compaction::prompt::SummaryPrompt;
use crate::compaction::rebuild::SummaryPlacement;
use crate::compaction::request::SummaryRequestForm;
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
    /// A user asked for it.
    ByHand,
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

/// When automatic compaction stops because it does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThrashSettings {
    /// The number of compactions in a row without enough gain; 0 to never stop.
    pub passes: u32,
    /// The gain that is enough, in percent of the window before, by the next reported usage.
    pub gain_percent: u64,
    /// From this number of compactions on, each comes with a warning; 0 for never.
    pub warn_after: u32,
}

impl Default for ThrashSettings {
    fn default() -> Self {
        Self {
            passes: 2,
            gain_percent: 10,
            warn_after: 4,
        }
    }
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
    /// When automatic compaction stops because it does not help.
    pub thrash: ThrashSettings,
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
            thrash: ThrashSettings::default(),
        }
    }
}
