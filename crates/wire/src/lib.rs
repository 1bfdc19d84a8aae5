//! Provider bytes to the model and back. Pure: bytes come in as values.
//!
//! - [`chat`], [`messages`], [`responses`]: the three dialects, message by message.
//! - [`scan`]: a request body as spans.
//! - [`splice`]: a body changed by splicing its bytes.

pub mod chat;
mod json;
mod marks;
mod media;
pub mod messages;
pub mod responses;
pub mod scan;
pub mod splice;
