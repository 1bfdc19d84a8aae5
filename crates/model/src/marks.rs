//! Marks: unknown fields of a message or part that we add ourselves. They are kept with the message
//! and never sent.
//!
//! A client may send a field whose name looks like a mark. It is kept under another name, so that it
//! is never taken for one, and gets its own name back when it is sent.

use std::borrow::Cow;

/// The prefix of all marks.
const PREFIX: &str = "trimtab:";
/// The prefix under which the fields of clients are kept whose names begin like a mark.
const CLIENT_PREFIX: &str = "trimtab:client:";

/// True if an unknown field is a mark.
///
/// ```
/// use trimtab_model::marks::{is_mark, kept_name, sent_name};
///
/// assert!(is_mark("trimtab:type"));
/// // The same name in a request of a client is no mark.
/// let kept = kept_name("trimtab:type");
/// assert!(!is_mark(&kept));
/// assert_eq!(sent_name(&kept), "trimtab:type");
/// ```
pub fn is_mark(name: &str) -> bool {
    name.starts_with(PREFIX) && !name.starts_with(CLIENT_PREFIX)
}

/// The name under which a client's field is kept.
pub fn kept_name(name: &str) -> Cow<'_, str> {
    renamed(name, PREFIX, CLIENT_PREFIX)
}

/// The name that a client's field has in a request.
pub fn sent_name(name: &str) -> Cow<'_, str> {
    renamed(name, CLIENT_PREFIX, PREFIX)
}

fn renamed<'a>(name: &'a str, from: &str, to: &str) -> Cow<'a, str> {
    match name.strip_prefix(from) {
        Some(rest) => Cow::Owned(format!("{to}{rest}")),
        None => Cow::Borrowed(name),
    }
}
