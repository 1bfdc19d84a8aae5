//! The context engine between an agent and its model: it decides, before every call, what goes
//! into the window.
//!
//! A [`Session`](session::Session) receives what happens, message by message, and returns what to
//! send. Outputs are stored in full and shown short, old rounds are compacted before the window
//! overflows, and everything can be retrieved by its ref.
//!
//! ```
//! use std::sync::Arc;
//! use trimtab::engine::policy::Policy;
//! use trimtab::model::{Call, Message};
//! use trimtab::session::{Moment, Session, Setup};
//! use trimtab::store::{MemoryStore, SessionId, Store};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(MemoryStore::new());
//! let mut setup = Setup::new(Policy::preset("steady")?);
//! setup.limits.window = Some(32_000);
//! let mut session = Session::open(store.clone(), SessionId::new("s1")?, setup)?;
//!
//! let log = "all is well here\n".repeat(20_000);
//! session.admit(Message::user("what went wrong?"))?;
//! session.admit(Message::assistant("").with_call(Call::new("c1", "read", "{}")))?;
//! session.admit(Message::output("c1", &log))?;
//!
//! // Before every call: time to compact? Then what to send.
//! session.check(Moment::BeforeCall)?;
//! let ready = session.ready()?;
//! assert!(ready.tokens < 32_000);
//! let shown = session.window()?.messages().last().cloned();
//! # let shown = shown.ok_or("a window")?;
//! let stored = shown.outputs().next().and_then(|output| output.stored.as_ref());
//! # let stored = stored.ok_or("a ref")?;
//! assert_eq!(store.get(session.id(), stored.id())?, log.as_bytes());
//! # Ok(())
//! # }
//! ```
//!
//! | module | for |
//! |---|---|
//! | [`session`] | admit, check, ready, record, recover, compact, undo: what agents and the proxy use |
//! | [`single_output`] | one output on its own, stored in full and shown short |
//! | [`config`] | settings from flags, environment and files, over a preset |
//! | [`retrieval`] | the two tools with which a model retrieves an output |
//! | [`request`] | what changes in a provider's request body for a window |
//! | [`film`] | what each call of a conversation was sent, as a picture |
//! | [`replay`] | recorded sessions through a policy, measured |
//! | [`network`] | connections to other machines: certificate authorities, egress proxy |
//! | [`provider`] | the providers whose addresses and keys we know |
//! | [`redact`] | texts without the passwords of addresses |
//!
//! The parts below it are re-exported: [`model`], [`engine`], [`wire`], [`store`].
//!
//! Without the feature `folder`, which is on by default, only the store in memory exists, and
//! neither `SQLite` nor zstd is compiled.

mod admission;
pub mod config;
pub mod film;
pub mod network;
pub mod provider;
pub mod redact;
pub mod replay;
pub mod request;
pub mod retrieval;
pub mod session;
pub mod single_output;
pub mod store_place;

pub use trimtab_engine as engine;
pub use trimtab_model as model;
pub use trimtab_store as store;
pub use trimtab_wire as wire;

/// The examples of the guide, run as they are printed.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/rust.md")]
struct GuideExamples;
