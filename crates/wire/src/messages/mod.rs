//! Messages requests: reads them into the model and writes them back.
//!
//! The dialect puts outputs into user messages. Reading splits such a message into tool messages
//! and user messages; writing joins them again.
//!
//! ```
//! use trimtab_model::Role;
//! use trimtab_wire::messages;
//!
//! let json = r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok"},{"type":"text","text":"go on"}]}"#;
//! let read = messages::read_message(json).unwrap();
//! assert_eq!([read[0].role, read[1].role], [Role::Tool, Role::User]);
//! assert_eq!(messages::write_request(&read).messages[0].as_str(), json);
//! ```

mod part;
mod read;
mod write;

#[cfg(test)]
mod tests;

pub(crate) use part::write as write_part;
pub(crate) use read::{from_content, from_fields, system};
pub use read::{read_message, read_system};
pub(crate) use write::write_list;
pub use write::{MessagesFields, write_request};
