//! Provider bytes to the model and back. Pure: bytes come in as values.
//!
//! - [`chat`], [`messages`], [`responses`]: the three dialects, message by message.
//! - [`scan`]: a request body as spans.
//! - [`splice`]: a body changed by splicing its bytes.
//! - [`sse`]: streamed answers, watched and rewritten.
//! - [`answer`]: an answer as a message, from its stream or in one piece.
//! - [`auth`]: the headers that carry a key.
//! - [`validate`]: the strict judge of a body.
//! - [`transcript`]: recorded conversations in any of the forms that agents write.
//! - [`catalogue`]: windows, prices and rules of the models.
//! - [`overflow`]: which error says that the window was too large, and what helps.
//! - [`script`]: what a scripted model answers.

pub mod answer;
pub mod auth;
pub mod catalogue;
pub mod chat;
mod json;
mod marks;
mod media;
pub mod messages;
pub mod overflow;
pub mod responses;
pub mod scan;
pub mod script;
pub mod splice;
pub mod sse;
pub mod transcript;
pub mod validate;
