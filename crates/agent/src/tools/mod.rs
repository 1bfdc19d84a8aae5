//! What the model can do.

mod definition;

pub use definition::Definition;
