//! Sessions for programs in other languages: JSON bytes in, JSON bytes out.
//!
//! A [`BoundSession`] is what the packages for Python and Node wrap. The host hands over its
//! request in its own shape (Chat Completions, Responses or Messages) before each call to the
//! model, and gets back the request to send. Fields that we do not know pass unchanged.
//!
//! ```
//! use trimtab_binding::BoundSession;
//!
//! let options = br#"{"session": "s1", "preset": "steady", "window": 32000}"#;
//! let session = BoundSession::open(options)?;
//! let log = "all is well here\\n".repeat(20_000);
//! let request = format!(
//!     r#"{{"messages": [
//!         {{"role": "user", "content": "what went wrong?"}},
//!         {{"role": "assistant", "tool_calls": [{{"id": "c1", "type": "function",
//!             "function": {{"name": "read", "arguments": "{{}}"}}}}]}},
//!         {{"role": "tool", "tool_call_id": "c1", "content": "{log}"}}]}}"#
//! );
//! let window = session.window(request.as_bytes())?;
//! assert!(window.body.len() < request.len() / 4);
//! // The first two messages are the host's own; the third is shown shorter.
//! assert_eq!(window.sources, [Some(0), Some(1), None]);
//! # Ok::<_, trimtab_binding::BindingError>(())
//! ```
//!
//! All methods take `&self`, and a session may be used from several threads: one call waits for
//! the other.

mod bound_window;
mod error;
mod history;
mod options;
mod session;
mod summary;

pub use bound_window::BoundWindow;
pub use error::{BindingError, ErrorCode};
pub use session::{BoundSession, SessionFigures};
pub use trimtab::retrieval::RetrievalAnswer;
pub use trimtab::single_output::ShownOutput;
