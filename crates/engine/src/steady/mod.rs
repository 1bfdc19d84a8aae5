//! Our own policy: cut once when an output comes in, rewrite rarely and in one batch.
//!
//! Rewriting what was sent before costs more than it saves, most of the time: everything behind
//! the first change has to be paid for again. So an output is cut when it comes in, by the room
//! there is ([`Steady::cap`]), or becomes a back-reference ([`Steady::back_reference`]), and
//! stays as it is. Only at a switch point, all at once, the window comes down from its
//! high-water mark to its low-water mark ([`Steady::rewrite`]): old outputs become index cards,
//! and the oldest rounds a block of facts with the ref under which all of it is stored.
//!
//! Every figure is the smaller of an absolute one and a share of the window, so that a window
//! of 4,000 tokens works like one of a million.
//!
//! What goes on a card, where the marks are and in which order outputs go was measured on
//! recorded sessions; `docs/steady.md` has the figures.

mod admission;
mod arithmetic;
mod block;
mod card;
mod draft;
mod edits;
mod names;
mod rewrite;
mod settings;
mod situation;
mod survey;
mod weight;
mod words;

pub use admission::Room;
pub use arithmetic::{Account, Rates};
pub use rewrite::Rewrite;
pub use settings::Steady;
pub use situation::{Situation, Switch};
pub use weight::weight;
