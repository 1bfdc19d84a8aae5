//! What the model sees of an output.
//!
//! A tool may print a gigabyte; the window sees a few hundred lines of it and says how to get
//! the rest. Everything here is text in, text and counts out: refs and spill facts come in as
//! values, and nothing is read or written.
//!
//! - [`view`] makes the view of one output, in one of the [`Shape`]s;
//! - [`policy`] says which shape a tool's outputs get;
//! - [`structure`] is our own shape: it cuts by what the text is;
//! - [`trim`] and [`retention`] shorten old outputs of a whole log, and [`WindowOutputs`] finds
//!   them without walking all of it;
//! - [`placeholder`] is what is left of an output that was trimmed;
//! - [`retrieval`] and [`tools`] are how the model gets the rest back.
//!
//! ```
//! use trimtab_engine::view::{ViewContext, HeadLinesCut, Shape, view};
//!
//! let shape = Shape::HeadLines(HeadLinesCut { max_bytes: 7, ..HeadLinesCut::default() });
//! let shown = view("one\ntwo\nthree", &shape, &ViewContext::default());
//! assert_eq!(shown, "one\ntwo\n\n[tool output truncated]");
//! ```

pub(crate) mod figures;
mod head_lines;
mod limits;
mod middle;
pub(crate) mod names;
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
pub use output_index::OutputIndex;
pub use prefix::PrefixCut;
pub use shape::{Shape, StructureCut, ViewContext, view};
pub use window_outputs::WindowOutputs;

use trimtab_model::Output;

/// One output of a log is to be shown differently from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewChange {
    /// Index of the message that holds it.
    pub message: usize,
    /// Index of the part in that message.
    pub part: usize,
    /// What to show instead.
    pub output: Output,
}
