//! Behaviour of the engine as a whole.

mod compaction;
mod growth;
mod promises;
