//! Provider bytes to the model and back. Pure: bytes come in as values.
//!
//! - [`chat`], [`messages`], [`responses`]: the three dialects, message by message.
//! - [`transcript`]: recorded conversations in any of the forms that agents write.

pub mod chat;
mod json;
mod marks;
mod media;
pub mod messages;
pub mod responses;
