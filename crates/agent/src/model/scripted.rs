//! A model that answers from a script, for tests and for trials without a key.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::sleep;
use trimtab_model::estimate::Measure;
use trimtab_model::{Call, Dialect, Message, Part, Usage};
use trimtab_wire::script::{Script, ScriptPlayer, ScriptedReply as Line, ScriptedStop};

use super::reply::ReplySink;
use super::{ModelAnswer, ModelBackend, ModelError, ModelReply, ModelRequest, ReplyPiece};

/// A model that answers from a script, in the format of `docs/script.md`.
///
/// Each request of a conversation consumes the next reply. A script contains no summaries: a
/// request for one fails, and the session writes a summary without a model.
#[derive(Clone, Debug)]
pub struct ScriptedModel {
    player: Arc<Mutex<ScriptPlayer>>,
    dialect: Dialect,
    /// True if the script answers summary requests instead of a conversation.
    summaries: bool,
}

impl ScriptedModel {
    /// A model that answers from `script`.
    pub fn new(script: Script) -> Self {
        Self {
            player: Arc::new(Mutex::new(ScriptPlayer::new(script))),
            dialect: Dialect::default(),
            summaries: false,
        }
    }

    /// A model that answers from a script file.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ModelError> {
        let path = path.as_ref();
        let failed = |why: String| ModelError::Script(format!("{}: {why}", path.display()));
        let json = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let script = Script::parse(&json).map_err(|error| failed(error.to_string()))?;
        Ok(Self::new(script))
    }

    /// Uses the rules of another dialect for windows.
    #[must_use]
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.dialect = dialect;
        self
    }

    /// Uses the script for summaries. Otherwise it answers only the conversation, so that a
    /// compaction does not consume its replies.
    #[must_use]
    pub fn writes_summaries(mut self) -> Self {
        self.summaries = true;
        self
    }

    /// Continues at reply `position`, counted from 0. For a resumed session, pass the number of
    /// answers in its log.
    #[must_use]
    pub fn from_position(self, position: usize) -> Self {
        self.player().seek(position);
        self
    }

    fn player(&self) -> std::sync::MutexGuard<'_, ScriptPlayer> {
        self.player.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelBackend for ScriptedModel {
    fn dialect(&self) -> Dialect {
        self.dialect
    }

    fn call(&self, request: ModelRequest) -> ModelReply {
        // Only requests of a conversation have a name; summary requests have none.
        let next = (request.conversation.is_some() != self.summaries).then(|| {
            let mut player = self.player();
            // The position makes the ids of calls unique within the conversation.
            let position = player.position();
            (position, player.next_reply())
        });
        ModelReply::spawn(|sink| async move {
            let Some((position, reply)) = next else {
                return Err(ModelError::Script("it writes no summaries".to_owned()));
            };
            play(&reply, &sink).await;
            Ok(answer(position, reply, &request))
        })
    }
}

/// Streams a reply word by word.
async fn play(reply: &Line, sink: &ReplySink) {
    let wait = reply.delay_ms.map(Duration::from_millis);
    let thoughts = words(&reply.reasoning).map(ReplyPiece::Reasoning);
    for piece in thoughts.chain(words(&reply.text).map(ReplyPiece::Text)) {
        if let Some(wait) = wait {
            sleep(wait).await;
        }
        sink.send(piece).await;
    }
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split_inclusive(char::is_whitespace).map(str::to_owned)
}

fn answer(position: usize, reply: Line, request: &ModelRequest) -> ModelAnswer {
    let mut message = Message::assistant(reply.text);
    if !reply.reasoning.is_empty() {
        message.parts.insert(0, Part::reasoning(reply.reasoning));
    }
    for (at, call) in reply.calls.into_iter().enumerate() {
        let id = call.id.unwrap_or_else(|| format!("call_{position}_{at}"));
        let arguments = call.arguments.to_text();
        message = message.with_call(Call::new(id, call.name, arguments));
    }
    // The session learns from usage, so a script without figures gets plausible ones.
    let counted = || Usage {
        input: request
            .messages
            .iter()
            .map(|m| Measure::of(m).tokens())
            .sum(),
        output: Measure::of(&message).tokens(),
        ..Usage::default()
    };
    message.meta.usage = Some(reply.usage.unwrap_or_else(counted));
    message.meta.stop_reason = Some(
        match reply.stop {
            ScriptedStop::Length => "length",
            ScriptedStop::End if message.has_calls() => "tool_calls",
            ScriptedStop::End => "stop",
        }
        .to_owned(),
    );
    ModelAnswer::new(message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AnswerEnding, ModelClient};

    fn request() -> ModelRequest {
        ModelRequest {
            conversation: Some("s".to_owned()),
            ..ModelRequest::new("scripted", vec![Arc::new(Message::user("hello"))])
        }
    }

    #[tokio::test]
    async fn replies_come_in_order_and_word_by_word() {
        let script = r#"[{"reasoning":"hm","calls":[{"name":"look"}]},{"text":"it is here"}]"#;
        let client = ModelClient::new(ScriptedModel::new(Script::parse(script).unwrap()));
        let first = client.call(request()).answer().await.unwrap();
        assert_eq!(first.ending, AnswerEnding::Calls);
        assert_eq!(first.message.calls().next().unwrap().id, "call_0_0");
        let mut reply = client.call(request());
        let mut said = Vec::new();
        while let Some(Ok(piece)) = reply.next().await {
            if let ReplyPiece::Text(text) = piece {
                said.push(text);
            }
        }
        assert_eq!(said, ["it ", "is ", "here"]);
        let usage = client.call(request()).answer().await.unwrap().usage();
        assert!(usage.unwrap().input > 0);
    }

    #[tokio::test]
    async fn a_bad_script_and_a_summary_are_errors() {
        let error = ScriptedModel::from_file("no/such/file")
            .unwrap_err()
            .to_string();
        assert!(error.contains("no/such/file"), "{error}");
        let client = ModelClient::new(ScriptedModel::new(Script::default()).from_position(3));
        let summary = ModelRequest::new("scripted", Vec::new());
        assert!(client.call(summary).answer().await.is_err());
    }
}
