//! Limits of the process: memory, planning time, turns, and notices to its user.

pub(crate) mod deadline;
pub(crate) mod memory_budget;
pub(crate) mod notices;
pub(crate) mod reserved_buffer;
