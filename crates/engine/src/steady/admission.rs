//! How an output comes in.

use trimtab_model::{Output, Part, Ref};

use super::settings::{Steady, percent};
use crate::normalise::Slot;
use crate::view::placeholder::read_call;

/// The room that an output comes into, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// The room for messages: the window without tools and the answer's reserve.
    pub messages: u64,
    /// What the outputs of the same round take already.
    pub round: u64,
}

/// No view is made shorter than this, in tokens: a marker and a few lines.
const LEAST: u64 = 100;

impl Steady {
    /// The most that an output may take when it comes in, in tokens. The outputs of one round
    /// never take more than what is between the marks, so that a rewrite can make room for
    /// them.
    ///
    /// ```
    /// # use trimtab_engine::steady::{Room, Steady};
    /// let steady = Steady::default();
    /// let first = steady.cap(Room { messages: 40_000, round: 0 });
    /// let tenth = steady.cap(Room { messages: 40_000, round: 15_000 });
    /// assert!(tenth < first);
    /// ```
    pub fn cap(&self, room: Room) -> u64 {
        let one = percent(room.messages, self.cap_percent).min(self.cap_tokens);
        let between = self.high(room.messages) - self.low(room.messages);
        let left = between.saturating_sub(room.round);
        one.min(left / 2).max(LEAST)
    }

    /// An output whose text is whole in the window already, as a back-reference to it.
    pub fn back_reference(&self, slots: &[Slot], output: &Output) -> Option<Output> {
        let stored = output.stored.as_ref()?;
        let text = output.text();
        if text.len() < self.small_bytes {
            return None;
        }
        let mut outputs = slots.iter().flat_map(|slot| slot.message.outputs());
        let first = outputs.find(|shown| !shown.trimmed && shown.text() == text)?;
        let said = said_before(stored, first.stored.as_ref());
        Some(Output {
            content: vec![Part::text(said)],
            trimmed: true,
            ..output.clone()
        })
    }
}

fn said_before(stored: &Ref, first: Option<&Ref>) -> String {
    let call = read_call(stored, 0);
    match first {
        Some(first) if first.id() != stored.id() => {
            format!("[trimtab: the same output as before, ref={first}; all of it: {call}]")
        }
        _ => format!("[trimtab: the same output as before; all of it: {call}]"),
    }
}
