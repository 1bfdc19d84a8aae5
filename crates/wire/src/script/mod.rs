//! The answers of a scripted model, as data.
//!
//! A script is a list of replies, given one after the other; after the last one the model answers
//! `done`. `docs/script.md` describes the format.
//!
//! ```
//! use trimtab_wire::script::{ScriptPlayer, Script};
//!
//! let script = Script::parse(r#"[
//!     {"calls": [{"name": "read_file", "arguments": {"path": "a.txt"}}]},
//!     {"text": "it says hello"}
//! ]"#).unwrap();
//! let mut player = ScriptPlayer::new(script);
//! assert_eq!(player.next_reply().calls[0].name, "read_file");
//! assert_eq!(player.next_reply().text, "it says hello");
//! assert_eq!(player.next_reply().text, "done");
//! ```

mod error;
mod fault;
mod reply;

pub use error::ScriptError;
pub use fault::{ContentCoding, ScriptedFault};
pub use reply::{ScriptedArguments, ScriptedCall, ScriptedReply, ScriptedStop};

use serde::Deserialize;
use serde_json::Value;

/// The replies of a model, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    replies: Vec<ScriptedReply>,
}

/// A script file that is an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    replies: Vec<Value>,
}

impl Script {
    /// A script of `replies`.
    pub fn new(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let replies = replies.into_iter().collect();
        Self { replies }
    }

    /// Parses a script: a list of replies, or an object with the list in `replies`.
    pub fn parse(json: &str) -> Result<Self, ScriptError> {
        let value: Value =
            serde_json::from_str(json).map_err(|error| ScriptError::Json(error.to_string()))?;
        let list = match value {
            Value::Array(list) => list,
            other => {
                let whole: ScriptFile = serde_json::from_value(other)
                    .map_err(|error| ScriptError::Form(error.to_string()))?;
                whole.replies
            }
        };
        let replies = list.into_iter().enumerate();
        let replies: Result<_, _> = replies.map(|(at, value)| read(at, value)).collect();
        Ok(Self { replies: replies? })
    }

    /// The replies, in order.
    pub fn replies(&self) -> &[ScriptedReply] {
        &self.replies
    }

    /// The reply at position `at`; `done` after the end.
    pub fn reply(&self, at: usize) -> ScriptedReply {
        self.replies
            .get(at)
            .cloned()
            .unwrap_or_else(ScriptedReply::done)
    }
}

fn read(at: usize, value: Value) -> Result<ScriptedReply, ScriptError> {
    let number = at + 1;
    let reply: ScriptedReply =
        serde_json::from_value(value).map_err(|error| ScriptError::Reply {
            number,
            problem: error.to_string(),
        })?;
    match reply.problem() {
        Some(problem) => Err(ScriptError::Reply { number, problem }),
        None => Ok(reply),
    }
}

/// Returns the replies of a script one after the other.
#[derive(Clone, Debug, Default)]
pub struct ScriptPlayer {
    script: Script,
    next: usize,
}

impl ScriptPlayer {
    /// Starts with the first reply of `script`.
    pub fn new(script: Script) -> Self {
        Self { script, next: 0 }
    }

    /// The next reply; `done` at the end.
    pub fn next_reply(&mut self) -> ScriptedReply {
        let reply = self.script.reply(self.next);
        self.next += 1;
        reply
    }

    /// The number of replies given.
    pub fn position(&self) -> usize {
        self.next
    }

    /// Continues at reply `position`, for a resumed session.
    pub fn seek(&mut self, position: usize) {
        self.next = position;
    }
}
