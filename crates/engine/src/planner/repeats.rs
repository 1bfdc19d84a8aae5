//! Instructions that are said again.

use trimtab_model::{Message, Role};

use crate::normalise::Slot;

/// A system message of fewer bytes stays, even if it says nothing new.
const LONG: usize = 600;

/// True for a long system message that the window has already, word for word.
///
/// System messages always stay, so a client that sends its instructions with every turn fills
/// the window with them. The repetition can be archived as it comes in: nothing that it says is
/// missing then.
///
/// ```
/// # use std::sync::Arc;
/// # use trimtab_engine::normalise::{Slot, Source};
/// # use trimtab_engine::planner::repeats_system;
/// # use trimtab_model::Message;
/// let long = Message::system("be brief. ".repeat(100));
/// let slot = Slot { message: Arc::new(long.clone()), source: Source::Log(0) };
/// assert!(repeats_system(&[slot.clone()], &long));
/// assert!(!repeats_system(&[slot], &Message::system("be long. ".repeat(100))));
/// ```
pub fn repeats_system(slots: &[Slot], message: &Message) -> bool {
    let long = || message.text().len() >= LONG;
    let said = |slot: &Slot| {
        let system = slot.message.role == Role::System && slot.message.agent_visible();
        system && slot.message.parts == message.parts
    };
    message.role == Role::System && long() && slots.iter().any(said)
}
