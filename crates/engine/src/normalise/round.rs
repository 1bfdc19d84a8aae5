//! Writes a round: the assistant message, then an output for each of its calls.

use trimtab_model::rounds::{OutputStatus, PartPosition, Round};
use trimtab_model::{CALLER, Call, Dialect, Message, MessageKind, Output, Part, Role};

use super::emit::Emitter;
use super::rules::{is_refused_blank, refused_reasoning};
use super::{ABORTED, ARCHIVED, EntryChange, MessageSource, OpenCallRepair, RepairKind, Slot};
use crate::observation::{is_shorter, plain_text};

/// How a call of a round is answered.
enum CallReply {
    /// By an output directly behind the round.
    InPlace,
    /// By an output at another place where the dialect finds it.
    Later(PartPosition),
    /// By an output at a place where the dialect does not find it.
    Moved(PartPosition),
    /// By an output that is hidden from the model.
    Hidden(PartPosition),
    /// It has no output.
    Missing,
}

impl<'a> Emitter<'a> {
    /// Writes an assistant message with calls, and its outputs directly behind it.
    pub(super) fn write_round(&mut self, number: usize, round: &Round, slot: &'a Slot) {
        let in_place = self.in_place(number, round.start);
        // The outputs of a dropped round are removed where they stand, as outputs without a call.
        if self.is_dropped(number) {
            self.repair(slot.source, RepairKind::RoundDropped);
            return;
        }
        let replies = self.replies(round, in_place);
        let calls: Vec<&Call> = slot.message.calls().collect();
        let strips = self.options.habit == OpenCallRepair::Strip;
        let is_kept = |reply: &CallReply| !(strips && matches!(reply, CallReply::Missing));
        let kept = calls
            .iter()
            .zip(&replies)
            .filter(|(_, reply)| is_kept(reply));
        // Stripped calls get no id, so that they do not make the id of another call look taken.
        let mut chosen = self
            .ids
            .choose(kept.map(|(call, _)| call.id.as_str()))
            .into_iter();
        let id = |reply| is_kept(reply).then(|| chosen.next()).flatten();
        let ids: Vec<Option<String>> = replies.iter().map(id).collect();

        self.write_assistant(round.start, slot, &ids);
        self.write_made_outputs(slot.source, &calls, &replies, &ids);
        for at in round.start + 1..round.start + 1 + in_place {
            self.write_outputs_in_place(at, &ids);
        }
        for (reply, id) in replies.iter().zip(ids) {
            match (reply, id) {
                (CallReply::Moved(place), Some(id)) => self.write_moved_output(*place, &id),
                (CallReply::Later(place), Some(id)) => {
                    self.awaited.insert(*place, id);
                }
                _ => {}
            }
        }
    }

    /// The first message behind a round that the provider does not merge with it. In Messages,
    /// consecutive assistant messages are one message, and system messages do not count.
    fn next_message(&self, start: usize) -> Option<usize> {
        let is_one_with_it = |slot: &Slot| {
            let message = &slot.message;
            let is_one = matches!(message.role, Role::Assistant | Role::System);
            let is_plain = !message.has_calls() && !message.has_outputs();
            !message.agent_visible() || (is_one && is_plain)
        };
        let mut behind = self.slots.iter().skip(start + 1);
        let next = behind.position(|slot| !is_one_with_it(slot))?;
        Some(start + 1 + next)
    }

    /// The number of messages directly behind the round that contain only its outputs.
    fn in_place(&self, number: usize, start: usize) -> usize {
        let belongs = |(slot, answers): &(&Slot, &Vec<OutputStatus>)| {
            let message = &slot.message;
            let ours = |answer: &OutputStatus| matches!(answer, OutputStatus::Answers { round, .. } if *round == number);
            message.agent_visible()
                && message.role == Role::Tool
                && !message.parts.is_empty()
                && answers.len() == message.parts.len()
                && answers.iter().all(ours)
        };
        let slots = self.slots.get(start + 1..).unwrap_or_default();
        let answers = self.answers.get(start + 1..).unwrap_or_default();
        slots.iter().zip(answers).take_while(belongs).count()
    }

    fn replies(&self, round: &Round, in_place: usize) -> Vec<CallReply> {
        let start = round.start;
        let dialect = self.options.dialect;
        let next = (dialect == Dialect::Messages).then(|| self.next_message(start));
        let stays = |place: PartPosition| {
            let slot = self.slots.get(place.message);
            let is_found = match dialect {
                Dialect::Chat => false,
                Dialect::Responses => place.message > start,
                Dialect::Messages => next.flatten() == Some(place.message),
            };
            is_found && slot.is_some_and(|slot| slot.message.role == Role::Tool)
        };
        // In Messages, an output directly behind the calls ends the round: the others must stand
        // with it.
        let all_stay = dialect == Dialect::Responses
            || round
                .calls
                .iter()
                .all(|call| call.output.is_some_and(stays));
        let reply = |output: Option<PartPosition>| {
            let Some(place) = output else {
                return CallReply::Missing;
            };
            let slot = self.slots.get(place.message);
            if !slot.is_some_and(|slot| slot.message.agent_visible()) {
                CallReply::Hidden(place)
            } else if (start + 1..=start + in_place).contains(&place.message) {
                CallReply::InPlace
            } else if all_stay && stays(place) {
                CallReply::Later(place)
            } else {
                CallReply::Moved(place)
            }
        };
        round.calls.iter().map(|call| reply(call.output)).collect()
    }

