//! Model clients: Chat Completions, Responses and Messages over HTTP, and a scripted model.
//!
//! A [`ModelClient`] takes a [`ModelRequest`] and returns a [`ModelReply`], a stream of
//! [`ReplyPiece`]s that ends with the complete [`ModelAnswer`]. Dropping the reply aborts the call.

mod answer;
mod body;
mod cache_markers;
mod client;
mod endpoint;
mod error;
mod failure;
mod http;
mod refused_fields;
mod reply;
mod retry;
mod scripted;
mod sent_cache;
mod stream;
mod unpack;

pub use answer::{AnswerEnding, ModelAnswer};
pub use client::{ModelBackend, ModelClient};
pub use endpoint::{ApiKey, BadBaseUrl, Endpoint};
pub use error::{ModelError, WaitPhase};
pub use http::{HttpModel, Timeouts};
pub use reply::{ModelReply, ReplyPiece, ReplySink};
pub use retry::RetryPolicy;
pub use scripted::ScriptedModel;

use std::sync::Arc;

use trimtab_model::Message;

use crate::tools::ToolDefinition;

/// A model: its server and its name there.
#[derive(Clone, Debug)]
pub struct Model {
    /// The client of its server.
    pub client: ModelClient,
    /// Its name there.
    pub name: String,
}

/// A request to a model.
#[derive(Clone, Debug, Default)]
pub struct ModelRequest {
    /// The name of the model.
    pub model: String,
    /// The window, system messages first.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model may call.
    pub tools: Arc<[ToolDefinition]>,
    /// The output limit in tokens; the provider's limit if unset.
    pub max_output: Option<u64>,
    /// True if the model must answer with text although tools are listed. A summary of rounds with
    /// calls needs the list, because providers reject calls of unknown tools.
    pub only_text: bool,
    /// The window of the model in tokens, if known.
    pub window: Option<u64>,
    /// The estimated tokens of this request, if known. It helps to recognise an unexplained
    /// overflow.
    pub estimate: Option<u64>,
    /// The name of the conversation, so that the prefix of its previous request can be reused.
    pub conversation: Option<String>,
}

impl ModelRequest {
    /// Asks `model` to continue `messages`.
    pub fn new(model: impl Into<String>, messages: Vec<Arc<Message>>) -> Self {
        Self {
            model: model.into(),
            messages,
            ..Self::default()
        }
    }
}
