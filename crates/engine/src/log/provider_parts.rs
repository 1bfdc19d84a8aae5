//! Finds the messages of a log that belong to the provider, or to a program that it runs.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Range;

use trimtab_model::{Message, Output, Part, Role, Treatment};

use super::Log;

/// Positions of messages that no plan may change.
#[derive(Clone, Debug, Default)]
pub(super) struct ProviderParts {
    /// See [`Log::front`].
    front: usize,
    /// True while outputs of the message in front of `front` may follow.
    is_front_open: bool,
    /// Messages that load a tool or a file, and others that always stay.
    loading: BTreeSet<usize>,
    /// True if the next message must stay behind the system message before it.
    is_beside_system: bool,
    /// Messages with an output that a program reads.
    read_by_programs: HashSet<usize>,
    /// The ids of calls that programs made, as far as no later call has the same id.
    calls: HashSet<String>,
    /// For each program without a result, the message with its first call.
    open: HashMap<String, usize>,
}

impl ProviderParts {
    /// Adds the message at position `at`.
    pub(super) fn add(&mut self, at: usize, message: &Message) {
        self.move_front(at, message);
        self.add_loading(at, message);
        if message.is_real_user() {
            // Nothing continues these programs any more. They stay as they are.
            self.loading
                .extend(self.open.drain().map(|(_, first)| first));
        }
        for part in &message.parts {
            match part {
                Part::Call(call) => {
                    self.calls.remove(&call.id);
                    if let Some(program) = call.program() {
                        self.calls.insert(call.id.clone());
                        self.open.entry(program).or_insert(at);
                    }
                }
                Part::Output(output)
                    if output.is_for_program(None) || self.calls.contains(&output.call_id) =>
                {
                    self.read_by_programs.insert(at);
                }
                Part::Opaque(result) if !self.open.is_empty() => {
                    let ended = result.ids().shared;
                    ended.map(|program| self.open.remove(&program));
                }
                _ => {}
            }
        }
    }

    fn move_front(&mut self, at: usize, message: &Message) {
        let is_boundary = message.has_part_with(Treatment::Boundary);
        let goes_on = self.is_front_open && message.role == Role::Tool;
        if is_boundary || goes_on {
            self.front = at + 1;
        }
        self.is_front_open = goes_on || (is_boundary && message.has_calls());
    }

    fn add_loading(&mut self, at: usize, message: &Message) {
        let loads = message.has_part_with(Treatment::Always);
        if loads || self.is_beside_system {
            self.loading.insert(at);
        }
        // Messages accepts a system message only between the user's side and an answer. If both
        // neighbours stay, it need not be moved.
        self.is_beside_system = loads && message.role == Role::System;
        if self.is_beside_system {
            self.loading.extend(at.checked_sub(1));
        }
    }
}

impl Log {
    /// The first position that plans may change. The provider has summarised the messages before it
    /// by itself: it ignores them, except for its newest summary, which must stay as it came.
    ///
    /// ```
    /// # use trimtab_engine::log::Log;
    /// # use trimtab_model::{Message, Opaque, Part, RawJson, Role};
    /// let type_name = "compaction".to_owned();
    /// let summary = Part::Opaque(Opaque { type_name, raw: RawJson::of("") });
    /// let answer = Message::new(Role::Assistant, vec![summary]);
    /// let log: Log = [Message::user("go"), answer, Message::user("and now?")].into_iter().collect();
    /// assert_eq!(log.front(), 2);
    /// ```
    pub fn front(&self) -> usize {
        self.provider.front
    }

    /// True if a part of the message at a position is always sent as it came, if it is sent: a
    /// program reads it, it loads a tool, or it is in front of [`Self::front`].
    pub fn is_whole(&self, position: usize, part: usize) -> bool {
        let message = self.get(position);
        let part = message.and_then(|message| message.parts.get(part));
        let loads = part.is_some_and(|part| part.has(Treatment::Always));
        loads || position < self.front() || self.provider.read_by_programs.contains(&position)
    }