    /// Writes the assistant message, with the kept calls under their ids.
    fn write_assistant(&mut self, at: usize, slot: &'a Slot, ids: &[Option<String>]) {
        let message = &slot.message;
        let dialect = self.options.dialect;
        let mut calls = message.calls().zip(ids);
        let same_ids = calls.all(|(call, id)| Some(&call.id) == id.as_ref());
        let goes =
            |part: &Part| is_refused_blank(part, message, dialect) || part.as_output().is_some();
        let same_parts = !message.parts.iter().any(goes);
        if same_ids && same_parts && refused_reasoning(message, dialect) == 0 {
            return self.push_as_it_came(at);
        }
        let mut ids = ids.iter();
        let mut answers = self.answers_of(at);
        let mut parts = Vec::with_capacity(message.parts.len());
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    let Some(Some(id)) = ids.next() else {
                        self.repair(slot.source, RepairKind::CallStripped);
                        continue;
                    };
                    if *id != call.id {
                        self.repair(slot.source, RepairKind::IdChanged);
                    }
                    parts.push(Part::Call(Call {
                        id: id.clone(),
                        ..call.clone()
                    }));
                }
                Part::Output(_) => {
                    let answer = answers.next().unwrap_or(OutputStatus::Orphan);
                    self.output_taken_out(slot.source, answer);
                }
                part if is_refused_blank(part, message, dialect) => {
                    self.repair(slot.source, RepairKind::PartStripped);
                }
                part => parts.push(part.clone()),
            }
        }
        let changed = Message {
            parts,
            ..Message::clone(message)
        };
        self.push_or_drop(slot, changed);
    }

    /// Writes outputs for the calls that have none the model may see.
    fn write_made_outputs(
        &mut self,
        source: MessageSource,
        calls: &[&Call],
        replies: &[CallReply],
        ids: &[Option<String>],
    ) {
        for ((call, reply), id) in calls.iter().zip(replies).zip(ids) {
            // A stripped call has no id, and needs no output.
            let (Some(id), Some(text)) = (id, self.made_text(reply)) else {
                continue;
            };
            let mut output = Output::new(id.clone(), text);
            output.tool = Some(call.name.clone());
            if self.options.dialect == Dialect::Responses {
                // An output names the program that its call names.
                let caller = call.extra.iter().find(|(name, _)| name == CALLER);
                output.extra.extend(caller.cloned());
            }
            let message =
                Message::new(Role::Tool, vec![Part::Output(output)]).with_kind(MessageKind::Repair);
            self.push(source, message, EntryChange::Made);
            // An archived output was hidden by a plan, which is in the journal. That is not a
            // repair.
            if matches!(reply, CallReply::Missing) {
                self.repair(source, RepairKind::Synthesised);
            }
        }
    }

    fn write_outputs_in_place(&mut self, at: usize, ids: &[Option<String>]) {
        let (Some(slot), Some(answers)) = (self.slots.get(at), self.answers.get(at)) else {
            return;
        };
        if let Some(done) = self.done.get_mut(at) {
            *done = true;
        }
        let sent_id = |answer: &OutputStatus| match answer {
            OutputStatus::Answers { call, .. } => ids.get(*call)?.clone(),
            _ => None,
        };
        let sent: Vec<Option<String>> = answers.iter().map(sent_id).collect();
        let outputs = slot.message.outputs();
        let same = outputs
            .zip(&sent)
            .all(|(output, id)| Some(&output.call_id) == id.as_ref());
        // Unchanged messages keep their slot, so they need no new measure.
        if same {
            return self.push_as_it_came(at);
        }
        let mut changed = Message::clone(&slot.message);
        for (part, id) in changed.parts.iter_mut().zip(sent) {
            if let (Part::Output(output), Some(id)) = (part, id) {
                output.call_id = id;
            }
        }
        self.push(slot.source, changed, EntryChange::Changed);
    }

    fn write_moved_output(&mut self, position: PartPosition, id: &str) {
        let slot = self.slots.get(position.message);
        let part = slot.and_then(|slot| slot.message.parts.get(position.part));
        let (Some(slot), Some(output)) = (slot, part.and_then(Part::as_output)) else {
            return;
        };
        let output = Output {
            call_id: id.to_owned(),
            ..output.clone()
        };
        let mut message = Message::new(Role::Tool, vec![Part::Output(output)]);
        message.meta = slot.message.meta.clone();
        self.push(slot.source, message, EntryChange::Changed);
        self.repair(slot.source, RepairKind::OutputMoved);
    }

    /// The text of an output that is made for a call.
    fn made_text(&self, reply: &CallReply) -> Option<&'a str> {
        match reply {
            CallReply::Missing => Some(ABORTED),
            CallReply::Hidden(place) => {
                let slot = self.slots.get(place.message);
                let part = slot.and_then(|slot| slot.message.parts.get(place.part));
                let text = part.and_then(Part::as_output).and_then(plain_text);
                // No output is shown longer than it came.
                let is_short = |text: &&str| !is_shorter(ARCHIVED, text);
                Some(text.filter(is_short).unwrap_or(ARCHIVED))
            }
            CallReply::InPlace | CallReply::Later(_) | CallReply::Moved(_) => None,
        }
    }
}
