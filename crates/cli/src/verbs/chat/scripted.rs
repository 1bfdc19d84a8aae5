//! A model that answers from a script.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use trimtab_agent::model::{Answer, Backend, Piece, Reply, Request};
use trimtab_model::estimate::Measure;
use trimtab_model::{Call, Dialect, Message, Part, Usage};
use trimtab_testkit::script::{self, Player, Script, Stop};

/// A model that answers from a script, one reply a request. Faults of the script are a matter
/// of HTTP and do not happen here.
pub(super) struct Scripted(Mutex<Player>);

impl Scripted {
    /// Plays `script`, beginning behind its first `answered` replies.
    pub(super) fn new(script: Script, answered: usize) -> Self {
        let mut player = Player::new(script);
        player.seek(answered);
        Self(Mutex::new(player))
    }
}

impl Backend for Scripted {
    fn dialect(&self) -> Dialect {
        Dialect::Chat
    }

    fn call(&self, request: Request) -> Reply {
        let mut player = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = player.position();
        let reply = player.next_reply();
        drop(player);
        let wait = Duration::from_millis(reply.delay_ms.unwrap_or(0));
        Reply::spawn(move |sink| async move {
            let thought = pieces(&reply.reasoning).map(|more| Piece::Reasoning(more.to_owned()));
            let said = pieces(&reply.text).map(|more| Piece::Text(more.to_owned()));
            for piece in thought.chain(said) {
                tokio::time::sleep(wait).await;
                sink.send(piece).await;
            }
            Ok(answer(&reply, at, &request))
        })
    }
}

/// A text word by word, as models stream it.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace)
}

fn answer(reply: &script::Reply, at: usize, request: &Request) -> Answer {
    let mut message = Message::assistant(&reply.text);
    if !reply.reasoning.is_empty() {
        message.parts.insert(0, Part::reasoning(&reply.reasoning));
    }
    for (number, call) in reply.calls.iter().enumerate() {
        let id = call
            .id
            .clone()
            .unwrap_or_else(|| format!("call_{at}_{number}"));
        message = message.with_call(Call::new(id, &call.name, call.arguments.to_text()));
    }
    message.meta.usage = Some(reply.usage.unwrap_or_else(|| counted(&message, request)));
    message.meta.stop_reason = match reply.stop {
        Stop::Length => Some("length".to_owned()),
        Stop::End => None,
    };
    Answer::new(message)
}

/// What a provider would report, by our estimate.
fn counted(answer: &Message, request: &Request) -> Usage {
    let estimate = || {
        let sent = request.messages.iter();
        sent.map(|message| Measure::of(message).tokens()).sum()
    };
    Usage {
        input: request.estimate.unwrap_or_else(estimate),
        output: Measure::of(answer).tokens(),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn replies_come_in_order_and_in_pieces() {
        let script = r#"[
            {"text": "skipped"},
            {"reasoning": "I look.", "text": "one moment", "stop": "length",
             "calls": [{"name": "list", "arguments": {"path": "."}}],
             "usage": {"input": 7, "output": 3}}
        ]"#;
        let model = Scripted::new(Script::parse(script).unwrap(), 1);
        let mut reply = model.call(Request::default());
        let mut said = Vec::new();
        let answer = loop {
            match reply.next().await.unwrap().unwrap() {
                Piece::Text(text) | Piece::Reasoning(text) => said.push(text),
                Piece::End(answer) => break answer,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(said, ["I ", "look.", "one ", "moment"]);
        assert_eq!(answer.message.text(), "one moment");
        assert_eq!(answer.message.calls().next().unwrap().id, "call_1_0");
        assert_eq!(answer.usage().unwrap().total(), 10);
        assert_eq!(answer.message.meta.stop_reason.as_deref(), Some("length"));
        let last = model.call(Request::default()).answer().await.unwrap();
        assert_eq!(last.message.text(), "done");
    }
}
