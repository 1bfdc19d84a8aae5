//! Changes a body by splicing its bytes.
//!
//! What no change touches stays as it came, byte for byte: unknown fields, key order, number
//! spelling, escapes, white space. No changes give the body itself.
//!
//! ```
//! use trimtab_model::{Dialect, Output};
//! use trimtab_wire::scan::Scan;
//! use trimtab_wire::splice::{Change, splice};
//!
//! let body = br#"{"messages": [
//!     {"role": "user", "content": "list", "x": 1.50},
//!     {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function",
//!         "function": {"name": "ls", "arguments": "{}"}}]},
//!     {"role": "tool", "tool_call_id": "c1", "content": "a.txt\nb.txt\nc.txt"}]}"#;
//! let scan = Scan::new(body, Dialect::Chat).unwrap();
//! let output = Output::new("c1", "3 files");
//! let spliced = splice(&scan, &[Change::Show { message: 2, part: 0, output }]).unwrap();
//! let text = String::from_utf8(spliced.body.into_owned()).unwrap();
//! assert!(text.contains(r#""content": "3 files"}]}"#) && text.contains(r#""x": 1.50"#));
//! ```

mod change;
pub(crate) mod containers;
mod draft;
pub(crate) mod edits;
mod list;
mod markers;
mod members;
mod parts;
mod request;
mod sent;
mod write;

#[cfg(test)]
mod tests;

pub use change::{Change, Marker, Place, Refused};
pub use sent::{Sent, changes};
pub use write::tool_definition;

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use containers::Containers;
use draft::Draft;
use edits::Edits;

use crate::scan::{Scan, Span};

/// A body that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spliced<'a> {
    /// The new body; the old one itself if nothing changed.
    pub body: Cow<'a, [u8]>,
    /// The changes that were not carried out because the body would have grown by them.
    pub skipped: Vec<usize>,
}

/// Changes the body of `scan`.
///
/// Refused as a whole if one of the changes does not fit.
pub fn splice<'a>(scan: &Scan<'a>, changes: &[Change]) -> Result<Spliced<'a>, Refused> {
    let draft = Draft::new(scan, changes)?;
    let mut splicer = Splicer {
        scan,
        draft: &draft,
        edits: Edits::default(),
        containers: Containers::new(scan.text(), scan.request().list),
        skipped: Vec::new(),
        unmarked: BTreeSet::new(),
        contents: HashMap::new(),
        nameless: BTreeSet::new(),
    };
    splicer.choose_markers();
    splicer.messages().map_err(|why| Refused {
        change: changes.len().saturating_sub(1),
        why,
    })?;
    splicer.parts();
    splicer.markers();
    splicer.request();
    Ok(splicer.finish())
}

/// Carries out a draft.
struct Splicer<'s, 'a, 'c> {
    scan: &'s Scan<'a>,
    draft: &'s Draft<'c>,
    edits: Edits,
    containers: Containers<'a>,
    skipped: Vec<usize>,
    /// The markers that go.
    unmarked: BTreeSet<Span>,
    /// The contents of entries that were looked up.
    contents: HashMap<usize, Option<Span>>,
    /// The answers whose entries lost their ids.
    nameless: BTreeSet<usize>,
}

impl<'a> Splicer<'_, 'a, '_> {
    fn finish(mut self) -> Spliced<'a> {
        self.containers.write(&mut self.edits);
        let body = if self.edits.is_empty() {
            Cow::Borrowed(self.scan.body())
        } else {
            Cow::Owned(self.edits.apply(self.scan.text()))
        };
        self.skipped.sort_unstable();
        Spliced {
            body,
            skipped: self.skipped,
        }
    }
}
