//! Finds the newest usage that still describes a window.

use std::borrow::Borrow;

use crate::{Message, Role, Usage};

/// The newest answer whose usage still describes the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The index of the answer.
    pub index: usize,
    /// The usage reported for it.
    pub usage: Usage,
}

impl Anchor {
    /// Finds the anchor in the messages of a window.
    ///
    /// The usage does not count if the answer was aborted (stop reason `aborted`) or failed
    /// (`error`), if the model does not see it, or if the usage is zero. An answer before a summary
    /// or a retained text was given without that text, so its usage describes a window that no
    /// longer exists.
    ///
    /// ```
    /// use trimtab_model::{Message, Usage, estimate::Anchor};
    ///
    /// let mut answer = Message::assistant("ok");
    /// answer.meta.usage = Some(Usage { input: 90, output: 10, ..Usage::default() });
    /// let window = [Message::user("first"), answer, Message::user("second")];
    /// assert_eq!(Anchor::find(&window).unwrap().index, 1);
    /// ```
    pub fn find<M: Borrow<Message>>(window: &[M]) -> Option<Self> {
        let newest_first = window.iter().map(Borrow::borrow).enumerate().rev();
        newest_first
            .take_while(|(_, message)| !message.is_summary())
            .find_map(|(index, message)| {
                let usage = reported(message)?;
                Some(Self { index, usage })
            })
    }
}

fn reported(message: &Message) -> Option<Usage> {
    let usage = message.meta.usage?;
    let counts = message.role == Role::Assistant && message.agent_visible() && !failed(message);
    (counts && usage.total() > 0).then_some(usage)
}

fn failed(message: &Message) -> bool {
    let reason = message
        .meta
        .stop_reason
        .as_deref()
        .unwrap_or_default()
        .trim();
    // The stop reasons that the `archive` design excludes: the call did not end normally, so its
    // usage may be incomplete.
    ["aborted", "error"]
        .iter()
        .any(|word| reason.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageKind;

    fn answer(input: u64, stop: &str) -> Message {
        let mut message = Message::assistant("a");
        message.meta.usage = Some(Usage {
            input,
            ..Usage::default()
        });
        message.meta.stop_reason = (!stop.is_empty()).then(|| stop.to_owned());
        message
    }

    fn reported_for(window: &[Message]) -> Option<u64> {
        Anchor::find(window).map(|anchor| anchor.usage.total())
    }

    #[test]
    fn broken_and_failed_answers_give_no_anchor() {
        for reason in ["aborted", " Error ", "ABORTED"] {
            let window = [answer(100, "stop"), Message::user("q"), answer(999, reason)];
            assert_eq!(reported_for(&window), Some(100), "{reason}");
        }
        assert_eq!(reported_for(&[answer(0, "")]), None);
    }

    #[test]
    fn hidden_answers_give_no_anchor() {
        let mut hidden = answer(500, "");
        hidden.meta.agent_visible = Some(false);
        assert_eq!(reported_for(&[Message::user("q"), hidden]), None);
    }

    #[test]
    fn usage_before_a_summary_is_stale() {
        let summary = Message::user("sum").with_kind(MessageKind::Summary);
        let window = [answer(190_000, ""), summary, Message::user("q")];
        assert_eq!(reported_for(&window), None);
    }
}
