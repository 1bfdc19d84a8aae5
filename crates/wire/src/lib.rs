//! Converts provider bytes to the model and back, without I/O.
//!
//! - [`chat`], [`messages`], [`responses`]: the messages of the three dialects.
//! - [`scan`]: a request body as spans.
//! - [`splice`]: edits a body by splicing its bytes.
//! - [`sse`]: reads and rewrites streamed answers.
//! - [`answer`]: an answer as a message, from a stream or a complete body.
//! - [`auth`]: the headers that carry a key.
//! - [`json`]: finds fields of an object without parsing the rest.
//! - [`validate`]: strict validation of a body.
//! - [`transcript`]: recorded conversations in all forms that agents write.
//! - [`catalogue`]: windows, prices and rules of the models.
//! - [`overflow`]: recognises overflow errors, and what helps.
//! - [`script`]: the answers of a scripted model.

pub mod answer;
pub mod auth;
pub mod catalogue;
pub mod chat;
pub mod json;
mod media;
pub mod messages;
pub mod overflow;
mod raw_part;
pub mod responses;
pub mod scan;
pub mod script;
mod spelling_marks;
pub mod splice;
pub mod sse;
pub mod transcript;
pub mod validate;
