//! Computes the floor of a window: what no plan may remove.

use std::sync::Arc;

use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind};

use crate::budget::Floor;
use crate::window::Window;

/// The floor of a window: its system messages, the task, the newest real user message and the open
/// round behind it. The task is the user messages before position `opening` of the log. `tools` and
/// `answer` are added unchanged.
pub(super) fn floor(
    window: &Window,
    opening: usize,
    (tools, answer): (u64, u64),
    tokens: impl Fn(&Measure) -> u64,
) -> Floor {
    // Only the few messages of the floor are measured again. The window has no measures per
    // message.
    let of = |message: &Arc<Message>| tokens(&Measure::of(message));
    let mut newest_first = window.messages().rev();
    let newest = newest_first.find(|message| message.is_real_user());
    let entries = window.entries().iter();
    let first = entries.take_while(|entry| entry.source.position() < opening);
    let task = first
        .map(|entry| &entry.message)
        .filter(|message| message.is_real_user())
        // In a conversation of one turn the task is also the newest message. It must count once.
        .filter(|message| newest.is_none_or(|newest| !Arc::ptr_eq(message, newest)));
    Floor {
        system: tokens(&window.measures().system),
        tools,
        task: task.map(of).sum(),
        newest_turn: newest.map_or(0, of),
        open_calls: newest_round(window).into_iter().map(of).sum(),
        answer,
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
    use crate::window::Projection;
    use trimtab_model::Call;

    #[test]
    fn the_floor_is_the_newest_question_and_the_round_behind_it() {
        let mut projection = Projection::new(NormaliseOptions::default());
        projection.admit(Message::system("be brief"));
        projection.admit(Message::user("old"));
        projection.admit(Message::assistant("a very long answer ".repeat(99)));
        projection.admit(Message::user("new"));
        projection.admit(Message::assistant("").with_call(Call::new("c", "read", "{}")));
        projection.admit(Message::output("c", "text"));
        let found = floor(projection.window().unwrap(), 2, (0, 100), |m| {
            u64::from(m.sizes().text.bytes)
        });
        let expected = Floor {
            system: 8,
            task: 3,
            newest_turn: 3,
            open_calls: 4,
            answer: 100,
            tools: 0,
        };
        assert_eq!(found, expected);
    }
}
