//! What is written down about requests: log lines, figures, the audit log and notices.

pub(crate) mod audit_log;
pub(crate) mod exposition;
pub(crate) mod metrics;
pub(crate) mod observed_body;
pub(crate) mod plan_note;
pub(crate) mod record;
pub(crate) mod savings;
pub(crate) mod token_fit;
