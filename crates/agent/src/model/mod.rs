//! Model clients: Chat Completions, Responses and Messages over HTTP, and a scripted model.
//!
//! A [`Client`] takes a [`Request`] and gives a [`Reply`], a stream of [`Piece`]s that ends
//! with the whole [`Answer`]. Dropping the reply breaks the call off.

mod answer;
mod body;
mod client;
mod endpoint;
mod error;
mod failure;
mod http;
mod marks;
mod quirks;
mod reply;
mod retry;
mod scripted;
mod sent;
mod stream;
mod unpack;

pub use answer::{Answer, Ending};
pub use client::{Backend, Client};
pub use endpoint::{BadBase, Endpoint, Key};
pub use error::{ModelError, Wait};
pub use http::{Http, Timeouts};
pub use reply::{Piece, Reply, Sink};
pub use retry::Retries;
pub use scripted::Scripted;

use std::sync::Arc;

use trimtab_model::Message;

use crate::tools::Definition;

/// A model: who serves it, and its name there.
#[derive(Clone, Debug)]
pub struct Model {
    /// Who serves it.
    pub client: Client,
    /// Its name there.
    pub name: String,
}

/// What a model is asked.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The name of the model.
    pub model: String,
    /// The window, system messages first.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model may call.
    pub tools: Arc<[Definition]>,
    /// The longest answer, in tokens; the provider's own limit where unset.
    pub max_output: Option<u64>,
    /// True if the model must answer in words although tools are listed: a summary of rounds
    /// that call tools needs the list, and nothing else.
    pub only_text: bool,
    /// The window of the model in tokens, where known.
    pub window: Option<u64>,
    /// About how many tokens this request has, where known: tells an overflow that the
    /// provider does not explain.
    pub estimate: Option<u64>,
    /// True if the thought that led to the open round had to be taken out of the window.
    /// Messages only goes on then if the model does not think for once.
    pub lost_thought: bool,
    /// Names the conversation, so that what was written for its last request is used again.
    pub conversation: Option<String>,
}

impl Request {
    /// Asks `model` to go on with `messages`.
    pub fn new(model: impl Into<String>, messages: Vec<Arc<Message>>) -> Self {
        Self {
            model: model.into(),
            messages,
            ..Self::default()
        }
    }
}
