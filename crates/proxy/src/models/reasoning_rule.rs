//! How edits treat the signed reasoning of a model: some models reject a request in which something
//! before their reasoning has changed.

use memchr::memmem;
use trimtab::request::binds_reasoning;
use trimtab_model::Dialect;
use trimtab_wire::json::pick;
use trimtab_wire::scan::BodyScan;

use super::KnownModel;

/// The value of `anthropic-beta` that allows the setting for stale reasoning.
pub(crate) const BINDING_BETA: &str = "thinking-binding-controls-2026-08-01";

/// How edits of one request treat signed reasoning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReasoningRule {
    /// The model rejects reasoning behind an edit, so it is removed.
    pub(crate) bound: bool,
    /// The provider can be told to drop such reasoning if any is left.
    pub(crate) may_drop: bool,
}

/// What a rejection says about the reasoning of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReasoningFault {
    /// Reasoning is bound to other messages than those that were sent.
    Stale,
    /// The provider does not know the setting for stale reasoning.
    UnknownSetting,
}

impl KnownModel {
    /// The rule for a request to this model.
    pub(crate) fn reasoning_rule(&self, scan: &BodyScan<'_>) -> ReasoningRule {
        let bound = binds_reasoning(scan, self.bound_reasoning);
        let thinking = scan.json(scan.request().thinking);
        let mode = pick(thinking, ["type"]).and_then(|[mode]| mode);
        // Without a mode such models think adaptively. The other modes do not have the setting, and
        // nobody knows whether a new model has it.
        let may_drop = bound
            && scan.dialect() == Dialect::Messages
            && self.bound_reasoning == Some(true)
            && !self.is_assumed
            && !self.no_block_binding
            && mode.is_none_or(|mode| mode == "\"adaptive\"");
        ReasoningRule { bound, may_drop }
    }
}

/// What the text of a rejection says about reasoning, if anything.
pub(crate) fn reasoning_fault(error: &[u8]) -> Option<ReasoningFault> {
    let says = |words: &str| memmem::find(error, words.as_bytes()).is_some();
    // An error about stale reasoning also names the setting, as its cure.
    if says("bound to a different conversation")
        || says("Invalid `signature` in `thinking` block")
        || says("invalid_encrypted_content")
    {
        Some(ReasoningFault::Stale)
    } else if says("block_binding") {
        Some(ReasoningFault::UnknownSetting)
    } else {
        None
    }
}
