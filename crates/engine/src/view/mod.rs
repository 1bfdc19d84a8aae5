//! Views: the part of an output that the model sees.
//!
//! A tool may print a gigabyte; the window shows a few hundred lines of it and says how to retrieve
//! the rest. Everything here maps text to text and counts: refs and the results of spilling are
//! parameters, and nothing is read or written.
//!
//! - [`view`] makes the view of one output, in one of the [`Shape`]s.
//! - [`policy`] selects the shape by tool.
//! - [`structure`] is our own shape: beginning, end and errors.
//! - [`trim`] and [`retention`] shorten old outputs of a whole log, and [`WindowOutputs`] finds
//!   them without walking all of it.
//! - [`placeholder`] replaces trimmed outputs.
//! - [`tools`] let the model retrieve the rest, in answers within the limits of [`retrieval`].
//!
//! ```
//! use trimtab_engine::view::{ViewContext, HeadLinesCut, Shape, view};
//!
//! let shape = Shape::HeadLines(HeadLinesCut { max_bytes: 7, ..HeadLinesCut::default() });
//! let shown = view("one\ntwo\nthree", &shape, &ViewContext::default());
//! assert_eq!(shown, "one\ntwo\n\n[tool output truncated]");
//! ```

pub(crate) mod errors;
pub(crate) mod figures;
mod head_lines;
mod limits;
mod middle;
pub(crate) mod output_index;
pub mod placeholder;
pub mod policy;
mod prefix;
pub mod retention;
pub mod retrieval;
mod shape;
pub mod structure;
pub mod tools;
pub mod trim;
mod window_outputs;

pub use figures::grouped;
pub use head_lines::HeadLinesCut;
pub use limits::{KeptLines, LimitsCut, Spill};
pub use middle::{CapUnit, LineCountHeader, MiddleCut};
pub use prefix::PrefixCut;
pub use shape::{Shape, StructureCut, ViewContext, view};
pub use window_outputs::WindowOutputs;

use trimtab_model::Output;

/// A change of the view of one output of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// Index of the message that contains it.
    pub message: usize,
    /// Index of the part in that message.
    pub part: usize,
    /// The new view.
    pub output: Output,
}
