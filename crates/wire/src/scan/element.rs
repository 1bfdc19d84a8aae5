//! Shared by the scanners of all dialects: objects read field by field, and their markers.

use trimtab_model::Dialect;

use super::memo::BodyHead;
use super::request::{MarkerName, MarkerSpan, RequestFields};
use super::table::{PartKind, PartSpan, ScanTables};
use crate::json::cursor::{JsonCursor, ScanResult};
use crate::json::span::Span;
use crate::json::unquoted;

/// Scans a body.
#[derive(Default)]
pub(super) struct BodyReader<'a> {
    pub(super) text: &'a str,
    pub(super) dialect: Dialect,
    pub(super) cursor: JsonCursor<'a>,
    pub(super) request: RequestFields,
    pub(super) tables: ScanTables,
    /// The message of the system field.
    pub(super) head: ScanTables,
    /// True while the entries belong to the same answer.
    pub(super) speaking: bool,
    /// The parts of an entry, until their message is known.
    pub(super) scratch: Vec<PartSpan>,
    /// The start of the body's object.
    pub(super) start: usize,
    /// The number of lists of messages; the last one counts.
    pub(super) lists: u32,
    /// The state before the last of them.
    pub(super) head_state: Option<Box<BodyHead>>,
}

/// A scanned object, or another value that was skipped.
pub(super) struct ReadElement<T> {
    pub(super) span: Span,
    pub(super) is_object: bool,
    pub(super) value: T,
}

impl<'a> BodyReader<'a> {
    pub(super) fn new(text: &'a str, dialect: Dialect) -> Self {
        Self {
            text,
            dialect,
            cursor: JsonCursor::new(text),
            ..Self::default()
        }
    }

    /// Scans an object and passes each field except markers to `field`, which consumes the value and
    /// may change `value`. Any other value is skipped.
    pub(super) fn object_or_value<T>(
        &mut self,
        mut value: T,
        mut field: impl FnMut(&mut Self, &str, &mut T) -> ScanResult<()>,
    ) -> ScanResult<ReadElement<T>> {
        let is_object = self.cursor.peek() == Some(b'{');
        let start = self.cursor.offset();
        if is_object {
            let mut open = self.cursor.open()?;
            // Markers of this object are among those from here on.
            let first_marker = self.request.markers.len();
            while let Some(key) = self.cursor.field(&mut open)? {
                match MarkerName::of(&key.name) {
                    Some(name) => self.marker(name, key.start, first_marker)?,
                    None => field(self, &key.name, &mut value)?,
                }
            }
            // The end of an object is known only now. Markers of inner objects have theirs already.
            let span = Span::new(start, self.cursor.offset());
            self.settle_markers(first_marker, span);
        } else {
            self.cursor.value()?;
        }
        Ok(ReadElement {
            span: Span::new(start, self.cursor.offset()),
            is_object,
            value,
        })
    }

    /// Scans an object and returns the values of the fields `names`. A missing field is empty, and
    /// of duplicate fields the last one counts, as in every JSON parser.
    pub(super) fn fields<const N: usize>(
        &mut self,
        names: [&str; N],
    ) -> ScanResult<ReadElement<[Span; N]>> {
        self.object_or_value([Span::default(); N], |reader, key, values| {
            let value = reader.cursor.value()?;
            let mut wanted = names.iter().zip(values);
            if let Some((_, place)) = wanted.find(|(name, _)| **name == key) {
                *place = value;
            }
            Ok(())
        })
    }

    /// Scans a list and calls `element` at each element, which consumes it. Any other value is
    /// skipped.
    pub(super) fn list_or_value(
        &mut self,
        mut element: impl FnMut(&mut Self) -> ScanResult<()>,
    ) -> ScanResult<Span> {
        if self.cursor.peek() != Some(b'[') {
            return self.cursor.value();
        }
        let start = self.cursor.offset();
        let mut open = self.cursor.open()?;
        while self.cursor.more(&mut open)? {
            element(self)?;
        }
        Ok(Span::new(start, self.cursor.offset()))
    }

