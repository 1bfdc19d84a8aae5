//! Computes the floor of a window: what no plan may remove.

use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind};

use super::ConversationState;
use crate::budget::{Floor, FloorTooLarge};
use crate::normalise::WindowEntry;
use crate::window::Window;

impl ConversationState<'_> {
    /// Fails and names the largest part if the floor alone exceeds the window.
    pub fn check_floor(&self) -> Result<(), FloorTooLarge> {
        self.floor().check(self.call.window.unwrap_or(u64::MAX))
    }

    /// The same for the parts that cannot even be shortened. The outputs of the newest round can.
    pub fn check_hard_floor(&self) -> Result<(), FloorTooLarge> {
        let floor = Floor {
            open_calls: 0,
            ..self.floor()
        };
        floor.check(self.call.window.unwrap_or(u64::MAX))
    }

    /// The floor: system messages, the task, the newest real user message and the open round behind
    /// it, tool definitions and the least answer. The task is the user messages before position
    /// `opening` of the log.
    fn floor(&self) -> Floor {
        let (window, call) = (self.window, self.call);
        // Only the few messages of the floor are measured again. The window has no measures per
        // message.
        let of = |message: &Arc<Message>| call.weigh(&Measure::of(message));
        // The provider ignores what is in front of its own summary.
        let entries = || {
            let is_read = |entry: &&WindowEntry| entry.source.position() >= self.log.front();
            window.entries().iter().filter(is_read)
        };
        let newest_first = entries().rev().map(|entry| &entry.message);
        let newest = { newest_first }.find(|message| message.is_real_user());
        let entries = entries();
        let first = entries.take_while(|entry| entry.source.position() < self.opening);
        let task = first
            .map(|entry| &entry.message)
            .filter(|message| message.is_real_user())
            // In a conversation of one turn the task is also the newest message. It must count
            // once.
            .filter(|message| newest.is_none_or(|newest| !Arc::ptr_eq(message, newest)));
        Floor {
            system: call.weigh(&window.measures().system),
            tools: call.tools,
            task: task.map(of).sum(),
            newest_turn: newest.map_or(0, of),
            open_calls: newest_round(window).into_iter().map(of).sum(),
            answer: call.least_answer(),
        }
    }
}

/// The messages of the newest round behind the newest real user message, newest first. An
/// observation counts as a round.
fn newest_round(window: &Window) -> Vec<&Arc<Message>> {
    let newest_first = window.messages().rev();
    let mut open: Vec<_> = newest_first
        .take_while(|message| !message.is_real_user())
        .collect();
    let is_observation = |last: &&&Arc<Message>| last.meta.kind == Some(MessageKind::Observation);
    let with_calls = open.iter().position(|message| message.has_calls());
    let observed = open.first().filter(is_observation).map(|_| 0);
    // Without calls and without an observation, nothing is open: the model has answered the user.
    open.truncate(with_calls.or(observed).map_or(0, |at| at + 1));
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::NormaliseOptions;
    use crate::planner::CallConditions;
    use crate::policy::Policy;
    use crate::window::Projection;
    use trimtab_model::Call;

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
        for message in messages.clone() {
            projection.admit(message);
        }
        projection.window().unwrap();
        let call = CallConditions {
            max_output: Some(100),
            ..CallConditions::new(&Measure::tokens)
        };
        let policy = Policy::default();
        let floor = ConversationState::new(&projection, &policy, &call).floor();
        let [system, task, _, newest, calls, output] =
            messages.map(|message| call.weigh(&Measure::of(&message)));
        let expected = Floor {
            system,
            task,
            newest_turn: newest,
            open_calls: calls + output,
            answer: 100,
            tools: 0,
        };
        assert_eq!(floor, expected);
    }
}
