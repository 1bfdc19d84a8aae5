//! One module per verb.

pub mod inspect;
