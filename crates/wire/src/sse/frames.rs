//! The framing of server-sent events: lines, fields, blank lines.

use memchr::memchr2;

/// The maximum size of a parsed event; a longer one is skipped. The last event of an answer may
/// repeat all of it.
pub(super) const MAX_EVENT: usize = 8 << 20;

/// Assembles events from pieces of any size.
#[derive(Clone, Debug)]
pub struct EventFrames {
    limit: usize,
    /// The current incomplete line.
    line: Vec<u8>,
    /// The data of the event so far, with its lines joined.
    data: Vec<u8>,
    /// The number of its data lines.
    lines: usize,
    /// True if the event is too long.
    overlong: bool,
    /// True after a carriage return: a line feed now belongs to it.
    after_return: bool,
    /// True until the first line ends: a byte order mark may precede it.
    at_start: bool,
}

/// A complete frame.
pub enum EventFrame<'a> {
    /// The data of an event.
    Data(&'a [u8]),
    /// An event that was too long.
    Overlong,
}

impl EventFrames {
    /// Accepts events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            lines: 0,
            overlong: false,
            after_return: false,
            at_start: true,
        }
    }

    /// Reads the next bytes and passes on each completed event.
    pub fn push(&mut self, mut bytes: &[u8], mut each: impl FnMut(EventFrame<'_>)) {
        // The two bytes of a line end may come in two pieces.
        if self.after_return && !bytes.is_empty() {
            self.after_return = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at_checked(end).unwrap_or_default();
            let (ends_with, rest) = rest.split_first().unwrap_or((&b'\n', &[]));
            bytes = rest;
            if *ends_with == b'\r' {
                self.after_return = rest.is_empty();
                bytes = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            self.end_line(line, &mut each);
        }
        self.keep(bytes);
    }

    /// Ends the stream: an event without its closing blank line counts too.
    pub fn finish(&mut self, mut each: impl FnMut(EventFrame<'_>)) {
        if !self.line.is_empty() {
            self.end_line(b"", &mut each);
        }
        self.end_event(&mut each);
    }

    /// Keeps the start of an incomplete line.
    fn keep(&mut self, bytes: &[u8]) {
        if self.line.len() + self.data.len() + bytes.len() > self.limit {
            self.give_up();
        }
        // Of an overlong line only the first bytes matter: whether it is blank.
        let room = if self.overlong { 8 } else { self.limit };
        let room = room.saturating_sub(self.line.len()).min(bytes.len());
        self.line
            .extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    fn give_up(&mut self) {
        self.overlong = true;
        self.data = Vec::new();
        self.line.truncate(8);
        self.line.shrink_to_fit();
    }

    fn end_line(&mut self, line: &[u8], each: &mut impl FnMut(EventFrame<'_>)) {
        if self.line.is_empty() {
            return self.whole_line(line, each);
        }
        self.keep(line);
        // The buffer is taken out and put back, so that its memory is reused for the next line.
        let mut kept = std::mem::take(&mut self.line);
        self.whole_line(&kept, each);
        kept.clear();
        self.line = kept;
    }

    fn whole_line(&mut self, line: &[u8], each: &mut impl FnMut(EventFrame<'_>)) {
        let mut line = line;
        if std::mem::replace(&mut self.at_start, false) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event(each);
        }
        if let Some(data) = line.strip_prefix(b"data") {
            match data.split_first() {
                None => self.add(b""),
                Some((b':', value)) => self.add(value.strip_prefix(b" ").unwrap_or(value)),
                // Another field whose name begins with "data".
                Some(_) => {}
            }
        }
    }

    fn add(&mut self, data: &[u8]) {
        if self.data.len() + data.len() > self.limit {
            self.give_up();
        }
        if self.overlong {
            return;
        }
        if self.lines > 0 {
            self.data.push(b'\n');
        }
        self.lines += 1;
        self.data.extend_from_slice(data);
    }

    fn end_event(&mut self, each: &mut impl FnMut(EventFrame<'_>)) {
        if std::mem::replace(&mut self.overlong, false) {
            each(EventFrame::Overlong);
        } else if self.lines > 0 {
            each(EventFrame::Data(&self.data));
        }
        self.lines = 0;
        self.data.clear();
    }
}