    /// Records a marker of the current object, whose own markers are those without an object among
    /// the ones from `first` on.
    pub(super) fn marker(
        &mut self,
        name: MarkerName,
        start: usize,
        first: usize,
    ) -> ScanResult<()> {
        let value = self.cursor.value()?;
        let markers = &mut self.request.markers;
        // Of a field that is repeated many times only one is kept.
        let is_repeated = |last: &MarkerSpan| last.object.is_empty() && last.name == name;
        if markers.len() > first && markers.last().is_some_and(is_repeated) {
            markers.pop();
        }
        markers.push(MarkerSpan {
            name,
            field: Span::new(start, value.end as usize),
            value,
            object: Span::default(),
        });
        Ok(())
    }

    /// Assigns `object` to its own markers, which are those without an object from `first` on.
    pub(super) fn settle_markers(&mut self, first: usize, object: Span) {
        if self.request.markers.len() <= first {
            return;
        }
        // In one pass from the end: of several fields with the same name the last one counts, and
        // looking for earlier ones at each field would be quadratic.
        let new = self.request.markers.split_off(first);
        let mut names = Vec::new();
        let mut kept = Vec::with_capacity(new.len());
        for mut marker in new.into_iter().rev() {
            if marker.object.is_empty() {
                let is_overridden = names.contains(&marker.name);
                if !is_overridden {
                    names.push(marker.name);
                }
                // `null` is the same as no marker, but it still overrides an earlier field.
                if is_overridden || is_null(self.text, marker.value) {
                    continue;
                }
                marker.object = object;
            }
            kept.push(marker);
        }
        self.request.markers.extend(kept.into_iter().rev());
    }

    /// Removes the markers inside `old`, a value that a later field overrides.
    pub(super) fn forget_markers(&mut self, old: Span) {
        let markers = &mut self.request.markers;
        // Markers are recorded in the order of the body, so those inside a value are adjacent.
        let before = |place: u32| move |marker: &MarkerSpan| marker.field.start < place;
        let inside =
            markers.partition_point(before(old.start))..markers.partition_point(before(old.end));
        markers.drain(inside);
    }

    /// The string at `span`, if it is one.
    pub(super) fn string(&self, span: Span) -> Option<std::borrow::Cow<'a, str>> {
        unquoted(span.of(self.text))
    }

    /// `span` if the value there is a string, else empty.
    pub(super) fn if_string(&self, span: Span) -> Span {
        if is_string(self.text, span) {
            span
        } else {
            Span::default()
        }
    }

    /// Rejects a body whose spans would outweigh it, as those of a hostile body with tiny parts do.
    /// `more` are spans that the reader does not hold.
    pub(super) fn check_size(&self, more: &[PartSpan]) -> ScanResult<()> {
        let size = size_of_val(more)
            + size_of_val(self.scratch.as_slice())
            + size_of_val(self.request.markers.as_slice())
            + size_of_val(self.request.tool_list.as_slice())
            + self.tables.size();
        if size > (64 << 10) + self.text.len().saturating_mul(2) {
            return self.cursor.fail(super::UnscannableReason::TooManyParts);
        }
        Ok(())
    }

    /// Skips a list whose elements are not separate parts, and records its markers.
    pub(super) fn inner_list(&mut self) -> ScanResult<Span> {
        self.list_or_value(|reader| reader.fields([]).map(drop))
    }
}

/// A part without a relevant value.
pub(super) fn bare(kind: PartKind, span: Span) -> PartSpan {
    PartSpan {
        kind,
        span,
        content: Span::default(),
        id: Span::default(),
    }
}

pub(crate) fn is_string(text: &str, span: Span) -> bool {
    starts_with(text, span, b'"')
}

pub(crate) fn is_null(text: &str, span: Span) -> bool {
    starts_with(text, span, b'n')
}

pub(crate) fn is_list(text: &str, span: Span) -> bool {
    starts_with(text, span, b'[')
}

fn starts_with(text: &str, span: Span, byte: u8) -> bool {
    !span.is_empty() && text.as_bytes().get(span.start as usize) == Some(&byte)
}
