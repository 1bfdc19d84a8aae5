//! Recorded conversations, in the forms that clients and agents write.
//!
//! A [`TranscriptReader`] detects the form by content and returns one [`Conversation`] after the
//! other. It borrows from one line at a time and builds no tree, so a file of many conversations
//! needs the memory of its largest one.
//!
//! ```
//! use trimtab_wire::transcript::{TranscriptForm, TranscriptReader};
//!
//! let file = r#"{"id":"a","messages":[{"role":"user","content":"hi"}]}
//! {"id":"b","messages":[{"role":"user","content":"hello"}]}
//! "#;
//! let conversations: Vec<_> = TranscriptReader::new(file.as_bytes()).map(Result::unwrap).collect();
//! assert_eq!(conversations.len(), 2);
//! assert_eq!(conversations[1].id.as_deref(), Some("b"));
//! assert_eq!(conversations[1].form, TranscriptForm::Chat);
//! ```

mod claude_code;
mod codex;
mod conversation;
mod document;
mod error;
mod form;
mod lines;
mod message_per_line;
mod opencode;
mod private_marks;
mod reader;
mod thread;
mod write;

#[cfg(test)]
mod tests;

pub use conversation::Conversation;
pub use error::{ReadError, TranscriptWarning};
pub use form::TranscriptForm;
pub use reader::TranscriptReader;
pub use write::{WriteError, write};
