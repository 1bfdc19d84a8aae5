//! Where outputs, logs and journals live. The only crate that opens files or databases.
//!
//! [`Store`] is the one trait; [`MemoryStore`] and `FolderStore` implement it. An output is
//! stored whole ([`Put`]) and had back by its ref: all of it, by lines ([`LineRange`]), or
//! searched ([`Query`]). Reading streams: an output of any size is never held in memory.
//! [`Staged`] lets the writes of a session wait, for who cannot. Without the feature `folder`, which is
//! on by default, there is [`MemoryStore`] only, and nothing in C is compiled.

#![cfg_attr(
    not(feature = "folder"),
    allow(
        dead_code,
        reason = "some of what the backends share is for the folder only"
    )
)]

mod binary;
mod clock;
mod collect;
mod digest;
mod error;
#[cfg(all(unix, feature = "folder"))]
mod folder;
mod frames;
mod grep;
#[cfg(any(feature = "folder", feature = "shared"))]
mod image;
mod lines;
mod memory;
mod put;
mod refs;
mod session;
#[cfg(feature = "shared")]
mod shared;
mod source;
mod staged;
mod store;
mod write;

pub use clock::{now_millis, since_epoch};
pub use collect::{Collect, Collected};
pub use error::{Error, Result};
#[cfg(all(unix, feature = "folder"))]
pub use folder::{FolderOptions, FolderStore, Repaired, StoreCheck};
pub use frames::FRAME;
pub use grep::{Found, FoundLine, Match, Query, Stop};
pub use lines::{Line, LineRange, Lines};
pub use memory::MemoryStore;
pub use put::{Form, Labels, Metadata, Put, Spilled};
pub use session::{SessionId, SessionInfo, StoreStatus, Stream};
#[cfg(feature = "shared")]
pub use shared::{SharedOptions, SharedStore};
pub use source::{Source, Stored, StoredReader};
pub use staged::Staged;
pub use store::Store;
pub use write::{Naming, Write};
