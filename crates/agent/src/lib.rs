//! A small agent on the trimtab library, and the reference for everyone who builds one.
//!
//! - [`model`]: clients for the three dialects, and a scripted model.
//! - [`tools`]: what the model can do, confined to a workspace.
//! - [`Agent`]: the loop. Every output is admitted, every window is verified before it is sent,
//!   and the policy of the session decides what is trimmed and compacted, and when.
//! - [`Event`]: what happens meanwhile, as a stream.

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
pub use event::{Event, Events};
pub use interrupt::Interrupt;
pub use settings::{ASSUMED_WINDOW, Settings};
pub use summary::Summariser;
pub use turn::{Turn, TurnEnd};
