//! The estimate that stands on what the provider last reported.

use super::Heuristic;
use crate::{Kind, Message, Role};

/// The newest answer whose usage still describes the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Where the answer stands.
    pub index: usize,
    /// The tokens of everything up to and including it, as reported.
    pub tokens: u64,
}

impl Anchor {
    /// Finds it.
    ///
    /// `fresh_from` is the index of the first message that came after the last edit of the
    /// window: usage that is older describes a window that no longer exists. Where messages
    /// stand does not tell this by itself, because a compaction keeps recent answers behind
    /// its summary together with their old usage. The other direction is certain: an answer
    /// before a summary or a retained text was given without it, so its usage is old whatever
    /// `fresh_from` says.
    ///
    /// Usage of answers that were broken off (stop reason `aborted`) or failed (`error`), that
    /// the model does not see, or that is zero, does not count.
    pub fn find(messages: &[Message], fresh_from: usize) -> Option<Self> {
        let newest_first = messages.iter().enumerate().skip(fresh_from).rev();
        newest_first
            .take_while(|(_, message)| !is_rewrite(message))
            .find_map(|(index, message)| {
                let tokens = reported(message)?;
                Some(Self { index, tokens })
            })
    }
}

/// The tokens of a window: the newest usage that still holds, and an estimate of what came
/// after it; an estimate of everything where there is none.
///
/// ```
/// use trimtab_model::{Message, Usage, estimate::{Heuristic, anchored}};
///
/// let mut answer = Message::assistant("ok");
/// answer.meta.usage = Some(Usage { input: 90, output: 10, ..Usage::default() });
/// let window = [Message::user("first"), answer, Message::user("abcd")];
/// assert_eq!(anchored(&Heuristic::ARCHIVE, &window, 0), 101);
/// assert_eq!(anchored(&Heuristic::ARCHIVE, &window, 2), 4);
/// ```
pub fn anchored(heuristic: &Heuristic, messages: &[Message], fresh_from: usize) -> u64 {
    let anchor = Anchor::find(messages, fresh_from);
    let trailing = anchor.map_or(0, |anchor| anchor.index + 1);
    let reported = anchor.map_or(0, |anchor| anchor.tokens);
    reported.saturating_add(heuristic.messages(messages.iter().skip(trailing)))
}

fn reported(message: &Message) -> Option<u64> {
    let tokens = message.meta.usage?.total();
    let counts = message.role == Role::Assistant && message.agent_visible() && !failed(message);
    (counts && tokens > 0).then_some(tokens)
}

fn failed(message: &Message) -> bool {
    let reason = message
        .meta
        .stop_reason
        .as_deref()
        .unwrap_or_default()
        .trim();
    ["aborted", "error"]
        .iter()
        .any(|word| reason.eq_ignore_ascii_case(word))
}

fn is_rewrite(message: &Message) -> bool {
    matches!(message.meta.kind, Some(Kind::Summary | Kind::Retain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Usage;

    fn answer(text: &str, input: u64, stop: &str) -> Message {
        let mut message = Message::assistant(text);
        message.meta.usage = Some(Usage {
            input,
            ..Usage::default()
        });
        message.meta.stop_reason = (!stop.is_empty()).then(|| stop.to_owned());
        message
    }

    fn estimate(messages: &[Message], fresh_from: usize) -> u64 {
        anchored(&Heuristic::ARCHIVE, messages, fresh_from)
    }

    #[test]
    fn broken_and_failed_answers_give_no_anchor() {
        let good = answer("ok", 100, "stop");
        for reason in ["aborted", " Error ", "ABORTED"] {
            let window = [
                good.clone(),
                Message::user("abcd"),
                answer("half", 999, reason),
            ];
            assert_eq!(estimate(&window, 0), 102, "{reason}");
        }
        let zero = [
            Message::user("x".repeat(40)),
            answer(&"y".repeat(40), 0, ""),
        ];
        assert_eq!(estimate(&zero, 0), 20);
    }

    #[test]
    fn hidden_answers_give_no_anchor_and_cost_nothing() {
        let mut hidden = answer("z", 500, "");
        hidden.meta.agent_visible = Some(false);
        assert_eq!(estimate(&[Message::user("abcd"), hidden], 0), 1);
    }

    #[test]
    fn usage_from_before_the_last_edit_is_old() {
        let window = [
            Message::user("sum").with_kind(Kind::Summary),
            answer("kept", 190_000, ""),
            Message::user("abcd"),
            answer("new!", 50, ""),
        ];
        assert_eq!(
            Anchor::find(&window, 2).map(|anchor| anchor.tokens),
            Some(50)
        );
        assert_eq!(estimate(&window[..3], 2), 3);
        // Not told of the edit, the answer behind the summary looks fresh.
        assert_eq!(estimate(&window[..3], 0), 190_001);
    }

    #[test]
    fn usage_before_a_summary_is_old_without_being_told() {
        let summary = Message::user("sum!").with_kind(Kind::Summary);
        let window = [answer("kept", 190_000, ""), summary, Message::user("abcd")];
        assert_eq!(estimate(&window, 0), 3);
    }

    #[test]
    fn an_edit_behind_the_end_leaves_no_anchor() {
        assert_eq!(estimate(&[answer("kept", 10, "")], 7), 1);
        assert_eq!(estimate(&[], 0), 0);
    }
}
