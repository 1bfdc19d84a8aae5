//! What happens to old outputs.

use serde::{Deserialize, Serialize};

use crate::compaction::archive::ToolSummaries;
use crate::steady::Steady;
use crate::view::trim::OutputBudget;

/// What happens to outputs that are in the window already. Each way can be switched on by
/// itself; several go together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ageing {
    /// The oldest become placeholders until all outputs fit a budget (design `refs`).
    pub placeholder: Placeholders,
    /// All but the newest batch keep their first chars (design `retention`).
    pub prefix: Prefixes,
    /// The oldest are archived and a summary stands for them (design `archive`).
    pub archive: Archiving,
    /// They are cut as they come in, and become index cards at switch points (ours).
    pub cards: Steady,
}

/// The oldest outputs become placeholders until all outputs fit a budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Placeholders {
    /// True to do it.
    pub enabled: bool,
    /// How many tokens of output a window may hold.
    pub budget: OutputBudget,
}

/// All outputs but the newest batch are cut to their first chars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prefixes {
    /// True to do it.
    pub enabled: bool,
    /// Above this many input tokens of the last call.
    pub input_budget: u64,
    /// How many chars stay.
    pub chars: usize,
}

impl Default for Prefixes {
    fn default() -> Self {
        Self {
            enabled: false,
            input_budget: 40_000,
            chars: 500,
        }
    }
}

/// The oldest visible outputs are archived, and a summary stands for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Archiving {
    /// True to do it.
    pub enabled: bool,
    /// How many outputs stay visible.
    pub cutoff: usize,
    /// Who writes what stands for them.
    pub summaries: ToolSummaries,
}

impl Default for Archiving {
    fn default() -> Self {
        Self {
            enabled: false,
            cutoff: 10,
            summaries: ToolSummaries::Llm,
        }
    }
}
