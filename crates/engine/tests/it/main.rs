//! Behaviour of the engine as a whole.

mod compaction;
mod promises;
mod steady;
