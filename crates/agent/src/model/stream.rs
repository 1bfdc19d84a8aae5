//! From the bytes of an answer to its pieces.

use serde_json::Value;
use serde_json::value::RawValue;
use trimtab_model::{Dialect, Message, Part, Usage};
use trimtab_wire::overflow::{Response, Verdict, classify};
use trimtab_wire::sse::{Event, StreamError, Watcher};
use trimtab_wire::{chat, messages, responses};

use super::answer::{Draft, name_calls, note_dialect};
use super::{Answer, Piece};

/// Reads a streamed answer.
pub(super) struct Reader {
    watcher: Watcher,
    draft: Draft,
    ended: bool,
}

/// An error that the provider reported in the stream.
pub(super) struct Reported {
    pub(super) verdict: Box<Verdict>,
    pub(super) message: String,
}

impl Reader {
    pub(super) fn new(dialect: Dialect) -> Self {
        Self {
            watcher: Watcher::new(dialect),
            draft: Draft::new(dialect),
            ended: false,
        }
    }

    /// Takes the next bytes and gives the pieces in them.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Piece>, Reported> {
        let (draft, ended) = (&mut self.draft, &mut self.ended);
        let mut taken = Taken::default();
        self.watcher
            .push(bytes, |event| taken.take(draft, ended, event));
        taken.end()
    }

    /// Ends the stream.
    pub(super) fn finish(&mut self) -> Result<Vec<Piece>, Reported> {
        let (draft, ended) = (&mut self.draft, &mut self.ended);
        let mut taken = Taken::default();
        self.watcher.finish(|event| taken.take(draft, ended, event));
        taken.end()
    }

    /// True once the provider has said that the answer is complete.
    pub(super) fn is_ended(&self) -> bool {
        self.ended
    }

    /// The answer; none if the stream stopped before its end. Some servers say why the model
    /// stopped and then nothing more.
    pub(super) fn answer(self) -> Option<Answer> {
        (self.ended || self.draft.stop.is_some()).then(|| self.draft.finish())
    }
}

/// What was taken from some bytes.
#[derive(Default)]
struct Taken {
    pieces: Vec<Piece>,
    error: Option<StreamError>,
}

impl Taken {
    fn take(&mut self, draft: &mut Draft, ended: &mut bool, event: Event<'_>) {
        match event {
            Event::Text(delta) => {
                let text = delta.text().into_owned();
                draft.text(&text);
                self.pieces.push(Piece::Text(text));
            }
            Event::Reasoning(delta) => {
                let text = delta.text().into_owned();
                draft.thinking(&text);
                self.pieces.push(Piece::Reasoning(text));
            }
            Event::Thought(thought) => draft.thought(thought),
            Event::Call(call) => {
                draft.call(call.clone());
                self.pieces.push(Piece::Call(call));
            }
            Event::Usage(usage) => {
                draft.usage = Some(usage);
                self.pieces.push(Piece::Usage(usage));
            }
            Event::Stop(stop) => draft.stop = Some(stop),
            Event::Error(error) => self.error = Some(error),
            Event::End => *ended = true,
            _ => {}
        }
    }

    fn end(self) -> Result<Vec<Piece>, Reported> {
        let Some(error) = self.error else {
            return Ok(self.pieces);
        };
        let verdict = Box::new(classify(&Response::event("error", error.data.as_bytes())));
        let message = if error.message.is_empty() {
            error.data
        } else {
            error.message
        };
        Err(Reported { verdict, message })
    }
}

