//! Summaries that the host's own model writes.

use serde_json::{Map, Value, json};
use trimtab::engine::decide::summary::answer::SummaryEnding;
use trimtab::model::Dialect;
use trimtab::request::fields;
use trimtab::session::{PendingSummary, SummariserAnswer};

/// The next request to the host's model, as JSON; none if there is nothing more to ask.
pub(crate) fn next_request(pending: &PendingSummary, dialect: Dialect) -> Option<Vec<u8>> {
    let request = pending.request()?;
    let written = fields(&request.messages, dialect).into_iter();
    let mut body: Map<String, Value> = written
        .map(|field| {
            let value = serde_json::from_str(field.value.as_str()).unwrap_or_default();
            (field.name.to_owned(), value)
        })
        .collect();
    body.insert("max_output".to_owned(), json!(request.max_output));
    serde_json::to_vec(&body).ok()
}

/// What the host's model answered; none if it failed.
pub(crate) fn answer(text: Option<&str>) -> SummariserAnswer {
    match text {
        Some(text) => SummariserAnswer::Text {
            text: text.to_owned(),
            ending: SummaryEnding::Whole,
            usage: None,
        },
        None => SummariserAnswer::Failed("the host has no summary".to_owned()),
    }
}
