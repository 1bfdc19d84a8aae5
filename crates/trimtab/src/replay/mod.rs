//! Replay: recorded conversations, call by call, under a policy.
//!
//! A recorded conversation shows what an agent was told and what it did next. Its replay under a
//! policy shows what the policy would have sent at each call of the model, what that would have
//! cost, and whether the agent's next step would still have been possible.
//!
//! - [`WindowManager`]: decides what is sent; [`managed`] implements the presets; [`SendAll`],
//!   [`DropOldest`] and the [`oracle`] are baselines.
//! - [`needs`]: what each call of the real agent took from an output.
//! - [`bill`]: the cost of the windows with a prompt cache.
//! - [`replay`]: all of it together, for one conversation.
//! - [`parallel`]: several conversations at once, on several threads.
//!
//! ```
//! use std::sync::Arc;
//! use trimtab::model::{Call, Message};
//! use trimtab::replay::{ReplaySettings, SendAll, replay};
//!
//! let log: Vec<_> = [
//!     Message::user("what is in it?"),
//!     Message::assistant("").with_call(Call::new("c1", "list", "{}")),
//!     Message::output("c1", "one file: src/main.rs"),
//!     Message::assistant("one file"),
//! ]
//! .map(Arc::new)
//! .into();
//! let report = replay(&log, &mut SendAll::default(), &ReplaySettings::new(40_000), &mut |_| {});
//! assert_eq!((report.calls, report.faults), (2, 0));
//! ```

pub mod bill;
mod judge;
pub mod managed;
pub mod manager;
pub mod needs;
pub mod oracle;
pub mod parallel;
mod plain_rules;
mod report;
mod run;
mod served_needs;
mod sizes;
#[cfg(test)]
mod tests;

pub use manager::{SentWindow, ShownRef, WindowManager};
pub use plain_rules::{DropOldest, SendAll};
pub use report::{CacheBreak, Recall, RecallCounts, ReplayReport};
pub use run::{ReplaySettings, ReplayStep, replay, replay_needing};
pub use sizes::TokenCount;
