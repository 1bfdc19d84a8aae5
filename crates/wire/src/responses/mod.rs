//! Responses input: reads it into the model and writes it back.
//!
//! The dialect lists reasoning, texts and calls as separate entries. Reading gathers the entries of
//! one answer into one assistant message; writing separates them again.
//!
//! ```
//! use trimtab_wire::responses;
//!
//! let json = r#"[
//!     {"role": "user", "content": "list the folder"},
//!     {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
//!     {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
//!     {"type": "function_call_output", "call_id": "c1", "output": "a.txt"}
//! ]"#;
//! let messages = responses::read_input(json).unwrap();
//! assert_eq!(messages.len(), 3);
//! assert_eq!(messages[1].parts.len(), 2);
//! assert_eq!(responses::write_input(&messages).len(), 4);
//! ```

mod ids;
mod item;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub use ids::without_ids;
pub use read::read_input;
pub(crate) use read::{MessageGatherer, gather, instructions};
pub use write::{write_input, write_instructions};
