//! What providers of each dialect are known to refuse, as far as normalising repairs it.
//!
//! Everything else is sent as it came. The verifier has these rules in its own words.

use trimtab_model::{Dialect, Message, Part, Role};

/// True if the first message that is not the system's must be the user's.
pub(super) fn user_comes_first(dialect: Dialect) -> bool {
    dialect == Dialect::Messages
}

/// True if call ids must be unique in the whole window, not only in their round.
pub(super) fn ids_are_global(dialect: Dialect) -> bool {
    dialect != Dialect::Chat
}

/// True if a character may stand in a call id.
pub(super) fn is_legal_in_id(c: char, dialect: Dialect) -> bool {
    dialect != Dialect::Messages || c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// True for a message that is refused because there is nothing in it. `is_last` says that
/// nothing follows it in the window.
pub(super) fn is_refused_empty(message: &Message, dialect: Dialect, is_last: bool) -> bool {
    match dialect {
        // OpenAI takes an answer without text or calls. Other providers of this dialect refuse it,
        // and it tells the model nothing. An unknown field may hold the answer.
        Dialect::Chat => {
            message.role == Role::Assistant && message.is_empty() && !message.has_unknown_fields()
        }
        // An answer of no item cannot be sent at all.
        Dialect::Responses => message.role == Role::Assistant && message.parts.is_empty(),
        Dialect::Messages => {
            let is_prefill = is_last && is_bare_answer(message);
            message.role != Role::System && message.is_empty() && !is_prefill
        }
    }
}

/// True for an answer that is to be begun with nothing: no part, or an empty string.
pub(super) fn is_bare_answer(message: &Message) -> bool {
    let is_empty_text = |part: &Part| part.as_text() == Some("");
    let is_string = !message.meta.content_list && message.parts.iter().all(is_empty_text);
    message.role == Role::Assistant && (message.parts.is_empty() || is_string)
}

/// True for a part with nothing in it that is refused even beside others.
pub(super) fn is_refused_blank(part: &Part, message: &Message, dialect: Dialect) -> bool {
    // The instructions may be an empty string, but not a list with an empty text in it.
    let may_be_blank = message.role == Role::System && !message.meta.content_list;
    dialect == Dialect::Messages && part.is_blank() && !may_be_blank
}

/// True if a thought may stand in a message of this role.
pub(super) fn may_think(role: Role, dialect: Dialect) -> bool {
    // In Chat Completions it is an unknown field of the message.
    role == Role::Assistant || (dialect == Dialect::Chat && role != Role::Tool)
}

/// How many thoughts at the end of a message are refused because nothing follows them.
pub(super) fn refused_thoughts(message: &Message, dialect: Dialect) -> usize {
    let end = message.parts.iter().rev();
    match dialect {
        Dialect::Chat => 0,
        // One with nothing but thoughts goes as a whole.
        Dialect::Messages if message.is_empty() => 0,
        Dialect::Messages => end
            .take_while(|part| matches!(part, Part::Reasoning(_)) || part.is_blank())
            .filter(|part| matches!(part, Part::Reasoning(_)))
            .count(),
        // The provider misses what belongs to a thought that it knows by its id.
        Dialect::Responses => end.take_while(|part| is_named_thought(part)).count(),
    }
}

fn is_named_thought(part: &Part) -> bool {
    let Part::Reasoning(thought) = part else {
        return false;
    };
    thought.extra.iter().any(|(name, _)| name == "id")
}
