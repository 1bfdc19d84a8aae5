//! A small agent on the trimtab library, and the reference for building one.
//!
//! - [`model`]: clients for the three dialects, and a scripted model.
//! - [`tools`]: the tools of the model, confined to a workspace.
//! - [`Agent`]: the loop. It admits every output and verifies every window before sending it. The
//!   session's policy decides what is trimmed and compacted, and when.
//! - [`AgentEvent`]: a stream of everything that happens.

mod agent;
mod background;
mod calls;
mod error;
mod event;
mod interrupt;
pub mod model;
mod settings;
mod summary;
pub mod tools;
mod turn;

pub use agent::Agent;
pub use error::AgentError;
pub use event::{AgentEvent, AgentEvents};
pub use interrupt::Interrupt;
pub use settings::AgentSettings;
pub use summary::ModelSummariser;
pub use turn::{TurnEnd, TurnResult};
