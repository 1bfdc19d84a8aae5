//! Selects what a summariser reads: the messages to replace, and enough context to know the task.

use trimtab_model::{Message, Role};

use crate::decide::compact::CompactionDraft;
use crate::decide::is_ours;
use crate::decide::summary::conversation::head_and_tail;
use crate::normalise::Slot;
use crate::policy::SummaryRequestForm;
use crate::quote::escaped;

/// The characters of the system messages in the background.
const SYSTEM_CHARS: usize = 4_000;
/// The characters of each user message in the background.
const USER_CHARS: usize = 8_000;
/// Divisors of these limits. The first one with which the background fits is used.
const SHARES: [usize; 4] = [1, 4, 16, 64];
/// At most this many system messages are sent along with the messages themselves.
const FRONT_MESSAGES: usize = 4;
/// The introduction of the background.
const KEPT: &str = "This stays as it is, and is here so that you know the task.";

/// True for a message of the client's system part.
fn is_system(slot: &Slot) -> bool {
    slot.message.role == Role::System && !is_ours(&slot.message)
}

impl CompactionDraft {
    /// The messages that the summariser reads, in order: the replaced ones, and earlier user
    /// messages, which stay. A summariser that gets the messages themselves also reads the system
    /// messages, so that its request begins like the main conversation, which the provider may have
    /// in its cache.
    pub(in crate::decide) fn summariser_messages(&self) -> Vec<&Message> {
        let survivors = &self.survivors;
        let form = self.policy.compaction.form;
        let system = |slot: &&Slot| is_system(slot);
        let front = survivors.slots.iter().take_while(system).count();
        let mut replaced = survivors.replaced.iter().peekable();
        let mut read = Vec::new();
        for (at, slot) in survivors.slots.iter().enumerate() {
            // Both lists are in rising order, so one pass is enough.
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

    /// The background of a summary, between tags that no text in it can close: the system messages,
    /// and user messages that stay. Texts are as long as `fits` allows; empty if nothing fits.
    pub(in crate::decide) fn background(&self, fits: impl Fn(&str) -> bool) -> String {
        let form = self.policy.compaction.form;
        let kept = &self.survivors.kept;
        let (mut system, mut said) = (String::new(), Vec::new());
        for (at, slot) in self.survivors.slots.iter().enumerate() {
            let text = slot.message.text();
            // In the other forms, the summariser reads these messages among the conversation.
            let is_before = kept.before_summary.contains(&at) && form == SummaryRequestForm::Turns;
            if is_system(slot) && form != SummaryRequestForm::Messages {
                system.push_str(&text);
                system.push('\n');
            } else if slot.message.is_real_user() && is_before {
                said.push(("User", text.into_owned(), USER_CHARS));
            } else if slot.message.is_real_user() && kept.after_summary.contains(&at) {
                said.push(("User, later", text.into_owned(), USER_CHARS));
            }
        }
        said.insert(0, ("System", system.trim().to_owned(), SYSTEM_CHARS));
        said.retain(|(_, text, _)| !text.trim().is_empty());
        if said.is_empty() {
            return String::new();
        }
        let written = |share: usize| {
            let lines = said.iter().map(|(who, text, chars)| {
                let text = escaped(&head_and_tail(text, chars / share));
                format!("[{who}]: {text}\n\n")
            });
            let lines: String = lines.collect();
            format!("<background>\n{KEPT}\n\n{lines}</background>\n\n")
        };
        let mut texts = SHARES.into_iter().map(written);
        texts.find(|text| fits(text)).unwrap_or_default()
    }
}
