//! When old rounds become a summary, and what survives.

use serde::{Deserialize, Serialize};

use crate::compaction::keep_rules::KeepRule;
use crate::compaction::prompt::SummaryPrompt;
use crate::compaction::rebuild::SummaryPlacement;
use crate::compaction::request::SummaryRequestForm;
use crate::trigger::{Trigger, TriggerRule};

/// A moment at which it is asked whether it is time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before every call of the model.
    BeforeCall,
    /// An answer came, with its usage; its calls are still to be carried out.
    AfterAnswer,
    /// The outputs of a round are all there.
    AfterOutputs,
    /// The last answer of a turn came and is about to be given to the user.
    BeforeFinal,
    /// A turn has ended.
    AfterTurn,
    /// Somebody asked for it.
    ByHand,
}

/// What a compaction leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// A summary and whatever `keep_rules` says.
    #[default]
    Summary,
    /// Nothing but the system part and the newest user message, without a summary.
    Deletion,
    /// A summary and the newest messages that fit half the window.
    SlidingWindow,
    /// The same as `summary`: what `keep_rules` selects, and a summary of the rest.
    Selective,
    /// `selective` where tools were called, `deletion` below five messages, else
    /// `sliding_window` (design `checkpoint`).
    Automatic,
}

/// What happens to reasoning that its provider binds to the bytes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundReasoning {
    /// Signed reasoning behind a change is left out: a provider that checks would refuse it.
    #[default]
    Strip,
    /// It stays, for a provider that does not check.
    Keep,
}

/// How a summary is checked against what it replaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummaryAuditSettings {
    /// True to look up in it the facts of what is replaced, and to report how many it has.
    pub enabled: bool,
    /// The most that a block of the facts which it lost may take, in tokens; 0 for no block.
    /// Never more than a twentieth of the window.
    pub block_tokens: u64,
}

impl Default for SummaryAuditSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            block_tokens: 2_000,
        }
    }
}

/// When automatic compaction stops because it does not help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThrashSettings {
    /// So many compactions in a row without enough gain; 0 to go on for ever.
    pub passes: u32,
    /// Enough is this share of the window before, in percent, by the next true usage.
    pub gain_percent: u64,
    /// From so many compactions on a warning goes with each; 0 for never.
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

/// Outputs in the part that is kept behind the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolDigest {
    /// True to archive the oldest of them and put a digest at the end (design `archive`).
    pub enabled: bool,
    /// How many stay visible.
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
    reason = "settings, each of which somebody sets by itself"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionPolicy {
    /// False: never, not even by hand.
    pub enabled: bool,
    /// False: only by hand, also not on overflow.
    pub auto: bool,
    /// When it is asked whether it is time.
    pub moments: Vec<Moment>,
    /// Any of these says that it is, or the first that can be judged: see `rule`.
    pub when: Vec<Trigger>,
    /// How the conditions of `when` go together.
    pub rule: TriggerRule,
    /// True to write summaries while the agent goes on, where the moment allows it.
    pub background: bool,
    /// The model that writes summaries; empty for the one that the agent uses.
    pub model: String,
    /// The window of that model, in tokens; 0 for the window of the agent's model.
    pub model_window: u64,
    /// The most a summary may take, in tokens. Never more than a tenth of the window.
    pub summary_tokens: u64,
    /// What it leaves.
    pub strategy: Strategy,
    /// How the summariser is asked.
    pub form: SummaryRequestForm,
    /// What the summariser is asked to write.
    pub prompt: SummaryPrompt,
    /// What survives, besides the system part and the newest user message.
    pub keep: Vec<KeepRule>,
    /// What is kept behind the summary never takes more than this share of the window, in
    /// percent. A turn that is larger is compacted inside, between two rounds.
    pub keep_percent: u64,
    /// Where the summary goes.
    pub placement: SummaryPlacement,
    /// First words by which summaries of other tools are known.
    pub summary_prefixes: Vec<String>,
    /// Outputs in the part that is kept behind the summary.
    pub digest: ToolDigest,
    /// True to name in the window the ref of what was replaced, also for a model that has no
    /// retrieval tools. Where it has them the ref is always named.
    pub show_ref: bool,
    /// True to write a summary without a model where the summariser fails; false to leave the
    /// conversation as it is while it fits.
    pub fallback: bool,
    /// How a summary is checked against what it replaces.
    pub audit: SummaryAuditSettings,
    /// When automatic compaction stops because it does not help.
    pub thrash: ThrashSettings,
    /// What happens to reasoning that is bound to the bytes before it.
    pub bound_reasoning: BoundReasoning,
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
            audit: SummaryAuditSettings::default(),
            thrash: ThrashSettings::default(),
            bound_reasoning: BoundReasoning::default(),
        }
    }
}
