//! Whether the text of an output may have come before.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use trimtab_engine::log::Log;
use trimtab_model::Output;

/// Hashes of the texts of all outputs of a log, so that a new text need not be held against
/// every one of them.
#[derive(Default)]
pub(super) struct Repeats {
    seed: RandomState,
    texts: HashSet<u64>,
    /// How much of the log was taken in.
    messages: usize,
}

impl Repeats {
    /// Takes in what the log has beyond what was taken in before.
    pub(super) fn catch_up(&mut self, log: &Log) {
        let new = log.messages().get(self.messages..).unwrap_or_default();
        for output in new.iter().flat_map(|message| message.outputs()) {
            self.texts.insert(self.seed.hash_one(output.text()));
        }
        self.messages = log.len();
    }

    /// False if no output that was taken in has the same text.
    pub(super) fn may_have(&self, output: &Output) -> bool {
        self.texts.contains(&self.seed.hash_one(output.text()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Message;

    #[test]
    fn a_text_is_known_once_its_message_was_taken_in() {
        let mut log: Log = [Message::output("a", "one")].into_iter().collect();
        let mut repeats = Repeats::default();
        let again = Output::new("b", "one");
        assert!(!repeats.may_have(&again));
        repeats.catch_up(&log);
        assert!(repeats.may_have(&again));
        let other = Output::new("c", "two");
        assert!(!repeats.may_have(&other));
        log.append(Message::output("c", "two"));
        repeats.catch_up(&log);
        assert!(repeats.may_have(&other) && repeats.may_have(&again));
    }
}
