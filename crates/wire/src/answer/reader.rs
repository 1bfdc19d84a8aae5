//! Reads a streamed answer while it arrives.

use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, Message, Usage, work};

use super::LONGEST_ANSWER;
use super::assemble::AssembledParts;
use crate::sse::{EventFrame, EventFrames, StreamEvent, StreamWatcher};

/// Reads a streamed answer: reports its events as they come, and assembles its message.
///
/// ```
/// use trimtab_model::Dialect;
/// use trimtab_wire::answer::AnswerReader;
///
/// let mut reader = AnswerReader::new(Dialect::Chat);
/// reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\n", |_| ());
/// reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}]}", |_| ());
/// assert_eq!(reader.into_message().unwrap().text(), "hello");
/// ```
#[derive(Clone, Debug)]
pub struct AnswerReader {
    frames: EventFrames,
    content: AnswerContent,
}

/// What was read so far.
#[derive(Clone, Debug)]
struct AnswerContent {
    dialect: Dialect,
    watcher: StreamWatcher,
    /// None once the answer is too long to keep.
    parts: Option<AssembledParts>,
    /// The bytes of all events.
    bytes: usize,
}

impl AnswerReader {
    /// A reader for an answer of `dialect`.
    pub fn new(dialect: Dialect) -> Self {
        Self {
            frames: EventFrames::new(LONGEST_ANSWER),
            content: AnswerContent {
                dialect,
                watcher: StreamWatcher::new(dialect),
                parts: Some(AssembledParts::default()),
                bytes: 0,
            },
        }
    }

    /// Reads the next bytes of the stream and passes their events to `each`.
    pub fn push(&mut self, bytes: &[u8], mut each: impl FnMut(StreamEvent<'_>)) {
        let content = &mut self.content;
        self.frames
            .push(bytes, |frame| content.add(&frame, &mut each));
    }

    /// Reads the data of one event, which the caller has already framed.
    pub fn take(&mut self, data: &str, mut each: impl FnMut(StreamEvent<'_>)) {
        let frame = EventFrame::Data(data.as_bytes());
        self.content.add(&frame, &mut each);
    }

    /// Ends the stream: an event without its closing blank line counts too.
    pub fn finish(&mut self, mut each: impl FnMut(StreamEvent<'_>)) {
        let content = &mut self.content;
        self.frames.finish(|frame| content.add(&frame, &mut each));
    }

    /// The usage reported so far.
    pub fn usage(&self) -> Usage {
        self.content.watcher.usage()
    }

    /// The measure of the answer so far: see [`StreamWatcher::said`].
    pub fn said(&self) -> Measure {
        self.content.watcher.said()
    }

    /// True once the provider has marked the answer as complete.
    pub fn is_ended(&self) -> bool {
        self.content.watcher.is_ended()
    }

    /// True if the answer is too long to keep.
    pub fn is_too_long(&self) -> bool {
        self.content.parts.is_none()
    }

    /// The message, unless the answer is empty or too long.
    pub fn into_message(mut self) -> Option<Message> {
        self.finish(|_| ());
        self.content.parts?.into_message(self.content.dialect)
    }
}

impl AnswerContent {
    fn add(&mut self, frame: &EventFrame<'_>, each: &mut impl FnMut(StreamEvent<'_>)) {
        match frame {
            EventFrame::Data(data) if self.bytes + data.len() <= LONGEST_ANSWER => {
                work::step_bytes(data.len());
                self.bytes += data.len();
                if let (Some(parts), Ok(data)) = (&mut self.parts, str::from_utf8(data)) {
                    // None means that the event is no part of the message.
                    parts.add_event(self.dialect, data).unwrap_or(());
                }
            }
            // Free what was kept so far: the rest of a long answer may take minutes.
            _ => self.parts = None,
        }
        self.watcher.take(frame, each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlong_stream_is_given_up() {
        let mut reader = AnswerReader::new(Dialect::Chat);
        let text = "x".repeat(1 << 20);
        let event = format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        for _ in 0..7 {
            reader.push(event.as_bytes(), |_| ());
        }
        assert!(!reader.is_too_long());
        reader.push(event.as_bytes(), |_| ());
        assert!(reader.is_too_long() && reader.into_message().is_none());
    }
}
