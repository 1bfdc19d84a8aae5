//! Parses the bytes of an answer into pieces.

use trimtab_model::{Dialect, Message, Part, Usage};
use trimtab_wire::answer::{AnswerReader, WholeAnswer};
use trimtab_wire::overflow::{OverflowVerdict, ProviderResponse, classify};
use trimtab_wire::sse::{StreamError, StreamEvent};

use super::{ModelAnswer, ReplyPiece};

/// Reads a streamed answer: pieces as they arrive, and the message at the end.
pub(super) struct AnswerStreamReader {
    dialect: Dialect,
    reader: AnswerReader,
    report: StreamReport,
}

/// Usage and stop reason of a stream.
#[derive(Default)]
struct StreamReport {
    usage: Option<Usage>,
    stop: Option<String>,
}

/// An error event of the provider.
pub(super) struct ReportedError {
    pub(super) verdict: Box<OverflowVerdict>,
    pub(super) message: String,
}

impl AnswerStreamReader {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            reader: AnswerReader::new(dialect),
            report: StreamReport::default(),
        }
    }

    /// Parses the next bytes and returns their pieces.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<ReplyPiece>, ReportedError> {
        let said = &mut self.report;
        let mut taken = TakenPieces::default();
        self.reader.push(bytes, |event| taken.take(said, event));
        taken.end()
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self) -> Result<Vec<ReplyPiece>, ReportedError> {
        let said = &mut self.report;
        let mut taken = TakenPieces::default();
        self.reader.finish(|event| taken.take(said, event));
        taken.end()
    }

    /// True once the provider has marked the answer as complete.
    pub(super) fn is_ended(&self) -> bool {
        self.reader.is_ended()
    }

    /// The answer; none if the stream was cut off. A stop reason suffices, because some servers
    /// send nothing after it.
    pub(super) fn answer(self) -> Option<ModelAnswer> {
        let StreamReport { usage, stop } = self.report;
        if !self.reader.is_ended() && stop.is_none() {
            return None;
        }
        let message = self.reader.into_message();
        let message = message.unwrap_or_else(|| Message::assistant(""));
        Some(ModelAnswer::received(message, self.dialect, usage, stop))
    }
}

/// The pieces parsed from some bytes.
#[derive(Default)]
struct TakenPieces {
    pieces: Vec<ReplyPiece>,
    error: Option<StreamError>,
}

impl TakenPieces {
    fn take(&mut self, said: &mut StreamReport, event: StreamEvent<'_>) {
        match event {
            StreamEvent::Text(delta) => self
                .pieces
                .push(ReplyPiece::Text(delta.text().into_owned())),
            StreamEvent::Reasoning(delta) => {
                let text = delta.text().into_owned();
                self.pieces.push(ReplyPiece::Reasoning(text));
            }
            StreamEvent::Usage(usage) => said.usage = Some(usage),
            StreamEvent::Stop(stop) => said.stop = Some(stop),
            StreamEvent::Error(error) => self.error = Some(error),
            _ => {}
        }
    }

    fn end(self) -> Result<Vec<ReplyPiece>, ReportedError> {
        // The pieces before an error are dropped with it, since the call fails.
        let Some(error) = self.error else {
            return Ok(self.pieces);
        };
        let verdict = Box::new(classify(&ProviderResponse::event(
            "error",
            error.data.as_bytes(),
        )));
        let message = if error.message.is_empty() {
            error.data
        } else {
            error.message
        };
        Err(ReportedError { verdict, message })
    }
}

/// Parses a complete answer; none if it does not match the dialect.
pub(super) fn read_whole(dialect: Dialect, body: &str) -> Option<ModelAnswer> {
    let WholeAnswer {
        message,
        usage,
        stop,
    } = WholeAnswer::read(dialect, body.as_bytes())?;
    Some(ModelAnswer::received(message, dialect, usage, stop))
}

/// The pieces of a complete answer.
pub(super) fn pieces(answer: &ModelAnswer) -> Vec<ReplyPiece> {
    let parts = answer.message.parts.iter();
    let pieces = parts.filter_map(|part| match part {
        Part::Text(text) => Some(ReplyPiece::Text(text.text.clone())),
        Part::Reasoning(thought) if !thought.text.is_empty() => {
            Some(ReplyPiece::Reasoning(thought.text.clone()))
        }
        _ => None,
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AnswerEnding;

    #[test]
    fn a_whole_answer_is_read_in_every_dialect() {
        let chat = r#"{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]}}],"usage":{"prompt_tokens":10,"completion_tokens":2}}"#;
        let messages = r#"{"type":"message","role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},{"type":"tool_use","id":"c1","name":"look","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":2}}"#;
        let responses = r#"{"status":"completed","output":[{"type":"reasoning","id":"r","summary":[],"encrypted_content":"e"},{"type":"function_call","id":"f","call_id":"c1","name":"look","arguments":"{}"}],"usage":{"input_tokens":10,"output_tokens":2}}"#;
        for (dialect, body, thoughts) in [
            (Dialect::Chat, chat, 0),
            (Dialect::Messages, messages, 1),
            (Dialect::Responses, responses, 1),
        ] {
            let answer = read_whole(dialect, body).unwrap();
            assert_eq!(answer.ending, AnswerEnding::Calls, "{dialect}");
            assert_eq!(answer.message.parts.len(), thoughts + 1, "{dialect}");
            assert_eq!(answer.message.calls().next().unwrap().name, "look");
            let usage = answer.usage().unwrap();
            assert_eq!((usage.prompt(), usage.output), (10, 2));
            let noted = crate::model::answer::came_in(&answer.message);
            assert_eq!((noted, answer.message.meta.extra.len()), (Some(dialect), 1));
        }
    }

    #[test]
    fn foreign_json_is_not_an_answer() {
        for dialect in Dialect::ALL {
            for body in ["", "{}", "[]", "<html>", r#"{"choices":[]}"#] {
                assert!(read_whole(dialect, body).is_none(), "{dialect} {body}");
            }
        }
    }

    #[test]
    fn truncated_stream_is_not_an_answer() {
        let mut reader = AnswerStreamReader::new(Dialect::Chat);
        let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"he\"}}]}\n\n";
        assert!(reader.push(event).is_ok_and(|pieces| pieces.len() == 1));
        assert!(reader.finish().is_ok());
        assert!(reader.answer().is_none());
    }

    #[test]
    fn an_overflow_in_the_stream_is_recognised() {
        let mut reader = AnswerStreamReader::new(Dialect::Responses);
        let event = b"data: {\"type\":\"error\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}\n\n";
        let reported = reader.push(event).err().unwrap();
        assert!(reported.verdict.is_overflow());
    }
}
