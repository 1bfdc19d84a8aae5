//! The digest that represents old outputs after a summary (design `archive`).

use trimtab_model::{Message, Output};

use crate::compaction::archive;
use crate::normalise::Slot;
use crate::plan::Edit;
use crate::policy::ToolDigest;
use crate::view::WindowOutputs;

/// Archives the oldest outputs of the `recent` slots, with a digest at the end of a log of `length`
/// messages. Returns the edits and the outputs.
pub(super) fn edits(
    digest: &ToolDigest,
    recent: &[&Slot],
    can_retrieve: bool,
    length: usize,
) -> (Vec<Edit>, Vec<Output>) {
    if !digest.enabled {
        return Default::default();
    }
    let messages: Vec<&Message> = recent.iter().map(|slot| &*slot.message).collect();
    let outputs = WindowOutputs::of(&messages);
    let over = archive::excess(&outputs, digest.cutoff, 0);
    let slots = over.iter().filter_map(|at| recent.get(*at));
    let positions: Vec<usize> = slots.filter_map(|slot| slot.source.in_log()).collect();
    if positions.is_empty() {
        return Default::default();
    }
    let mut edits = archive::archive(&positions);
    let outputs = archive::outputs_at(&outputs, &over);
    let text = archive::digest(outputs.iter(), can_retrieve);
    edits.push(Edit::insert(length, text));
    (edits, outputs)
}
