//! Prompt-cache markers.
//!
//! Messages caches only prefixes that end at a marker, and accepts at most four. We mark the system
//! prompt and the last tool, which hardly ever change; the end of the window, so that the next call
//! can read it; and the end of the previous window, so that this call can read that. The other
//! dialects need no markers.

use trimtab_model::{ExtraFields, Message, Part, RawJson, Role};

/// The field that marks the end of a cached prefix.
pub(super) const FIELD: &str = "cache_control";

/// The value of the field.
pub(super) fn value() -> RawJson {
    RawJson::of(&serde_json::json!({ "type": "ephemeral" }))
}

/// Marks the system prompt and the ends of this and the previous window.
pub(super) fn mark(messages: &mut [Message]) {
    let leading = messages
        .iter()
        .take_while(|message| message.role == Role::System)
        .count();
    let (system, rest) = messages.split_at_mut(leading);
    if let Some(last) = system.last_mut() {
        mark_message(last);
    }
    for at in ends(rest) {
        if let Some(message) = rest.get_mut(at) {
            mark_message(message);
        }
    }
}

/// The last messages of the two newest runs of user and tool messages. The second run ended the
/// previous window.
fn ends(messages: &[Message]) -> Vec<usize> {
    let users = |at: usize| {
        let message = messages.get(at);
        message.is_some_and(|message| matches!(message.role, Role::User | Role::Tool))
    };
    let is_end = |at: &usize| users(*at) && !users(*at + 1);
    (0..messages.len()).rev().filter(is_end).take(2).collect()
}

fn mark_message(message: &mut Message) {
    let markable = message.parts.iter_mut().rev().find_map(|part| match part {
        Part::Text(text) if !text.text.trim().is_empty() => Some(&mut text.extra),
        Part::Output(output) => Some(&mut output.extra),
        _ => None,
    });
    if let Some(extra) = markable {
        set(extra);
    }
}

fn set(extra: &mut ExtraFields) {
    extra.retain(|(name, _)| name != FIELD);
    extra.push((FIELD.to_owned(), value()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::Call;

    fn marked(messages: &[Message]) -> Vec<usize> {
        let has = |message: &Message| {
            message.parts.iter().any(|part| match part {
                Part::Text(text) => text.extra.iter().any(|(name, _)| name == FIELD),
                Part::Output(output) => output.extra.iter().any(|(name, _)| name == FIELD),
                _ => false,
            })
        };
        let at = messages.iter().enumerate();
        at.filter(|(_, message)| has(message))
            .map(|(at, _)| at)
            .collect()
    }

    #[test]
    fn the_system_prompt_and_the_ends_of_two_windows_are_marked() {
        let mut messages = vec![
            Message::system("be good"),
            Message::user("look"),
            Message::assistant("").with_call(Call::new("c1", "look", "{}")),
            Message::output("c1", "this"),
            Message::assistant("").with_call(Call::new("c2", "look", "{}")),
            Message::output("c2", "that"),
            Message::output("c3", "and that"),
        ];
        mark(&mut messages);
        assert_eq!(marked(&messages), [0, 3, 6]);
        mark(&mut messages);
        assert_eq!(marked(&messages), [0, 3, 6]);
    }

    #[test]
    fn first_window_has_one_end_marker() {
        let mut messages = vec![Message::user("hello")];
        mark(&mut messages);
        assert_eq!(marked(&messages), [0]);
    }
}
