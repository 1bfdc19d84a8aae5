//! Chat Completions messages: reads them into the model and writes them back.
//!
//! Reading loses nothing: an unknown field is kept with its message or part, and writing puts it
//! back.
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

pub(crate) use read::from_fields;
pub use read::read_message;
pub use write::write_message;
