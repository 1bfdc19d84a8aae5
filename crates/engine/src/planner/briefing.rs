//! What a summariser reads: what it is to replace, and enough around it to know the task.

use std::collections::BTreeSet;

use trimtab_model::{Message, Role};

use super::draft::CompactionDraft;
use super::is_ours;
use crate::compaction::request::escaped;
use crate::compaction::text::head_and_tail;
use crate::normalise::Slot;
use crate::policy::SummaryRequestForm;

/// Characters of the system part that a summariser is told.
const SYSTEM_CHARS: usize = 4_000;
/// Characters of each message of the user that it is told beside the conversation.
const USER_CHARS: usize = 8_000;
/// One part in so many of these is told: the first that fits.
const SHARES: [usize; 4] = [1, 4, 16, 64];
/// So many messages of the system part are read at most where the messages themselves are sent.
const FRONT_MESSAGES: usize = 4;
/// What the summariser is told of all that.
const KEPT: &str = "This stays as it is, and is here so that you know the task.";

/// True for a message of the client's system part.
fn is_system(slot: &Slot) -> bool {
    slot.message.role == Role::System && !is_ours(&slot.message)
}

impl CompactionDraft {
    /// The messages that the summariser reads, in their order: those that are replaced, and what
    /// the user said before them, which stays. A summariser that is sent the messages themselves
    /// reads the system part too, so that the front is that of the main conversation, which the
    /// provider may have in its cache.
    pub(super) fn summariser_messages(&self) -> Vec<&Message> {
        let survivors = &self.survivors;
        let form = self.policy.compaction.form;
        let system = |slot: &&Slot| is_system(slot);
        let front = survivors.slots.iter().take_while(system).count();
        let mut replaced = survivors.replaced.iter().peekable();
        let mut read = Vec::new();
        for (at, slot) in survivors.slots.iter().enumerate() {
            let goes = replaced.next_if_eq(&&at).is_some();
            let stays_before = survivors.kept.before_summary.contains(&at) && !is_system(slot);
            let reads = match form {
                SummaryRequestForm::Messages => {
                    goes || stays_before || at < front.min(FRONT_MESSAGES)
                }
                SummaryRequestForm::Text => goes || stays_before,
                SummaryRequestForm::Turns => goes,
            };
            if reads {
                read.push(&*slot.message);
            }
        }
        read
    }

    /// What a summariser is told beside that, between tags that nothing in it can close: what the
    /// system part says, and what the user said that stays. Texts are as long as `fits` allows;
    /// empty if nothing of them fits.
    pub(super) fn background(&self, fits: impl Fn(&str) -> bool) -> String {
        let told = self.told_beside();
        if told.is_empty() {
            return String::new();
        }
        let written = |share: usize| {
            let lines = told.iter().map(|(who, text, chars)| {
                let text = escaped(&head_and_tail(text, chars / share));
                format!("[{who}]: {text}\n\n")
            });
            let lines: String = lines.collect();
            format!("<background>\n{KEPT}\n\n{lines}</background>\n\n")
        };
        let texts = SHARES.into_iter().map(written);
        texts
            .into_iter()
            .find(|text| fits(text))
            .unwrap_or_default()
    }

    /// Who said what of the background, and the most characters of it.
    fn told_beside(&self) -> Vec<(&'static str, String, usize)> {
        let survivors = &self.survivors;
        let form = self.policy.compaction.form;
        let behind: BTreeSet<usize> = survivors.kept.after_summary.iter().copied().collect();
        let (mut system, mut told) = (String::new(), Vec::new());
        for (at, slot) in survivors.slots.iter().enumerate() {
            let message = &slot.message;
            let is_before =
                survivors.kept.before_summary.contains(&at) && form == SummaryRequestForm::Turns;
            if is_system(slot) && form != SummaryRequestForm::Messages {
                system.push_str(&message.text());
                system.push('\n');
            } else if message.is_real_user() && is_before {
                told.push(("User", message.text().into_owned(), USER_CHARS));
            } else if message.is_real_user() && behind.contains(&at) {
                told.push(("User, later", message.text().into_owned(), USER_CHARS));
            }
        }
        told.insert(0, ("System", system.trim().to_owned(), SYSTEM_CHARS));
        told.retain(|(_, text, _)| !text.trim().is_empty());
        told
    }
}
