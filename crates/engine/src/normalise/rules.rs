//! What providers of each dialect are known to reject, as far as normalisation repairs it.
//!
//! Everything else is sent unchanged. The verifier implements these rules independently.

use trimtab_model::{Dialect, Message, Part, Role};

/// True if the first message after the system messages must be a user message.
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

/// True for a message that is rejected because it is empty. `is_last` says that it ends the window.
pub(super) fn is_refused_empty(message: &Message, dialect: Dialect, is_last: bool) -> bool {
    match dialect {
        // OpenAI accepts an answer without text or calls. Other providers of this dialect reject
        // it, and it tells the model nothing. An unknown field may contain the answer.
        Dialect::Chat => {
            message.role == Role::Assistant && message.is_empty() && !message.has_unknown_fields()
        }
        // An answer without items cannot be written at all.
        Dialect::Responses => message.role == Role::Assistant && message.parts.is_empty(),
        Dialect::Messages => {
            let is_prefill = is_last && is_bare_answer(message);
            message.role != Role::System && message.is_empty() && !is_prefill
        }
    }
}

/// True for an empty prefill, which asks the model to begin its answer: no part, or an empty
/// string.
pub(super) fn is_bare_answer(message: &Message) -> bool {
    let is_empty_text = |part: &Part| part.as_text() == Some("");
    let is_string = !message.meta.content_list && message.parts.iter().all(is_empty_text);
    message.role == Role::Assistant && (message.parts.is_empty() || is_string)
}

/// True for a blank part that is rejected even next to others.
pub(super) fn is_refused_blank(part: &Part, message: &Message, dialect: Dialect) -> bool {
    // Instructions may be an empty string, but not a list with an empty text.
    let may_be_blank = message.role == Role::System && !message.meta.content_list;
    dialect == Dialect::Messages && part.is_blank() && !may_be_blank
}

/// True if reasoning may stand in a message of this role.
pub(super) fn may_have_reasoning(role: Role, dialect: Dialect) -> bool {
    // In Chat Completions, reasoning is an unknown field of the message.
    role == Role::Assistant || (dialect == Dialect::Chat && role != Role::Tool)
}

/// The number of reasoning parts at the end of a message that are rejected because nothing follows
/// them.
pub(super) fn refused_reasoning(message: &Message, dialect: Dialect) -> usize {
    let end = message.parts.iter().rev();
    match dialect {
        Dialect::Chat => 0,
        // A message of nothing but reasoning is removed as a whole.
        Dialect::Messages if message.is_empty() => 0,
        Dialect::Messages => end
            .take_while(|part| matches!(part, Part::Reasoning(_)) || part.is_blank())
            .filter(|part| matches!(part, Part::Reasoning(_)))
            .count(),
        // The provider looks for the item that belongs to reasoning with an id, and rejects the
        // request if it is missing.
        Dialect::Responses => end.take_while(|part| is_named_reasoning(part)).count(),
    }
}

fn is_named_reasoning(part: &Part) -> bool {
    let Part::Reasoning(reasoning) = part else {
        return false;
    };
    reasoning.extra.iter().any(|(name, _)| name == "id")
}
