//! A report for scripts. The fields are described in `docs/inspect.md`.

use super::report::Report;

/// The report as one line of JSON.
pub fn line(report: &Report) -> String {
    serde_json::to_string(report).unwrap_or_default()
}
