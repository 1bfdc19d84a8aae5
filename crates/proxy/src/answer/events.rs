//! The data of server-sent events, put together from pieces of any size.

/// The most bytes of one answer that are kept to look into it, as a document or as a stream.
///
/// A longer one passes to the client unread, and no calls of ours in it are served. The longest
/// answers of models are some hundred kilobytes; what is kept takes a few times its size.
pub(crate) const LONGEST_ANSWER: usize = 8 << 20;

/// Cuts a stream into the data of its events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    line: Vec<u8>,
    data: Vec<u8>,
    /// True once a line of data has come for this event.
    has_data: bool,
    after_return: bool,
    /// True if this event is too long to be kept.
    overlong: bool,
}

impl Events {
    /// Takes the next bytes, and gives the data of each event that they end.
    pub(crate) fn push(&mut self, bytes: &[u8], mut each: impl FnMut(&str)) {
        for piece in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            let (text, end) = match piece.split_last() {
                Some((end @ (b'\n' | b'\r'), text)) => (text, Some(*end)),
                _ => (piece, None),
            };
            // The line feed of a carriage return before it.
            let joined = std::mem::take(&mut self.after_return);
            if joined && text.is_empty() && end == Some(b'\n') {
                continue;
            }
            self.keep(text);
            if let Some(end) = end {
                self.after_return = end == b'\r';
                self.end_line(&mut each);
            }
        }
    }

    fn keep(&mut self, text: &[u8]) {
        if self.line.len() + self.data.len() + text.len() > LONGEST_ANSWER {
            self.overlong = true;
            self.data.clear();
            self.line.truncate(8);
        } else if !self.overlong || self.line.is_empty() {
            let room = if self.overlong { 8 } else { text.len() };
            let kept = text.get(..room.min(text.len())).unwrap_or_default();
            self.line.extend_from_slice(kept);
        }
    }

    fn end_line(&mut self, each: &mut impl FnMut(&str)) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            if self.has_data && !self.overlong {
                each(&String::from_utf8_lossy(&self.data));
            }
            self.data.clear();
            self.has_data = false;
            self.overlong = false;
        } else if let Some(value) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            let value = value.strip_prefix(b" ").unwrap_or(value);
            self.data.extend_from_slice(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> Vec<String> {
        let mut found = Vec::new();
        let mut events = Events::default();
        for piece in pieces {
            events.push(piece, |data| found.push(data.to_owned()));
        }
        found
    }

    #[test]
    fn events_do_not_depend_on_the_pieces_they_come_in() {
        let stream = b"event: a\r\ndata: 1\r\n\r\n: note\n\ndata:2\ndata: 3\n\nid: 4\n\ndata: cut";
        assert_eq!(events(&[stream]), ["1", "2\n3"]);
        for cut in 0..stream.len() {
            let (one, other) = stream.split_at(cut);
            assert_eq!(events(&[one, other]), ["1", "2\n3"], "{cut}");
        }
    }
}
