//! The framing of server-sent events: lines, fields, blank lines.

use std::borrow::Cow;

use memchr::memchr2;

/// The maximum size of a parsed event; a longer one is skipped. The last event of an answer may
/// repeat all of it.
pub(super) const MAX_EVENT: usize = 8 << 20;

/// Assembles events from pieces of any size.
#[derive(Clone, Debug)]
pub struct EventFrames {
    cutter: EventCutter,
    /// True within an event that is too long.
    is_overlong: bool,
}

/// A complete frame.
pub enum EventFrame<'a> {
    /// The data of an event.
    Data(&'a [u8]),
    /// An event that was too long.
    Overlong,
}

impl EventFrames {
    /// Accepts events of about `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            cutter: EventCutter::new(limit),
            is_overlong: false,
        }
    }

    /// Reads the next bytes and passes on each completed event.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(EventFrame<'_>)) {
        let is_overlong = &mut self.is_overlong;
        self.cutter
            .push(bytes, |event| frame(is_overlong, &event, &mut each));
    }

    /// Ends the stream: an event without its closing blank line counts too.
    pub fn finish(&mut self, mut each: impl FnMut(EventFrame<'_>)) {
        let is_overlong = &mut self.is_overlong;
        self.cutter
            .finish(|event| frame(is_overlong, &event, &mut each));
    }
}

fn frame(is_overlong: &mut bool, event: &RawEvent<'_>, each: &mut impl FnMut(EventFrame<'_>)) {
    match event {
        RawEvent::Event(event) => {
            *is_overlong = false;
            if let Some(parsed) = ParsedEvent::new(event) {
                each(EventFrame::Data(&parsed.data));
            }
        }
        RawEvent::Passing(_) => {
            if !std::mem::replace(is_overlong, true) {
                each(EventFrame::Overlong);
            }
        }
        RawEvent::Rest(_) => {}
    }
}

/// Splits a stream into complete events.
#[derive(Clone, Debug, Default)]
pub(super) struct EventCutter {
    limit: usize,
    event: Vec<u8>,
    /// The start of the current line in `event`.
    line: usize,
    /// True after a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// True if the current event is too long to buffer and is forwarded in pieces.
    passing: bool,
}

/// A complete event, or a piece of one.
pub(super) enum RawEvent<'a> {
    Event(&'a [u8]),
    /// A piece of an event that is too long to buffer.
    Passing(&'a [u8]),
    /// The last byte of the previous event, which arrived after the rest of it.
    Rest(&'a [u8]),
}

impl EventCutter {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(RawEvent<'_>)) {
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            if let Some(rest) = bytes.strip_prefix(b"\n") {
                bytes = rest;
                self.line_feed_of_before(&mut each);
            }
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let mut length = end + 1;
            if bytes.get(end) == Some(&b'\r') {
                match bytes.get(length) {
                    Some(b'\n') => length += 1,
                    Some(_) => {}
                    // The line feed may come with the next piece.
                    None => self.after_return = true,
                }
            }
            let (line, rest) = bytes.split_at_checked(length).unwrap_or((bytes, &[]));
            // The line is empty if nothing of it came in an earlier piece either.
            let is_blank = end == 0 && self.event.len() == self.line;
            self.event.extend_from_slice(line);
            self.line = self.event.len();
            bytes = rest;
            if is_blank {
                self.end(&mut each);
            }
        }
        self.event.extend_from_slice(bytes);
        self.pass_if_overlong(&mut each);
    }

    /// Returns the rest at the end of the stream.
    pub(super) fn finish(&mut self, mut each: impl FnMut(RawEvent<'_>)) {
        if !self.event.is_empty() {
            self.end(&mut each);
        }
    }

    /// Handles the line feed of an earlier carriage return.
    fn line_feed_of_before(&mut self, each: &mut impl FnMut(RawEvent<'_>)) {
        if self.event.is_empty() {
            each(RawEvent::Rest(b"\n"));
        } else {
            self.event.push(b'\n');
            self.line = self.event.len();
        }
    }

    fn end(&mut self, each: &mut impl FnMut(RawEvent<'_>)) {
        let passing = std::mem::replace(&mut self.passing, false);
        each(if passing {
            RawEvent::Passing(&self.event)
        } else {
            RawEvent::Event(&self.event)
        });
        self.event.clear();
        self.line = 0;
    }

    fn pass_if_overlong(&mut self, each: &mut impl FnMut(RawEvent<'_>)) {
        if self.event.len() <= self.limit {
            return;
        }
        self.passing = true;
        each(RawEvent::Passing(&self.event));
        // The line continues: only the fact that it has started matters.
        let begun = self.event.len() > self.line;
        self.event.clear();
        self.event.shrink_to(self.limit);
        self.line = 0;
        if begun {
            self.line = usize::MAX;
        }
    }
}

/// An event with its data.
pub(super) struct ParsedEvent<'a> {
    event: &'a [u8],
    pub(super) data: Cow<'a, [u8]>,
}

impl<'a> ParsedEvent<'a> {
    /// Parses an event; none if it has no data.
    pub(super) fn new(event: &'a [u8]) -> Option<Self> {
        let mut pieces = lines(event).filter_map(data_of);
        let mut data = Cow::Borrowed(pieces.next()?);
        for more in pieces {
            // An event may have several data lines. JSON does not care whether they are joined by a
            // line break or a space.
            let data = data.to_mut();
            data.push(b' ');
            data.extend_from_slice(more);
        }
        Some(Self { event, data })
    }

    /// Writes the event with `json` as its data.
    pub(super) fn write(&self, json: &str, out: &mut Vec<u8>) {
        let (mut is_written, mut is_open) = (false, false);
        for line in lines(self.event) {
            if data_of(line).is_none() {
                out.extend_from_slice(line);
                is_open = false;
            } else if !std::mem::replace(&mut is_written, true) {
                for piece in [b"data: ".as_slice(), json.as_bytes(), b"\n"] {
                    out.extend_from_slice(piece);
                }
                is_open = true;
            }
        }
        // A stream may end without the blank line.
        if is_open {
            out.push(b'\n');
        }
    }
}

fn lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    event.split_inclusive(|byte| matches!(byte, b'\n' | b'\r'))
}

/// The data in a line; none if it has another field.
fn data_of(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_end();
    // A stream may begin with a byte order mark.
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    match line.strip_prefix(b"data")?.split_first() {
        None => Some(b""),
        Some((b':', data)) => Some(data.trim_ascii_start()),
        // Another field whose name begins with "data".
        Some(_) => None,
    }
}
