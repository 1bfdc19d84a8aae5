//! Scans a request body into spans: the positions of its messages, parts, calls, outputs and
//! markers.
//!
//! The scan is one pass over the bytes without copies. Message positions are those of the model:
//! [`BodyScan::message`] returns what the reader of the dialect makes of that position, so a plan
//! for the model's messages can be executed on the bytes.
//!
//! ```
//! use trimtab_model::{Dialect, Role};
//! use trimtab_wire::scan::BodyScan;
//!
//! let body = br#"{"model": "m", "system": "be brief", "messages": [
//!     {"role": "user", "content": [
//!         {"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"},
//!         {"type": "text", "text": "go on"}]}]}"#;
//! let scan = BodyScan::new(body, Dialect::Messages).unwrap();
//! let roles: Vec<Role> = (0..scan.len()).map(|at| scan.role(at).unwrap()).collect();
//! assert_eq!(roles, [Role::System, Role::Tool, Role::User]);
//! assert_eq!(scan.message(1).unwrap().text(), "a.txt");
//! ```

mod body;
mod chat;
mod detect;
mod element;
mod memo;
mod messages;
mod request;
mod responses;
mod table;
mod view;

#[cfg(test)]
mod tests;

pub use crate::json::span::Span;
pub use crate::json::unscannable::{Unscannable, UnscannableReason};
pub use detect::{detect, detect_messages};
pub use memo::{EntryBoundary, ScanMemo};
pub use request::{
    AnswerLimit, LimitName, MarkerName, MarkerSpan, RequestFields, SessionHints, ToolSpan,
};
pub use table::{PartKind, PartSpan};

use table::ScanTables;
use trimtab_model::Dialect;

/// A request body as spans.
#[derive(Clone, Debug)]
pub struct BodyScan<'a> {
    text: &'a str,
    dialect: Dialect,
    request: RequestFields,
    /// The tables of the list of messages.
    tables: ScanTables,
    /// The parts of the first message, if it is in the system field and not in the list.
    head: Option<Vec<PartSpan>>,
    /// The state before the list, for scanning a longer body.
    head_state: Option<Box<memo::BodyHead>>,
}

impl<'a> BodyScan<'a> {
    /// Scans `body`, a request of `dialect`.
    pub fn new(body: &'a [u8], dialect: Dialect) -> Result<Self, Unscannable> {
        body::read(text_of(body)?, dialect)
    }

    /// Scans a body that starts like another one, from the first difference on. The tables of the
    /// memo are continued, so nothing is copied.
    ///
    /// Up to the [`boundary`](ScanMemo::boundary) of `entries` its bytes must equal those of the
    /// memo's body; the caller must ensure that. A memo of another body gives a wrong scan, or
    /// none.
    pub fn resume(body: &'a [u8], memo: ScanMemo, entries: usize) -> Result<Self, Unscannable> {
        let text = text_of(body)?;
        let (dialect, list) = (memo.dialect(), memo.list());
        match memo.reader(text, entries) {
            Some(reader) => body::resume(reader, list),
            None => Self::new(body, dialect),
        }
    }
}

fn text_of(body: &[u8]) -> Result<&str, Unscannable> {
    // Spans have offsets of four bytes, which halves the size of the tables.
    if u32::try_from(body.len()).is_err() {
        let why = UnscannableReason::TooLong;
        return Err(Unscannable { offset: 0, why });
    }
    simdutf8::basic::from_utf8(body).map_err(|_| not_utf8(body))
}

fn not_utf8(body: &[u8]) -> Unscannable {
    // The fast check does not say where the fault is. The slow one runs only for bodies that fail.
    let offset = std::str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
    let why = UnscannableReason::NotUtf8;
    Unscannable { offset, why }
}
