//! Replay: recorded conversations, call by call, under a policy.
//!
//! A recorded conversation shows what an agent was told and what it did next. Its replay under a
//! policy shows what the policy would have sent at each call of the model, and what that would have
//! cost.
//!
//! - [`replay`]: one conversation under a policy; [`replay_everything`]: without any management.
//! - [`bill`]: the cost of the windows with a prompt cache.
//! - [`parallel`]: several conversations at once, on several threads.
//!
//! ```
//! use std::sync::Arc;
//! use trimtab::engine::policy::Policy;
//! use trimtab::model::{Call, Message};
//! use trimtab::replay::{ReplaySettings, replay};
//!
//! let log: Vec<_> = [
//!     Message::user("what is in it?"),
//!     Message::assistant("").with_call(Call::new("c1", "list", "{}")),
//!     Message::output("c1", "one file: src/main.rs"),
//!     Message::assistant("one file"),
//! ]
//! .map(Arc::new)
//! .into();
//! let settings = ReplaySettings::new(40_000);
//! let report = replay(&log, Policy::preset("steady")?, &settings, &mut |_| {})?;
//! assert_eq!((report.calls, report.refused), (2, 0));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub mod bill;
mod managed;
pub mod parallel;
mod report;
mod run;
mod sizes;
#[cfg(test)]
mod tests;

pub use managed::{ReplayError, ShownRef};
pub use report::ReplayReport;
pub(crate) use run::replayed_session;
pub use run::{ReplaySettings, ReplayStep, replay, replay_everything};
pub use sizes::quarter_of_bytes;
