//! Computes the floor of a window: what no plan may remove.

use trimtab_model::Role;

use crate::budget::FloorTooLarge;
use crate::decide::ConversationState;
use crate::decide::must_stay::{self, MustStay};

impl ConversationState<'_> {
    /// Fails and names the largest part if the floor alone exceeds the window.
    pub fn check_floor(&self) -> Result<(), FloorTooLarge> {
        let [system, tools, task, newest, reserve] = self.hard_floor();
        self.check(&[system, tools, task, newest, reserve, self.open_calls()])
    }

    /// The same for the parts that cannot even be shortened. The outputs of the newest round can.
    pub fn check_hard_floor(&self) -> Result<(), FloorTooLarge> {
        self.check(&self.hard_floor())
    }

    fn check(&self, parts: &[(&'static str, u64)]) -> Result<(), FloorTooLarge> {
        let budget = self.call.window.unwrap_or(u64::MAX);
        let floor = parts.iter().map(|(_, tokens)| *tokens);
        let floor = floor.fold(0, u64::saturating_add);
        match parts.iter().max_by_key(|(_, tokens)| *tokens) {
            Some(&(part, tokens)) if floor > budget => Err(FloorTooLarge {
                part,
                tokens,
                floor,
                budget,
            }),
            _ => Ok(()),
        }
    }

    /// The parts of the floor that cannot be shortened, in words, with their tokens.
    fn hard_floor(&self) -> [(&'static str, u64); 5] {
        let (slots, call) = (self.slots, self.call);
        let question = must_stay::question(slots);
        // In a conversation of one turn the task is also the newest message. It must count once.
        let task = must_stay::task(slots, self.log.opening());
        let task = task.filter(|at| Some(*at) != question);
        [
            (
                "the system messages",
                call.weigh(&self.window.measures().system),
            ),
            ("the tool definitions", call.tools),
            (
                "the task, which the user gave before the first answer,",
                task.map(|at| self.slot_tokens(at)).sum(),
            ),
            (
                "the newest turn",
                question.map_or(0, |at| self.slot_tokens(at)),
            ),
            ("the answer's reserve", call.least_answer()),
        ]
    }

    /// The newest round as far as the model has not answered it.
    fn open_calls(&self) -> (&'static str, u64) {
        let slots = self.slots;
        let must = MustStay::of(self, slots);
        // Without calls and without an observation, nothing is open: the model has answered.
        let is_answer = |at: &usize| {
            let message = slots.get(*at).map(|slot| &slot.message);
            message.is_some_and(|message| message.role == Role::Assistant && !message.has_calls())
        };
        let newest = must.newest_round(slots);
        let open = newest.difference(&must.task);
        let open = open.filter(|at| Some(**at) != must.question && !is_answer(at));
        ("the open calls", open.map(|at| self.slot_tokens(*at)).sum())
    }

    fn slot_tokens(&self, at: usize) -> u64 {
        let measure = self.measure_of_slot(at);
        measure.map_or(0, |measure| self.call.weigh(&measure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::CallConditions;
    use crate::normalise::NormaliseOptions;
    use crate::policy::Policy;
    use crate::window::Projection;
    use trimtab_model::estimate::Measure;
    use trimtab_model::{Call, Message};

    #[test]
    fn the_floor_is_the_newest_question_and_the_round_behind_it() {
        let messages = [
            Message::system("be brief"),
            Message::user("old"),
            Message::assistant("a very long answer ".repeat(99)),
            Message::user("new"),
            Message::assistant("").with_call(Call::new("c", "read", "{}")),
            Message::output("c", "text"),
        ];
        let mut projection = Projection::new(NormaliseOptions::default());
        let _: [usize; 6] = messages.clone().map(|message| projection.admit(message));
        projection.window().unwrap();
        let call = CallConditions {
            max_output: Some(100),
            ..CallConditions::new(&Measure::tokens)
        };
        let policy = Policy::default();
        let conversation = ConversationState::new(&projection, &policy, &call);
        let [system, task, _, newest, calls, output] =
            messages.map(|message| call.weigh(&Measure::of(&message)));
        let hard = conversation.hard_floor().map(|(_, tokens)| tokens);
        assert_eq!(hard, [system, 0, task, newest, 100]);
        assert_eq!(conversation.open_calls().1, calls + output);
    }
}