    /// True if no plan hides the message at a position.
    pub fn stays(&self, position: usize) -> bool {
        let mut open = self.provider.open.values();
        position < self.front()
            || self.provider.loading.contains(&position)
            || open.any(|first| *first == position)
    }

    /// True if a program reads an output that comes next.
    pub fn is_for_program(&self, output: &Output) -> bool {
        output.is_for_program(None) || self.provider.calls.contains(&output.call_id)
    }

    /// The position of the first call of a program that has no result yet. The provider accepts
    /// nothing of ours behind it.
    pub(crate) fn open_program(&self) -> Option<usize> {
        self.provider.open.values().min().copied()
    }

    /// The runs of messages that no plan hides.
    pub(crate) fn staying(&self) -> Vec<Range<usize>> {
        let front = (self.front() > 0).then_some(0..self.front());
        let loading = self.provider.loading.iter().map(|at| *at..at + 1);
        let open = self.open_program().map(|first| first..self.len());
        front.into_iter().chain(loading).chain(open).collect()
    }
}

#[cfg(test)]
mod tests {
    use trimtab_model::{CALLER, Call, Message, Opaque, Part, RawJson, Role};

    use crate::log::Log;
    use crate::plan::{Edit, Plan, PlanReason};

    fn opaque(type_name: &str, json: &str) -> Part {
        Part::Opaque(Opaque {
            type_name: type_name.to_owned(),
            raw: RawJson::parse(json).unwrap(),
        })
    }

    fn by_program(id: &str) -> Message {
        let mut call = Call::new(id, "read", "{}");
        let caller = RawJson::parse(r#"{"type":"program","caller_id":"p"}"#).unwrap();
        call.extra.push((CALLER.to_owned(), caller));
        Message::assistant("").with_call(call)
    }

    #[test]
    fn front_is_behind_the_round_of_the_newest_summary() {
        let summary = opaque("compaction", "{}");
        let answer = Message::new(Role::Assistant, vec![summary]);
        let log: Log = [
            Message::user("go"),
            answer.with_call(Call::new("c", "read", "{}")),
            Message::output("c", "text"),
            Message::assistant("done"),
        ]
        .into_iter()
        .collect();
        assert_eq!(log.front(), 3);
        let hide = Edit::Hide { from: 0, to: 4 };
        let plan = Plan::new(PlanReason::ByHand, vec![hide]);
        let spared = log.spare_provider_parts(plan.clone());
        assert_eq!(spared.edits, [Edit::Hide { from: 3, to: 4 }]);
    }

    #[test]
    fn open_program_stays_and_nothing_is_inserted_behind_it() {
        let mut log: Log = [
            Message::user("go"),
            by_program("c"),
            Message::output("c", "text"),
        ]
        .into_iter()
        .collect();
        assert!(log.stays(1) && log.is_whole(2, 0));
        let insert = Edit::insert(3, Message::user("a digest"));
        let plan = Plan::new(PlanReason::ByHand, vec![insert]);
        let spared = log.spare_provider_parts(plan.clone());
        assert!(matches!(
            spared.edits.as_slice(),
            [Edit::Insert { before: 1, .. }]
        ));
        let result = opaque("program_output", r#"{"call_id":"p"}"#);
        log.append(Message::new(Role::Assistant, vec![result]));
        assert!(!log.stays(1) && log.is_whole(2, 0));
        assert_eq!(log.spare_provider_parts(plan.clone()), plan);
    }

    #[test]
    fn tools_that_the_model_loaded_stay() {
        let mut loads = Message::output("c", "");
        if let Some(Part::Output(output)) = loads.parts.first_mut() {
            output.content = vec![opaque("tool_reference", "{}")];
        }
        let addition = Message::new(Role::System, vec![opaque("tool_addition", "{}")]);
        let log: Log = [
            Message::assistant("").with_call(Call::new("c", "find", "{}")),
            loads,
            Message::assistant("one"),
            Message::user("two"),
            addition,
            Message::assistant("three"),
            Message::assistant("four"),
        ]
        .into_iter()
        .collect();
        let staying: Vec<usize> = (0..log.len()).filter(|at| log.stays(*at)).collect();
        assert_eq!(staying, [1, 3, 4, 5]);
    }
}
