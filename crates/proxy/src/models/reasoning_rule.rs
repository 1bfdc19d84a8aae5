//! How edits treat the signed reasoning of a model: some models reject a request in which something
//! before their reasoning has changed.

use bytes::Bytes;
use memchr::memmem;
use trimtab::request::{binds_reasoning, is_stale_reasoning};
use trimtab_model::Dialect;
use trimtab_wire::json::pick;
use trimtab_wire::scan::{BodyScan, PartKind};
use trimtab_wire::splice::{BodyChange, splice};

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
    /// A signature is damaged, or belongs to another account. That says nothing about the model.
    Damaged,
    /// The provider does not know the setting for stale reasoning.
    UnknownSetting,
}

impl KnownModel {
    /// The rule for a request to this model.
    pub(crate) fn reasoning_rule(&self, scan: &BodyScan<'_>) -> ReasoningRule {
        let bound = binds_reasoning(scan, self.bound_reasoning);
        let thinking = scan.json(scan.request().thinking);
        let mode = pick(thinking, ["type"]).and_then(|[mode]| mode);
        let is_listed = self
            .model
            .as_ref()
            .is_some_and(|model| model.rules.bound_reasoning && !self.is_assumed);
        // Other modes do not have the setting. A request without a mode gets none, because that
        // could switch the reasoning on.
        let may_drop = bound
            && scan.dialect() == Dialect::Messages
            && is_listed
            && !self.no_block_binding
            && mode == Some("\"adaptive\"");
        ReasoningRule { bound, may_drop }
    }
}

fn has_signed_reasoning(scan: &BodyScan<'_>) -> bool {
    let signed = PartKind::Reasoning { sealed: true };
    let mut parts = (0..scan.len()).flat_map(|at| scan.parts(at));
    parts.any(|part| part.kind == signed)
}

/// A request of Messages without any reasoning, which is valid whatever stands before it. None if
/// it has no signed reasoning.
pub(crate) fn without_reasoning(body: &[u8]) -> Option<Bytes> {
    let scan = BodyScan::new(body, Dialect::Messages).ok()?;
    let strip = BodyChange::StripReasoning { before: scan.len() };
    let stripped = has_signed_reasoning(&scan).then(|| splice(&scan, &[strip]).ok());
    Some(Bytes::from(stripped??.body.into_owned()))
}

/// What the text of a rejection says about reasoning, if anything.
pub(crate) fn reasoning_fault(error: &[u8]) -> Option<ReasoningFault> {
    let says = |words: &str| memmem::find(error, words.as_bytes()).is_some();
    // An error about stale reasoning also names the setting, as its cure.
    if is_stale_reasoning(error) {
        Some(ReasoningFault::Stale)
    } else if says("Invalid `signature` in `thinking` block") || says("invalid_encrypted_content") {
        Some(ReasoningFault::Damaged)
    } else if ["block_binding", BINDING_BETA, "beta flag"]
        .into_iter()
        .any(says)
    {
        Some(ReasoningFault::UnknownSetting)
    } else {
        None
    }
}
