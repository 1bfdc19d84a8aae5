//! Remembers a scan, so that the next body is scanned only from its new part on.
//!
//! A client sends its whole conversation every time. Most of a body is the same as the previous
//! body, so its spans are still valid.

use trimtab_model::{Dialect, Role};

use super::BodyScan;
use super::element::BodyReader;
use super::request::RequestFields;
use super::table::{MessageRow, ScanTables};
use crate::json::cursor::JsonCursor;
use crate::json::span::Span;

/// The state before the list of messages.
#[derive(Clone, Debug)]
pub(super) struct BodyHead {
    /// The start of the body's object.
    pub(super) start: usize,
    /// The start of the list.
    pub(super) list: usize,
    pub(super) request: RequestFields,
    /// The message of the system field.
    pub(super) head: ScanTables,
}

/// A remembered scan.
///
/// ```
/// use trimtab_model::Dialect;
/// use trimtab_wire::scan::BodyScan;
///
/// let first = br#"{"model":"m","messages":[{"role":"user","content":"q"}]}"#;
/// let next = br#"{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}"#;
/// let memo = BodyScan::new(first, Dialect::Chat).unwrap().into_memo().unwrap();
/// let boundary = memo.boundary(1).unwrap();
/// assert_eq!(first[..boundary.offset], next[..boundary.offset]);
/// let scan = BodyScan::resume(next, memo, 1).unwrap();
/// assert_eq!((boundary.messages, scan.len()), (1, 2));
/// ```
#[derive(Clone, Debug)]
pub struct ScanMemo {
    dialect: Dialect,
    head_state: Box<BodyHead>,
    /// The tables of the list, without the message of the system field.
    tables: ScanTables,
    /// The markers in the list.
    markers: Vec<super::MarkerSpan>,
}

/// A position between two entries of the list of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryBoundary {
    /// The number of bytes before it.
    pub offset: usize,
    /// The number of messages before it.
    pub messages: usize,
}

impl BodyScan<'_> {
    /// The memo of this scan; none if the body has no list of messages, or several.
    pub fn into_memo(self) -> Option<ScanMemo> {
        let before = self.head_state?;
        let list = self.request.list;
        let mut markers = self.request.markers;
        // Markers before the list are part of the saved head. Those after it are scanned again.
        markers.retain(|marker| list.contains(marker.field));
        Some(ScanMemo {
            dialect: self.dialect,
            tables: self.tables,
            head_state: before,
            markers,
        })
    }
}

impl ScanMemo {
    pub(super) fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub(super) fn list(&self) -> usize {
        self.head_state.list
    }

    /// The number of entries in the list of messages.
    pub fn entries(&self) -> usize {
        self.tables.entries.len()
    }

    /// The approximate size in memory.
    pub fn size(&self) -> usize {
        size_of::<Self>()
            + size_of::<BodyHead>()
            + self.tables.size()
            + size_of_val(self.markers.as_slice())
    }

    /// The position after `entries` entries; none if a message may continue after it.
    pub fn boundary(&self, entries: usize) -> Option<EntryBoundary> {
        let last = self.tables.entries.get(entries.checked_sub(1)?)?;
        // In Responses an answer is spread over several entries, so the next entry could still
        // belong to the message before the boundary.
        let speaks = self.dialect == Dialect::Responses
            && self.role(last.message as usize) == Some(Role::Assistant);
        (!speaks).then(|| EntryBoundary {
            offset: last.span.end as usize,
            messages: self.messages_before(entries),
        })
    }

    /// The number of messages before an entry.
    fn messages_before(&self, entries: usize) -> usize {
        let next = self.tables.entries.get(entries);
        next.map_or(self.tables.messages.len(), |next| next.message as usize)
    }

    fn role(&self, message: usize) -> Option<Role> {
        let row: Option<&MessageRow> = self.tables.messages.get(message);
        row.map(|row| row.role)
    }

    /// A reader positioned after `entries` entries.
    pub(super) fn reader(self, text: &str, entries: usize) -> Option<BodyReader<'_>> {
        let EntryBoundary { offset, messages } = self.boundary(entries)?;
        let BodyHead {
            start,
            mut request,
            head,
            ..
        } = self.head_state.as_ref().clone();
        let known = Span::new(0, offset);
        let markers = self.markers.into_iter();
        request
            .markers
            .extend(markers.filter(|marker| known.contains(marker.field)));
        // The tables are continued in place: copying them would cost as much as the list is long.
        let mut tables = self.tables;
        tables.truncate(entries, messages);
        Some(BodyReader {
            // The depth counts for the nesting limit: the cursor is inside the body and its list.
            cursor: JsonCursor::inside(text, offset, 2),
            request,
            tables,
            head,
            start,
            // The list that is being continued counts as the first.
            lists: 1,
            head_state: Some(self.head_state),
            ..BodyReader::new(text, self.dialect)
        })
    }
}
