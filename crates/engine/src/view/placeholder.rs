//! Placeholders: what replaces a trimmed output.
//!
//! They contain only fixed words and numbers, and quote nothing of the output, so that an output
//! cannot write its own placeholder.

use std::collections::BTreeSet;

use trimtab_model::Ref;

use super::tools::{FIRST_ARGUMENT, READ};

/// The call that retrieves the text of `stored` from line `offset` on (counted from 0).
///
/// ```
/// # use trimtab_engine::view::placeholder::read_call;
/// # let stored = trimtab_testkit::made_ref("r1", None, None);
/// assert_eq!(read_call(&stored, 60), r#"tool_output_cache({"ref_id":"r1","offset":60})"#);
/// ```
pub fn read_call(stored: &Ref, offset: usize) -> String {
    // As JSON, so that no id can end the string.
    let id = serde_json::Value::from(stored.id());
    let tool = stored.reader().unwrap_or(READ);
    if offset == 0 {
        format!("{tool}({{\"ref_id\":{id}}})")
    } else {
        format!("{tool}({{\"ref_id\":{id},\"offset\":{offset}}})")
    }
}

/// The refs in the retrieval calls that `text` contains, see [`read_call`].
///
/// ```
/// # use trimtab_engine::view::placeholder::called_refs;
/// let text = r#"[trimtab: all of it: tool_output_cache({"ref_id":"r1"})] and ({"ref_id":"r 2"})"#;
/// assert_eq!(called_refs(text).collect::<Vec<_>>(), ["r1"]);
/// ```
pub fn called_refs(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split(FIRST_ARGUMENT).skip(1);
    let ids = behind.filter_map(|rest| Some(rest.split_once('"')?.0));
    // A text can contain anything, and only these characters are in ids.
    ids.filter(|id| is_ref_id(id))
}

/// The texts in a model's answer that a reader would take for refs: those in retrieval calls, and
/// words in the form of a ref that are no words of a language.
pub fn refs_named_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let has_digit = |word: &&str| word.bytes().any(|byte| byte.is_ascii_digit());
    let words = words.filter(|word| looks_like_ref(word)).filter(has_digit);
    words.chain(called_refs(text)).collect()
}

/// True if `text` consists of the characters of a ref's id.
pub fn is_ref_id(text: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !text.is_empty() && text.chars().all(is_part)
}

/// Our line that names the retrieval call, for designs whose own text has no ref.
///
/// ```
/// # use trimtab_engine::view::placeholder::retrieval_hint;
/// # let stored = trimtab_testkit::made_ref("r1", None, None);
/// assert_eq!(retrieval_hint(&stored), r#"[trimtab: all of it: tool_output_cache({"ref_id":"r1"})]"#);
/// ```
pub fn retrieval_hint(stored: &Ref) -> String {
    format!("[trimtab: all of it: {}]", read_call(stored, 0))
}

/// The same for removed messages.
pub(crate) fn way_back_to_messages(messages: usize, stored: &Ref) -> String {
    let call = read_call(stored, 0);
    format!("[trimtab: {messages} messages are left out here; all of them: {call}]")
}

/// A note that names a ref, followed by the call if the tool does not have its usual name. Then the
/// client has a tool of the usual name, which does not know the ref.
pub(crate) fn with_reader(note: String, stored: &Ref) -> String {
    match stored.reader() {
        Some(_) => format!("{note}\n{}", retrieval_hint(stored)),
        None => note,
    }
}

/// The placeholder of the design `refs`.
pub fn plain(stored: Option<&Ref>) -> String {
    stored.map_or_else(
        || "[tool output trimmed]".to_owned(),
        |stored| with_reader(format!("[tool output trimmed; ref={stored}]"), stored),
    )
}

/// True for a text in the form of a ref's id: 16 digits of base 32.
pub(crate) fn looks_like_ref(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'a'..=b'z' | b'2'..=b'7');
    text.len() == 16 && text.bytes().all(is_digit)
}

/// The beginning of a line that we wrote, and a text that such lines contain.
const LINE_BEGINS: &str = "[tool output ";
const LINE_HAS: &str = "[trimtab: ";

/// The pieces of `text` between the lines that we wrote, because markers say nothing about the
/// work.
///
/// ```
/// # use trimtab_engine::view::placeholder::without_markers;
/// let text = "one\ntwo\n[tool output truncated; ref=r1]\nthree";
/// assert_eq!(without_markers(text), ["one\ntwo\n", "three"]);
/// assert!(without_markers("[tool output trimmed; ref=r1]").is_empty());
/// ```
pub fn without_markers(text: &str) -> Vec<&str> {
    // Most texts have no markers, and are returned without a walk over their lines.
    if !text.contains(LINE_BEGINS) && !text.contains(LINE_HAS) {
        return vec![text];
    }
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if line.starts_with(LINE_BEGINS) || line.contains(LINE_HAS) {
            pieces.extend(text.get(from..at));
            from = end;
        }
        at = end;
    }
    pieces.extend(text.get(from..));
    pieces.retain(|piece| !piece.is_empty());
    pieces
}
