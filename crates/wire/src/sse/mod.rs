//! Reads streamed answers on their way through, and rewrites them if a part is not for the client.
//!
//! A [`StreamWatcher`] receives the forwarded bytes in pieces of any size and reports their
//! meaning; it never holds back a byte. A [`CallFilter`] transforms the bytes: it hides our own
//! retrieval calls and keeps the numbering of the rest dense.
//!
//! ```
//! use trimtab_model::Dialect;
//! use trimtab_wire::sse::{StreamEvent, StreamWatcher};
//!
//! let stream = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hel\"}}]}\n\n\
//!     data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"lo\"}}]}\n\n\
//!     data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
//!     data: [DONE]\n\n";
//! let mut watcher = StreamWatcher::new(Dialect::Chat);
//! let (mut text, mut ended) = (String::new(), false);
//! for piece in stream.chunks(7) {
//!     watcher.push(piece, |event| match event {
//!         StreamEvent::Text(delta) => text.push_str(&delta.text()),
//!         StreamEvent::End => ended = true,
//!         _ => {}
//!     });
//! }
//! assert_eq!((text.as_str(), ended), ("hello", true));
//! ```

mod chat;
mod event;
mod filter;
mod frames;
mod messages;
mod responses;
mod watcher;

#[cfg(test)]
mod tests;

pub use event::{StreamError, StreamEvent, TextDelta};
pub use filter::{CallFilter, without_repeated_tools};
pub use frames::{EventFrame, EventFrames};
pub use watcher::StreamWatcher;
