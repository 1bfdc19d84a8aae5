//! Stores outputs, logs and journals. The only crate that opens files or databases.
//!
//! [`Store`] is the trait; [`MemoryStore`], `FolderStore` and `SharedStore` implement it. An output
//! is stored in full ([`Put`]) and retrieved by its ref: completely, by lines ([`LineRange`]), or
//! by search ([`Query`]). Reading streams, so an output of any size is never held in memory.
//! [`StagedStore`] defers the writes of a session for callers that must not block. Without the
//! features `folder`, which is on by default, and `shared`, only [`MemoryStore`] exists, and no C
//! code is compiled.

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
mod copy;
mod digest;
mod error;
#[cfg(all(unix, feature = "folder"))]
mod folder;
mod fork;
mod frames;
mod grep;
#[cfg(any(all(unix, feature = "folder"), feature = "shared"))]
mod image;
mod lines;
mod memory;
mod put;
mod refs;
mod server_variables;
mod session;
#[cfg(feature = "shared")]
mod shared;
mod source;
mod staged;
mod store;
mod write;

pub use clock::{now_millis, since_epoch};
pub use collect::{CollectOptions, CollectReport};
pub use copy::{CopyProgress, copy_store};
pub use error::{Error, Result};
#[cfg(all(unix, feature = "folder"))]
pub use folder::{FolderOptions, FolderStore, RepairReport, StoreCheck};
pub use frames::FRAME;
pub use grep::{MatchLine, Query, SearchMatch, SearchResults, SearchStop};
pub use lines::{LineRange, OutputLine, OutputLines};
pub use memory::MemoryStore;
pub use put::{OutputForm, OutputLabels, OutputMetadata, Put, SpilledFile};
pub use server_variables::ServerVariables;
pub use session::{SessionId, SessionInfo, StoreStatus, Stream, StreamEntries};
#[cfg(feature = "shared")]
pub use shared::{SharedOptions, SharedStore};
pub use source::{FrameSource, OpenOutput, OutputReader};
pub use staged::StagedStore;
pub use store::Store;
pub use write::{RefMinter, Write};
