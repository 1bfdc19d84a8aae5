//! One module per verb.

pub mod inspect;
pub mod models;
