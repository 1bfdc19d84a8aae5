//! Policies: every setting that decides what goes into a window, and the presets.
//!
//! The five designs and our own policy are data for the same engine. A [`Policy`] says how a new
//! output is shown ([`views`](Policy::views)), what happens to old outputs
//! ([`ageing`](Policy::ageing)), when old rounds become a summary and what survives
//! ([`compaction`](Policy::compaction)), and how to react to an overflow
//! ([`recovery`](Policy::recovery)). A preset is a policy with a name.

mod ageing;
mod check;
mod compaction;
mod compaction_timing;
mod estimate;
mod idle_settings;
mod presets;
mod prompt;
mod recovery;

use serde::{Deserialize, Serialize};

use crate::normalise::OpenCallRepair;
use crate::view::policy::ViewPolicy;

pub use ageing::{
    Ageing, ArchiveAgeing, PlaceholderAgeing, PrefixAgeing, RewriteAgeing, ToolSummaries,
};
pub use check::BadSetting;
pub use compaction::{
    CompactionPolicy, KeepRule, Moment, Strategy, SummaryPlacement, SummaryRequestForm, ToolDigest,
};
pub use estimate::EstimateBy;
pub use presets::{PRESETS, Preset, UnknownPreset, preset_file};
pub use prompt::SummaryPrompt;
pub use recovery::{RecoveryPolicy, Rung};

/// Everything that decides what goes into a window.
///
/// ```
/// use trimtab_engine::policy::Policy;
///
/// let policy = Policy::preset("refs")?;
/// assert!(policy.ageing.placeholder.enabled);
/// assert_eq!(policy.compaction.when[0].to_string(), "usage >= 0.8 x window");
/// # Ok::<_, trimtab_engine::policy::UnknownPreset>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Policy {
    /// The preset that it is based on.
    pub preset: String,
    /// True to make every window fit its budget, whatever the other settings say; false to send
    /// everything, as the preset `none` does.
    pub fit: bool,
    /// What to do with a call without an output.
    pub repair: OpenCallRepair,
    /// How tokens are estimated for the triggers and budgets of this policy.
    pub estimate: EstimateBy,
    /// The steps before a call whose window would not fit, in this order.
    pub ladder: Vec<Rung>,
    /// How a new output is shown.
    pub views: ViewPolicy,
    /// What happens to old outputs.
    pub ageing: Ageing,
    /// When old rounds become a summary, and what survives.
    pub compaction: CompactionPolicy,
    /// How to react to an overflow.
    pub recovery: RecoveryPolicy,
}