/// Reads an answer that came in one piece; none if it is none of this dialect.
pub(super) fn whole(dialect: Dialect, body: &str) -> Option<Answer> {
    let value: Value = serde_json::from_str(body).ok()?;
    let mut message = match dialect {
        Dialect::Chat => chat_answer(body)?,
        Dialect::Messages => messages_answer(body)?,
        Dialect::Responses => responses_answer(body)?,
    };
    message.meta = trimtab_model::Metadata::default();
    let usage = value.get("usage").filter(|usage| usage.is_object());
    message.meta.usage = usage.map(|usage| match dialect {
        Dialect::Chat => Usage::from_chat(usage),
        Dialect::Messages => Usage::from_messages(usage),
        Dialect::Responses => Usage::from_responses(usage),
    });
    let stop = match dialect {
        Dialect::Chat => value.pointer("/choices/0/finish_reason"),
        Dialect::Messages => value.get("stop_reason"),
        Dialect::Responses => value
            .pointer("/incomplete_details/reason")
            .or_else(|| value.get("status")),
    };
    message.meta.stop_reason = stop.and_then(Value::as_str).map(str::to_owned);
    message.parts.retain(|part| !part.is_blank());
    note_dialect(&mut message, dialect);
    name_calls(&mut message);
    Some(Answer::new(message))
}

fn chat_answer(body: &str) -> Option<Message> {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        choices: Vec<Choice<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct Choice<'a> {
        #[serde(borrow)]
        message: &'a RawValue,
    }
    let body: Body<'_> = serde_json::from_str(body).ok()?;
    chat::read_message(body.choices.first()?.message.get()).ok()
}

fn messages_answer(body: &str) -> Option<Message> {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        content: &'a RawValue,
    }
    let body: Body<'_> = serde_json::from_str(body).ok()?;
    let message = format!(r#"{{"role":"assistant","content":{}}}"#, body.content.get());
    let mut read = messages::read_message(&message).ok()?;
    (read.len() == 1).then(|| read.pop()).flatten()
}

fn responses_answer(body: &str) -> Option<Message> {
    #[derive(serde::Deserialize)]
    struct Body<'a> {
        #[serde(borrow)]
        output: &'a RawValue,
    }
    let body: Body<'_> = serde_json::from_str(body).ok()?;
    let read = responses::read_input(body.output.get()).ok()?;
    let parts: Vec<Part> = read.into_iter().flat_map(|message| message.parts).collect();
    let mut message = Message::assistant("");
    message.parts = parts;
    Some(message)
}

/// The pieces of an answer that came whole.
pub(super) fn pieces(answer: &Answer) -> Vec<Piece> {
    let said = answer.message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(Piece::Text(text.text.clone())),
        Part::Reasoning(thought) if !thought.text.is_empty() => {
            Some(Piece::Reasoning(thought.text.clone()))
        }
        Part::Call(call) => Some(Piece::Call(call.clone())),
        _ => None,
    });
    said.chain(answer.usage().map(Piece::Usage)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Ending;

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
            let answer = whole(dialect, body).unwrap();
            assert_eq!(answer.ending, Ending::Calls, "{dialect}");
            assert_eq!(answer.message.parts.len(), thoughts + 1, "{dialect}");
            assert_eq!(answer.message.calls().next().unwrap().name, "look");
            let usage = answer.usage().unwrap();
            assert_eq!((usage.prompt(), usage.output), (10, 2));
            let noted = crate::model::answer::came_in(&answer.message);
            assert_eq!((noted, answer.message.meta.extra.len()), (Some(dialect), 1));
        }
    }

    #[test]
    fn something_else_is_no_answer() {
        for dialect in Dialect::ALL {
            for body in ["", "{}", "[]", "<html>", r#"{"choices":[]}"#] {
                assert!(whole(dialect, body).is_none(), "{dialect} {body}");
            }
        }
    }

    #[test]
    fn a_stream_that_stops_before_its_end_is_no_answer() {
        let mut reader = Reader::new(Dialect::Chat);
        let event = b"data: {\"choices\":[{\"delta\":{\"content\":\"he\"}}]}\n\n";
        assert!(reader.push(event).is_ok_and(|pieces| pieces.len() == 1));
        assert!(reader.finish().is_ok());
        assert!(reader.answer().is_none());
    }

    #[test]
    fn an_overflow_in_the_stream_is_recognised() {
        let mut reader = Reader::new(Dialect::Responses);
        let event = b"data: {\"type\":\"error\",\"error\":{\"code\":\"context_length_exceeded\",\"message\":\"Your input exceeds the context window of this model.\"}}\n\n";
        let reported = reader.push(event).err().unwrap();
        assert!(reported.verdict.is_overflow());
    }
}
