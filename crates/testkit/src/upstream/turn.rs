//! Which reply is given, and what goes wrong with it.

use serde_json::Value;
use trimtab_model::Dialect;

use super::answer::OutgoingReply;
use super::exchange::UpstreamExchange;
use super::prompt::JudgedPrompt;
use super::seal::sign;
use super::{OverflowForm, ReceivedRequest};
use crate::script::{ScriptedFault, ScriptedReply};

/// The reply to one request.
pub(super) struct ScriptedTurn {
    reply: ScriptedReply,
    pub(super) fault: Option<ScriptedFault>,
    /// What the ids of the answer are made of.
    id: String,
}

impl UpstreamExchange {
    /// The reply to `received`; a reply that spoils is given again to the next request.
    pub(super) fn turn(&self, received: &ReceivedRequest) -> ScriptedTurn {
        let source = &self.options.source;
        let key = source.key(received);
        let mut state = self.state();
        let planned = self.options.faults.fault(state.asked);
        state.asked += 1;
        let conversation = state.conversations.entry(key.clone()).or_default();
        let step = conversation.step;
        let known = source.known(&key, step);
        let own = known.as_ref().and_then(|reply| reply.fault);
        let fault = planned.or(own.filter(|_| !conversation.spoiled));
        if fault.is_some_and(ScriptedFault::is_fatal) {
            conversation.spoiled |= planned.is_none();
        } else {
            conversation.step += 1;
            conversation.spoiled = false;
        }
        // A reply that is made may ask what came so far.
        drop(state);
        let (reply, fault) = known.map_or_else(
            || {
                let reply = source.made(received);
                let own = reply.fault;
                (reply, fault.or(own))
            },
            |reply| (reply, fault),
        );
        let id = id(&key, step);
        ScriptedTurn { reply, fault, id }
    }

    /// The reply as an answer.
    pub(super) fn answer(
        &self,
        turn: &ScriptedTurn,
        prompt: &JudgedPrompt,
        dialect: Dialect,
        received: &ReceivedRequest,
    ) -> OutgoingReply {
        let mut reply = turn.reply.clone();
        if is_off(&prompt.body) {
            reply.reasoning.clear();
        }
        let silent = self
            .options
            .window
            .filter(|_| self.options.overflow == OverflowForm::Silent);
        let tokens = received.tokens.min(silent.unwrap_or(u64::MAX));
        let usage = self.options.count.usage(&reply, tokens, prompt.cached);
        let answer = OutgoingReply {
            dialect,
            id: turn.id.clone(),
            model: received.model.clone(),
            seal: seal(prompt, dialect, &reply),
            include_usage: prompt.body.pointer("/stream_options/include_usage")
                == Some(&Value::Bool(true)),
            reply,
            usage,
        };
        self.remember(&answer, is_off(&prompt.body));
        answer
    }

    /// Remembers which calls and items came with a sealed thought, and which came while
    /// thinking was disabled.
    fn remember(&self, answer: &OutgoingReply, is_off: bool) {
        if answer.seal.is_none() && !is_off {
            return;
        }
        let thought = if is_off {
            String::new()
        } else {
            answer.thought_id()
        };
        let calls: Vec<String> = match answer.dialect {
            Dialect::Chat => return,
            Dialect::Messages => answer.calls().map(|(id, _)| id).collect(),
            Dialect::Responses => answer.item_ids(),
        };
        let pairs = calls.into_iter().map(|id| (id, thought.clone()));
        self.state().thoughts.extend(pairs);
    }
}

/// True if the client asks for an answer without a thought.
fn is_off(body: &Value) -> bool {
    let switch = body.pointer("/thinking/type");
    switch.is_some_and(|switch| switch == "disabled")
}

/// The seal of a reply's thought, where the dialect has one and the client wants it.
fn seal(prompt: &JudgedPrompt, dialect: Dialect, reply: &ScriptedReply) -> Option<String> {
    if reply.reasoning.is_empty() {
        return None;
    }
    let before = &prompt.canonical.digest;
    let claims = &prompt.canonical.claims;
    match dialect {
        Dialect::Chat => None,
        Dialect::Messages => Some(sign(before, claims, &reply.reasoning)),
        Dialect::Responses => {
            let include = prompt.body.get("include").and_then(Value::as_array);
            let mut include = include.into_iter().flatten();
            include
                .any(|what| what == "reasoning.encrypted_content")
                .then(|| sign(before, claims, ""))
        }
    }
}

/// The same for the same place of the same conversation, so that runs compare.
fn id(key: &str, step: usize) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes()).update(&step.to_le_bytes());
    hasher.finalize().to_hex().chars().take(20).collect()
}
