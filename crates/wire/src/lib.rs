//! Provider bytes to the model and back. Pure: bytes come in as values.

pub mod catalogue;
pub mod overflow;
