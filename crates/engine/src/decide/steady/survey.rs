//! Divides a window into segments that stay or go as a whole.

use std::collections::HashSet;

use trimtab_model::rounds::{self, Pairing};
use trimtab_model::{Call, MessageKind, Role};

use crate::decide::ConversationState;
use crate::decide::must_stay::MustStay;
use crate::digest::tool_use::runs;
use crate::normalise::Slot;
use crate::observation::outputs_of;
use crate::removal::SafeCuts;
use crate::view::policy::CompiledViews;
use crate::view::tools::is_retrieval;

/// What a rewrite may do with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// It always stays: instructions, the task, the newest question, outputs of protected tools,
    /// what a model has summarised, and what the provider must see.
    Stays,
    /// A round with files or searches, which later calls are likely to need again.
    Reads,
    /// Everything else: other rounds, older messages of the user.
    Goes,
    /// The digest of an earlier rewrite. A new one replaces it.
    Digest,
}

/// Slots that stay or go together.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub(super) kind: SegmentKind,
    /// The first slot.
    pub(super) start: usize,
    /// The first slot after it.
    pub(super) end: usize,
    pub(super) tokens: u64,
}

/// The newest outputs always stay.
const NEWEST_OUTPUTS: usize = 2;

/// Divides the window into segments, and finds out what each is.
pub(super) fn survey(conversation: &ConversationState<'_>) -> Vec<Segment> {
    let slots = conversation.slots;
    let pairing = rounds::pair(slots);
    // Archived messages are not sent, so they cost nothing.
    let weigh = |(number, slot): (usize, &Slot)| {
        let measure = conversation.measure_of_slot(number);
        let sent = measure.filter(|_| slot.message.agent_visible());
        sent.map_or(0, |measure| conversation.call.weigh(&measure))
    };
    let tokens: Vec<u64> = slots.iter().enumerate().map(weigh).collect();
    let mut segments = segments(slots, &pairing, &tokens);
    judge(&mut segments, conversation, &pairing);
    keep_newest(&mut segments, slots);
    segments
}

/// Finds out what each segment is.
fn judge(segments: &mut [Segment], conversation: &ConversationState<'_>, pairing: &Pairing) {
    let slots = conversation.slots;
    let views = CompiledViews::new(&conversation.policy.views).unwrap_or_default();
    let mut calls: Vec<Vec<&Call>> = vec![Vec::new(); slots.len()];
    for (place, answer) in &pairing.outputs {
        if let Some(calls) = calls.get_mut(place.message) {
            calls.extend(pairing.call_of(slots, *answer));
        }
    }
    let must = MustStay::of(conversation, slots);
    let mut read_again: HashSet<(String, String)> = HashSet::new();
    for segment in segments.iter_mut().rev() {
        let range = segment.start..segment.end;
        let held = slots.get(range.clone()).unwrap_or_default();
        let is_fixed =
            |slot: &Slot| slot.message.role == Role::System || slot.source.in_log().is_none();
        let stays = |at: usize| {
            must.task.contains(&at)
                || must.question == Some(at)
                || must.of_provider.contains(&at)
                || slots.get(at).is_some_and(is_fixed)
        };
        let answered = calls
            .get(range.clone())
            .unwrap_or_default()
            .iter()
            .flatten();
        let is_protected = |call: &&&Call| views.protects(&call.name) && !is_retrieval(&call.name);
        segment.kind = if held.iter().any(super::is_digest_slot) {
            SegmentKind::Digest
        } else if range.clone().any(stays) || answered.clone().any(|call| is_protected(&call)) {
            SegmentKind::Stays
        } else {
            let is_read = |call: &&&Call| !runs(call) && !is_retrieval(&call.name);
            // What was read again later is in the newer round.
            let mut reads = false;
            for call in answered.filter(is_read) {
                reads |= read_again.insert((call.name.clone(), call.arguments.clone()));
            }
            let is_observed =
                |slot: &Slot| slot.message.meta.kind == Some(MessageKind::Observation);
            // A cut output cannot be shown in full again, so it does not take this room.
            let mut outputs = held.iter().flat_map(|slot| outputs_of(&slot.message));
            let is_cut = outputs.any(|(_, output)| output.trimmed);
            if (reads || held.iter().any(is_observed)) && !is_cut {
                SegmentKind::Reads
            } else {
                SegmentKind::Goes
            }
        };
    }
}

/// Keeps the newest round with everything behind it, and the newest outputs.
fn keep_newest(segments: &mut [Segment], slots: &[Slot]) {
    let outputs = slots.iter().enumerate().rev();
    let outputs = outputs.filter(|(_, slot)| outputs_of(&slot.message).next().is_some());
    let newest_output = outputs.map(|(at, _)| at).nth(NEWEST_OUTPUTS - 1);
    let mut is_newest = true;
    for segment in segments.iter_mut().rev() {
        if !is_newest && newest_output.is_none_or(|at| segment.end <= at) {
            break;
        }
        let held = slots.get(segment.start..segment.end).unwrap_or_default();
        is_newest &= !held.iter().any(|slot| slot.message.role == Role::Assistant);
        if segment.kind != SegmentKind::Digest {
            segment.kind = SegmentKind::Stays;
        }
    }
}

/// The shortest runs of slots that split no round.
fn segments(slots: &[Slot], pairing: &Pairing, tokens: &[u64]) -> Vec<Segment> {
    let neighbours = slots.iter().zip(slots.iter().skip(1)).enumerate();
    // An observation belongs to the answer before it.
    let observed = neighbours.filter(|(_, (before, slot))| {
        slot.message.meta.kind == Some(MessageKind::Observation)
            && before.message.role == Role::Assistant
    });
    let observed = observed.map(|(at, _)| (at, at + 1));
    // Rounds can overlap in a log, for example if an output came late. They become one segment.
    let cuts = SafeCuts::between(slots.len(), pairing.spans().chain(observed));
    let mut segments: Vec<Segment> = Vec::new();
    for (at, tokens) in tokens.iter().enumerate() {
        match segments.last_mut() {
            Some(last) if cuts.splits(at) => {
                last.end = at + 1;
                last.tokens += tokens;
            }
            _ => segments.push(Segment {
                kind: SegmentKind::Goes,
                start: at,
                end: at + 1,
                tokens: *tokens,
            }),
        }
    }
    segments
}
