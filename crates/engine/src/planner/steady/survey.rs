//! Divides a window into segments that stay or go as a whole.

use std::collections::HashSet;

use trimtab_model::rounds::{self, Pairing};
use trimtab_model::{Call, MessageKind, Role};

use crate::digest::tool_use::{OutputPurpose, purpose};
use crate::normalise::{MessageSource, Slot};
use crate::observation::outputs_of;
use crate::planner::ConversationState;
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

/// A window in segments.
pub(super) struct WindowSurvey {
    pub(super) segments: Vec<Segment>,
    pub(super) total: u64,
}

impl WindowSurvey {
    pub(super) fn new(conversation: &ConversationState<'_>) -> Self {
        let slots = conversation.slots;
        let pairing = rounds::pair(slots);
        // Archived messages are not sent, so they cost nothing.
        let weigh = |(number, slot): (usize, &Slot)| {
            let measure = conversation.measure_of_slot(number);
            let sent = measure.filter(|_| slot.message.agent_visible());
            sent.map_or(0, |measure| conversation.call.weigh(&measure))
        };
        let tokens: Vec<u64> = slots.iter().enumerate().map(weigh).collect();
        let mut survey = Self {
            segments: segments(slots, &pairing, &tokens),
            total: tokens.iter().sum(),
        };
        survey.judge(conversation, &pairing);
        survey.keep_newest(slots);
        survey
    }

    /// Finds out what each segment is.
    fn judge(&mut self, conversation: &ConversationState<'_>, pairing: &Pairing) {
        let (slots, log) = (conversation.slots, conversation.log);
        let views = CompiledViews::new(&conversation.policy.views).unwrap_or_default();
        let mut calls: Vec<Vec<&Call>> = vec![Vec::new(); slots.len()];
        for (place, answer) in &pairing.outputs {
            if let Some(calls) = calls.get_mut(place.message) {
                calls.extend(pairing.call_of(slots, *answer));
            }
        }
        let question = slots.iter().rposition(|slot| slot.message.is_real_user());
        let mut read_again: HashSet<(String, String)> = HashSet::new();
        for segment in self.segments.iter_mut().rev() {
            let range = segment.start..segment.end;
            let held = slots.get(range.clone()).unwrap_or_default();
            let stays = |slot: &Slot| match slot.source {
                MessageSource::Log(at) => {
                    let is_task = at < conversation.opening && slot.message.is_real_user();
                    slot.message.role == Role::System || is_task || log.stays(at)
                }
                MessageSource::Inserted(_) => true,
            };
            let mut answered = calls
                .get(range.clone())
                .unwrap_or_default()
                .iter()
                .flatten();
            let is_protected =
                |call: &&&Call| views.protects(&call.name) && !is_retrieval(&call.name);
            segment.kind = if held.iter().any(super::is_digest_slot) {
                SegmentKind::Digest
            } else if held.iter().any(stays)
                || question.is_some_and(|at| range.contains(&at))
                || answered.clone().any(|call| is_protected(&call))
            {
                SegmentKind::Stays
            } else {
                // What was read again later is in the newer round.
                let mut is_new = |call: &Call| {
                    let made = (call.name.clone(), call.arguments.clone());
                    read_again.insert(made)
                };
                let is_read = |call: &&&Call| {
                    purpose(Some(call)) == OutputPurpose::Reading && !is_retrieval(&call.name)
                };
                let mut reads = false;
                for call in answered.by_ref().filter(is_read) {
                    reads |= is_new(call);
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
    fn keep_newest(&mut self, slots: &[Slot]) {
        let outputs = slots.iter().enumerate().rev();
        let outputs = outputs.filter(|(_, slot)| outputs_of(&slot.message).next().is_some());
        let newest_output = outputs.map(|(at, _)| at).nth(NEWEST_OUTPUTS - 1);
        let mut is_newest = true;
        for segment in self.segments.iter_mut().rev() {
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

    /// The tokens of what always stays.
    pub(super) fn fixed(&self) -> u64 {
        let stays = |segment: &&Segment| segment.kind == SegmentKind::Stays;
        let tokens = self
            .segments
            .iter()
            .filter(stays)
            .map(|segment| segment.tokens);
        tokens.sum()
    }
}

fn segments(slots: &[Slot], pairing: &Pairing, tokens: &[u64]) -> Vec<Segment> {
    // For each slot the last slot of the round that it starts.
    let mut reach: Vec<usize> = (0..slots.len()).collect();
    for (at, (before, slot)) in slots.iter().zip(slots.iter().skip(1)).enumerate() {
        // An observation belongs to the answer before it.
        if slot.message.meta.kind == Some(MessageKind::Observation)
            && before.message.role == Role::Assistant
            && let Some(reach) = reach.get_mut(at)
        {
            *reach = at + 1;
        }
    }
    for (first, last) in pairing.spans() {
        if let Some(reach) = reach.get_mut(first) {
            *reach = last.max(*reach);
        }
    }
    let mut segments: Vec<Segment> = Vec::new();
    let mut end = 0;
    for (at, tokens) in tokens.iter().enumerate() {
        let reaches = reach.get(at).copied().unwrap_or(at) + 1;
        match segments.last_mut() {
            // Rounds can overlap in a log, for example if an output came late. They become one
            // segment.
            Some(last) if at < end => {
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
        end = end.max(reaches);
    }
    segments
}
