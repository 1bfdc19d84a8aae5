//! What is left of an output that was trimmed.
//!
//! Fixed wording and numbers only: nothing of the output itself is quoted, so that an output
//! cannot write its own placeholder.

use trimtab_model::Ref;

use super::tools::READ;

/// The call that gets back everything behind `stored`, from line `offset` on (counted from 0).
///
/// ```
/// # use trimtab_engine::view::placeholder::read_call;
/// # let stored = trimtab_testkit::made_ref("r1", None, None);
/// assert_eq!(read_call(&stored, 60), r#"tool_output_cache({"ref_id":"r1","offset":60})"#);
/// ```
pub fn read_call(stored: &Ref, offset: usize) -> String {
    let id = serde_json::Value::from(stored.id());
    if offset == 0 {
        format!("{READ}({{\"ref_id\":{id}}})")
    } else {
        format!("{READ}({{\"ref_id\":{id},\"offset\":{offset}}})")
    }
}

/// The placeholder of the design `refs`.
pub fn plain(stored: Option<&Ref>) -> String {
    stored.map_or_else(
        || "[tool output trimmed]".to_owned(),
        |stored| format!("[tool output trimmed; ref={stored}]"),
    )
}

/// What begins a line that we wrote, and what stands somewhere in one.
const LINE_BEGINS: &str = "[tool output ";
const LINE_HAS: &str = "[trimtab: ";

/// The pieces of `text` between the lines that we wrote: markers say nothing about the work.
///
/// ```
/// # use trimtab_engine::view::placeholder::without_markers;
/// let text = "one\ntwo\n[tool output truncated; ref=r1]\nthree";
/// assert_eq!(without_markers(text), ["one\ntwo\n", "three"]);
/// assert!(without_markers("[tool output trimmed; ref=r1]").is_empty());
/// ```
pub fn without_markers(text: &str) -> Vec<&str> {
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
