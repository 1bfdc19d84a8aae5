//! The types of a conversation.
//!
//! All of Trimtab uses the terms of this crate: a [`Message`] consists of [`Part`]s; an assistant
//! message with its calls and all their outputs is a round ([`rounds`]); a real user message and
//! everything up to the next one is a turn ([`turns`]); [`Usage`] is what the provider reports, and
//! an estimate is our figure before the call; a [`Ref`] is the handle to something in the store.
//!
//! This crate does no I/O and uses no clock and no randomness.
//!
//! ```
//! use trimtab_model::{Call, Message, turns};
//!
//! let log = [
//!     Message::user("what is in the folder?"),
//!     Message::assistant("").with_call(Call::new("c1", "list", "{}")),
//!     Message::output("c1", "a.txt\nb.txt"),
//!     Message::assistant("two files"),
//!     Message::user("thanks"),
//! ];
//! assert_eq!(turns::boundaries(&log), [0, 4]);
//! ```

mod dialect;
mod disjoint_sets;
pub mod estimate;
mod json;
pub mod marks;
mod message;
mod part;
mod program;
mod reference;
pub mod rounds;
mod saved_tokens;
mod treatment;
pub mod turns;
pub mod usage;
pub mod work;

pub use dialect::Dialect;
pub use disjoint_sets::DisjointSets;
pub use json::{ExtraFields, RawJson};
pub use message::{Message, MessageKind, MessageMetadata, Role};
pub use part::{Call, Media, MediaKind, Opaque, Output, Part, Reasoning, Text};
pub use program::{CALLER, PartIds};
pub use reference::Ref;
pub use saved_tokens::SavedTokens;
pub use treatment::{CHAT_PARTS, MESSAGES_BLOCKS, RESPONSES_ITEMS, Treatment, treatment};
pub use usage::Usage;
