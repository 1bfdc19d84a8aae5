//! Finds verbatim repetitions: outputs and system messages that the window already shows.

use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use trimtab_model::{Message, Output, Part, Role};

use crate::window::Projection;

/// A shorter system message, in bytes, is kept even if it is a repetition.
const LONG_SYSTEM: usize = 600;

/// The texts of a log by hash, so that a new one is not compared with all of them.
#[derive(Debug, Default)]
pub struct RepeatIndex {
    // A random seed, so that no client can choose texts whose hashes collide.
    seed: RandomState,
    /// Outputs that were shown in full at admission: message and part index, oldest first.
    outputs: HashMap<u64, VecDeque<(usize, usize)>>,
    /// The first long system message with each text.
    systems: HashMap<u64, usize>,
    /// The number of messages of the log in the index.
    messages: usize,
}

impl RepeatIndex {
    /// Adds the messages of the log that are new since the last time.
    fn catch_up(&mut self, projection: &Projection) {
        for at in self.messages..projection.log().len() {
            if let Some(came) = projection.log().get(at) {
                self.take_in_system(came, at);
            }
            // From the slot, not the log: only an output that the window shows in full can be
            // referred to.
            let slot = projection.slot_of(at);
            let parts = slot.map_or(&[][..], |slot| &slot.message.parts);
            for (part, output) in parts.iter().enumerate() {
                // The model does not see what a program reads.
                let is_seen =
                    |output: &&Output| !output.trimmed && !projection.log().is_whole(at, part);
                if let Some(output) = output.as_output().filter(is_seen) {
                    let hash = self.seed.hash_one(output.text());
                    self.outputs.entry(hash).or_default().push_back((at, part));
                }
            }
        }
        self.messages = projection.log().len();
    }

    fn take_in_system(&mut self, message: &Message, at: usize) {
        if is_long_system(message) && message.agent_visible() {
            let hash = self.seed.hash_one(message.text());
            self.systems.entry(hash).or_insert(at);
        }
    }

    /// The output in the window that shows the text of `output` in full, if there is one.
    pub fn shown_before<'p>(
        &mut self,
        projection: &'p Projection,
        output: &Output,
    ) -> Option<&'p Output> {
        self.catch_up(projection);
        let text = output.text();
        let places = self.outputs.get_mut(&self.seed.hash_one(&text))?;
        // An output that was cut is never shown in full again, except by an undo. So each place
        // is dropped at most once, and repeated lookups stay cheap.
        while let Some(&(message, part)) = places.front() {
            let slot = projection.slot_of(message);
            let shown = slot.and_then(|slot| slot.message.parts.get(part));
            let shown = shown.and_then(Part::as_output);
            // Compare the texts: equal hashes prove nothing.
            if let Some(shown) = shown.filter(|shown| !shown.trimmed && shown.text() == text) {
                return Some(shown);
            }
            places.pop_front();
        }
        None
    }

    /// True for a long system message that the window already contains verbatim.
    ///
    /// System messages always stay, so a client that sends its instructions with every turn would
    /// fill the window with them. Archiving the repetition at admission loses nothing.
    pub fn is_repeated_system(&mut self, projection: &Projection, message: &Message) -> bool {
        if !is_long_system(message) {
            return false;
        }
        self.catch_up(projection);
        let hash = self.seed.hash_one(message.text());
        let first = self.systems.get(&hash);
        let first = first.and_then(|at| projection.log().get(*at));
        // The hash covers the text only. The parts must be equal, too, or an image would be lost.
        first.is_some_and(|first| first.parts == message.parts)
    }
}

fn is_long_system(message: &Message) -> bool {
    message.role == Role::System && message.text().len() >= LONG_SYSTEM
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::NormaliseOptions;
    use crate::plan::{Edit, Plan, PlanReason};

    #[test]
    fn text_is_known_while_the_window_shows_it_whole() {
        let mut projection = Projection::new(NormaliseOptions::default());
        let mut repeats = RepeatIndex::default();
        let again = Output::new("b", "one");
        assert!(repeats.shown_before(&projection, &again).is_none());
        projection.admit(Message::output("a", "one"));
        projection.admit(Message::user("x"));
        let shown = repeats.shown_before(&projection, &again).unwrap();
        assert_eq!(shown.call_id, "a");
        let mut output = Output::new("a", "o");
        output.trimmed = true;
        let edits = vec![Edit::Show {
            message: 0,
            part: 0,
            output,
        }];
        projection.carry_out(Plan::new(PlanReason::ByHand, edits));
        assert!(repeats.shown_before(&projection, &again).is_none());
    }

    #[test]
    fn long_instructions_are_known_again() {
        let mut projection = Projection::new(NormaliseOptions::default());
        let mut repeats = RepeatIndex::default();
        let long = Message::system("be brief. ".repeat(100));
        assert!(!repeats.is_repeated_system(&projection, &long));
        projection.admit(long.clone());
        assert!(repeats.is_repeated_system(&projection, &long));
        let other = Message::system("be long. ".repeat(100));
        assert!(!repeats.is_repeated_system(&projection, &other));
        let short = Message::system("be brief.");
        projection.admit(short.clone());
        assert!(!repeats.is_repeated_system(&projection, &short));
    }
}
