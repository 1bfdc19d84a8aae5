//! Edits a body by splicing its bytes.
//!
//! Everything that no change touches stays identical, byte for byte: unknown fields, key order,
//! number spelling, escapes, white space. Without changes the result is the body itself.
//!
//! ```
//! use trimtab_model::{Dialect, Output};
//! use trimtab_wire::scan::BodyScan;
//! use trimtab_wire::splice::{BodyChange, splice};
//!
//! let body = br#"{"messages": [
//!     {"role": "user", "content": "list", "x": 1.50},
//!     {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
//!         "function": {"name": "ls", "arguments": "{}"}}]},
//!     {"role": "tool", "tool_call_id": "c1", "content": "a.txt\nb.txt\nc.txt"}]}"#;
//! let scan = BodyScan::new(body, Dialect::Chat).unwrap();
//! let output = Output::new("c1", "3 files");
//! let spliced = splice(&scan, &[BodyChange::Show { message: 2, part: 0, output }]).unwrap();
//! let text = String::from_utf8(spliced.body.into_owned()).unwrap();
//! assert!(text.contains(r#""content": "3 files"}]}"#) && text.contains(r#""x": 1.50"#));
//! ```

mod change;
pub(crate) mod containers;
mod draft;
pub(crate) mod edits;
mod list;
mod members;
mod parts;
mod positions;
mod request;
mod sent;
mod write;

#[cfg(test)]
mod tests;

pub use change::{BodyChange, RefusedChange};
pub use sent::{SentMessage, changes, changes_within};

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use containers::{Containers, value_of};
use draft::BodyDraft;
use edits::ByteEdits;

use crate::scan::{BodyScan, MarkerSpan, Span};

/// A changed body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplicedBody<'a> {
    /// The new body; the original if nothing changed.
    pub body: Cow<'a, [u8]>,
    /// The changes that were skipped because the body would have grown.
    pub skipped: Vec<usize>,
}

/// Changes the body of `scan`.
///
/// Fails as a whole if one of the changes is impossible.
pub fn splice<'a>(
    scan: &BodyScan<'a>,
    changes: &[BodyChange],
) -> Result<SplicedBody<'a>, RefusedChange> {
    // All changes are validated before the first edit, so a body is changed completely or not at
    // all.
    let draft = BodyDraft::new(scan, changes)?;
    let mut splicer = Splicer {
        scan,
        draft: &draft,
        edits: ByteEdits::default(),
        containers: Containers::new(scan.text(), scan.request().list),
        skipped: Vec::new(),
        markers_by_place: markers_by_place(scan),
        values: HashMap::new(),
        left_in: HashMap::new(),
        left_of: HashMap::new(),
        nameless: BTreeSet::new(),
    };
    splicer.messages().map_err(|why| RefusedChange {
        change: changes.len().saturating_sub(1),
        why,
    })?;
    splicer.parts();
    splicer.request();
    let (edits, skipped) = splicer.finish();
    let body = if edits.is_empty() {
        Cow::Borrowed(scan.body())
    } else {
        Cow::Owned(edits.apply(scan.text()))
    };
    Ok(SplicedBody { body, skipped })
}

/// Executes a draft.
struct Splicer<'s, 'a, 'c> {
    scan: &'s BodyScan<'a>,
    draft: &'s BodyDraft<'c>,
    edits: ByteEdits,
    containers: Containers<'a>,
    skipped: Vec<usize>,
    /// The markers of the body, by position.
    markers_by_place: Vec<MarkerSpan>,
    /// Looked-up fields of objects.
    values: HashMap<(Span, &'static str), Option<Span>>,
    /// For lists inside messages, whether a part in them stays.
    left_in: HashMap<Span, bool>,
    /// The remaining parts of visited entries.
    left_of: HashMap<usize, RemainingEntry>,
    /// The answers whose entries lost their ids.
    nameless: BTreeSet<usize>,
}

/// The remaining part of an entry, whose messages may be removed one by one.
#[derive(Clone, Copy, Debug)]
struct RemainingEntry {
    /// The first remaining message in it, and whether it contains outputs.
    first: Option<(usize, bool)>,
    /// True if all remaining messages contain outputs.
    only_outputs: bool,
}

fn markers_by_place(scan: &BodyScan<'_>) -> Vec<MarkerSpan> {
    let mut markers = scan.request().markers.clone();
    markers.sort_by_key(|marker| marker.field);
    markers
}

impl Splicer<'_, '_, '_> {
    /// The value of the last field `name` of the object at `object`.
    fn value_of(&mut self, object: Span, name: &'static str) -> Option<Span> {
        let text = self.scan.text();
        let found = self.values.entry((object, name));
        let list = self.scan.request().list;
        *found.or_insert_with(|| value_of(text, object, name, list))
    }

    /// The markers inside `span`.
    fn markers_in(&self, span: Span) -> &[MarkerSpan] {
        let before = |place: u32| {
            let markers = &self.markers_by_place;
            markers.partition_point(|marker| marker.field.start < place)
        };
        let inside = before(span.start)..before(span.end);
        self.markers_by_place.get(inside).unwrap_or_default()
    }

    fn finish(mut self) -> (ByteEdits, Vec<usize>) {
        // Containers are written last, after all changes to their members are known.
        self.containers.write(&mut self.edits);
        self.skipped.sort_unstable();
        (self.edits, self.skipped)
    }
}
