//! Divides a window into segments that are never split, and lists its outputs.

use std::borrow::Cow;
use std::collections::HashMap;
use std::slice;

use trimtab_model::estimate::Measure;
use trimtab_model::rounds::{self, Pairing, PartPosition};
use trimtab_model::{Call, MessageKind, Output, Part, Role, work};

use crate::log::Log;
use crate::normalise::{MessageSource, Slot};
use crate::observation::outputs_of;
use crate::planner::ConversationState;

/// The kind of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    /// Instructions, and what the provider must see; they always stay.
    Kept,
    /// User messages before the first answer; they always stay.
    Task,
    /// Other user messages.
    User,
    /// Messages that an earlier plan inserted.
    Inserted,
    /// A round, or another message of the model.
    Round,
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

impl Segment {
    /// Marks the segment as kept if it has a message that no plan hides.
    fn keep_what_stays(&mut self, slots: &[Slot], log: &Log) {
        let slots = slots.get(self.start..self.end).unwrap_or_default();
        let mut positions = slots.iter().filter_map(|slot| slot.source.in_log());
        if positions.any(|at| log.stays(at)) {
            self.kind = SegmentKind::Kept;
        }
    }
}

/// One output in a window that may be shortened.
#[derive(Clone, Debug)]
pub(super) struct SurveyedOutput<'a> {
    pub(super) slot: usize,
    pub(super) part: usize,
    /// Position in the log.
    pub(super) position: usize,
    /// The output as the window shows it.
    pub(super) output: Cow<'a, Output>,
    /// The full original text.
    pub(super) full_text: Cow<'a, str>,
    pub(super) call: Option<&'a Call>,
    pub(super) tokens: u64,
}

/// A window in segments.
pub(super) struct WindowSurvey<'a> {
    pub(super) slots: &'a [Slot],
    pub(super) segments: Vec<Segment>,
    pub(super) outputs: Vec<SurveyedOutput<'a>>,
    pub(super) total: u64,
}

impl<'a> WindowSurvey<'a> {
    pub(super) fn new(conversation: &ConversationState<'a>) -> Self {
        let (slots, log) = (conversation.slots, conversation.log);
        let pairing = rounds::pair(slots);
        // Archived messages are not sent, so they cost nothing.
        let weigh = |(number, slot): (usize, &Slot)| {
            let measure = conversation.measure_of_slot(number);
            let sent = measure.filter(|_| slot.message.agent_visible());
            sent.map_or(0, |measure| conversation.call.weigh(&measure))
        };
        let tokens: Vec<u64> = slots.iter().enumerate().map(weigh).collect();
        let mut segments = segments(slots, &pairing, &tokens, conversation.opening);
        for segment in &mut segments {
            segment.keep_what_stays(slots, log);
        }
        let answered = pairing.outputs.iter();
        let answered =
            answered.filter_map(|(place, answer)| Some((*place, pairing.call_of(slots, *answer)?)));
        let calls: HashMap<PartPosition, &Call> = answered.collect();
        let mut outputs = Vec::new();
        for (at, slot) in slots.iter().enumerate() {
            let Some(position) = slot.source.in_log() else {
                continue;
            };
            // In the order of slots and parts: `outputs_of` finds the outputs of a segment by
            // binary search.
            let outputs_here = outputs_of(&slot.message);
            for (part, output) in outputs_here.filter(|(part, _)| !log.is_whole(position, *part)) {
                let measure = match slot.message.parts.get(part) {
                    Some(shown @ Part::Output(_)) => Measure::of_parts(slice::from_ref(shown)),
                    _ => Measure::of_text(&output.text()),
                };
                outputs.push(SurveyedOutput {
                    slot: at,
                    part,
                    position,
                    tokens: conversation.call.weigh(&measure),
                    output,
                    full_text: full_output_text(log, position, part),
                    call: calls.get(&PartPosition { message: at, part }).copied(),
                });
            }
        }
        Self {
            slots,
            segments,
            outputs,
            total: tokens.iter().sum(),
        }
    }

    /// The tokens that always stay: system messages, the task, and user messages up to `users`
    /// tokens.
    pub(super) fn fixed(&self, users: u64) -> u64 {
        let sum = |piece: SegmentKind| -> u64 {
            let segments = self.segments.iter().filter(|segment| segment.kind == piece);
            segments.map(|segment| segment.tokens).sum()
        };
        sum(SegmentKind::Kept) + sum(SegmentKind::Task) + sum(SegmentKind::User).min(users)
    }

    /// The outputs of a segment, each with its index among all outputs.
    pub(super) fn outputs_of(
        &self,
        segment: &Segment,
    ) -> impl Iterator<Item = (usize, &SurveyedOutput<'a>)> {
        // Outputs are in the order of their slots.
        let before = |slot: usize| self.outputs.partition_point(|seen| seen.slot < slot);
        let (from, to) = (before(segment.start), before(segment.end));
        work::step(1 + to - from);
        (from..).zip(self.outputs.get(from..to).unwrap_or_default())
    }
}

/// The original text of an output or an observation.
fn full_output_text(log: &Log, position: usize, part: usize) -> Cow<'_, str> {
    let part = log
        .get(position)
        .and_then(|message| message.parts.get(part));
    match part {
        Some(Part::Output(output)) => output.text(),
        Some(Part::Text(text)) => Cow::Borrowed(&text.text),
        _ => Cow::Borrowed(""),
    }
}

fn segments(slots: &[Slot], pairing: &Pairing, tokens: &[u64], opening: usize) -> Vec<Segment> {
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
    for (at, (slot, tokens)) in slots.iter().zip(tokens).enumerate() {
        let reaches = reach.get(at).copied().unwrap_or(at) + 1;
        match segments.last_mut() {
            // Rounds can overlap in a log, for example if an output came late. They become one
            // segment.
            Some(last) if at < end => {
                last.end = at + 1;
                last.tokens += tokens;
            }
            _ => segments.push(Segment {
                kind: segment_kind(slot, opening),
                start: at,
                end: at + 1,
                tokens: *tokens,
            }),
        }
        end = end.max(reaches);
    }
    segments
}

fn segment_kind(slot: &Slot, opening: usize) -> SegmentKind {
    match slot.source {
        MessageSource::Inserted(_) => SegmentKind::Inserted,
        MessageSource::Log(_) if slot.message.role == Role::System => SegmentKind::Kept,
        MessageSource::Log(at) if slot.message.is_real_user() && at < opening => SegmentKind::Task,
        MessageSource::Log(_) if slot.message.is_real_user() => SegmentKind::User,
        MessageSource::Log(_) => SegmentKind::Round,
    }
}
