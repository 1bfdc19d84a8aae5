//! Chat Completions: messages to the model and back.
//!
//! Reading loses nothing: a field that the model has no place for is kept among the unknown
//! fields of its message or part, and writing puts it back.
//!
//! ```
//! use trimtab_wire::chat;
//!
//! let json = r#"{"role":"tool","tool_call_id":"c1","content":"done","x":1.50}"#;
//! let message = chat::read_message(json).unwrap();
//! assert_eq!(message.outputs().next().unwrap().text(), "done");
//! assert_eq!(chat::write_message(&message)[0].as_str(), json);
//! ```

mod calls;
mod meta;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use read::read_message;
pub(crate) use read::{from_entry, from_fields};
pub use write::write_message;
