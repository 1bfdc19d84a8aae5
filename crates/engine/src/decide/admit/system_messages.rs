//! Finds system messages that a log already contains word for word.

use std::collections::HashMap;

use trimtab_model::{Message, Role};

use crate::log::Log;

/// A shorter system message, in bytes, is kept even if it is a repetition.
const LONG: usize = 600;

/// The long system messages of a log.
///
/// System messages always stay, so a client that sends its instructions with every turn would fill
/// the window with them. Archiving the repetition at admission loses nothing.
#[derive(Debug, Default)]
pub struct SystemMessages {
    /// The position of the first one with each text.
    first: HashMap<String, usize>,
    /// The number of messages of the log that were read.
    read: usize,
}

impl SystemMessages {
    /// True for a long system message that `log` already contains.
    pub fn contains(&mut self, log: &Log, message: &Message) -> bool {
        if !is_long(message) {
            return false;
        }
        for at in self.read..log.len() {
            let came = log.get(at);
            if let Some(came) = came.filter(|came| is_long(came) && came.agent_visible()) {
                self.first.entry(came.text().into_owned()).or_insert(at);
            }
        }
        self.read = log.len();
        let first = self.first.get(&*message.text());
        // The parts must be equal, too, or an image would be lost.
        let first = first.and_then(|at| log.get(*at));
        first.is_some_and(|first| first.parts == message.parts)
    }
}

fn is_long(message: &Message) -> bool {
    message.role == Role::System && message.text().len() >= LONG
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::NormaliseOptions;
    use crate::window::Projection;

    #[test]
    fn long_instructions_are_known_again() {
        let mut projection = Projection::new(NormaliseOptions::default());
        let mut systems = SystemMessages::default();
        let long = Message::system("be brief. ".repeat(100));
        assert!(!systems.contains(projection.log(), &long));
        projection.admit(long.clone());
        assert!(systems.contains(projection.log(), &long));
        let other = Message::system("be long. ".repeat(100));
        assert!(!systems.contains(projection.log(), &other));
        let short = Message::system("be brief.");
        projection.admit(short.clone());
        assert!(!systems.contains(projection.log(), &short));
    }
}
