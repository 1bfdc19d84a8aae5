//! Behaviour of the engine as a whole.

mod promises;
mod steady;
