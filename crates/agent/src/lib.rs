//! A small agent on the trimtab library, and the reference for everyone who builds one.
//!
//! - [`model`]: clients for the three dialects, and a scripted model.
//! - [`tools`]: what the model can do, confined to a workspace.

pub mod model;
pub mod tools;
