//! The same session under another preset.

use bytes::Bytes;
use serde_json::json;
use trimtab::film::replayed_film;
use trimtab::replay::ReplaySettings;
use trimtab::replay::bill::USUAL;

use super::api::{ApiProblem, ApiRequest, json as to_json};
use super::session_access::SessionAccess;

/// The window of a model that nothing is known of.
const USUAL_WINDOW: u64 = 128_000;

/// `GET replay`: what a preset would have sent, and what that would have cost.
pub(super) fn replay(request: &ApiRequest) -> Result<Bytes, ApiProblem> {
    let access = SessionAccess::new(request, &request.field("id").unwrap_or_default())?;
    let name = request.field("preset").unwrap_or_default();
    let unknown = || ApiProblem::bad(format!("there is no preset {name:?}"));
    let policy = request.settings.policy(&name).ok_or_else(unknown)?;
    let (log, setup) = access.read(|session| {
        let log = session.projection().log().messages().to_vec();
        Ok((log, session.setup().clone()))
    })?;
    let settings = ReplaySettings {
        dialect: setup.dialect,
        bound_reasoning: setup.bound_reasoning,
        prices: setup.prices.unwrap_or(USUAL),
        tiers: setup.tiers,
        tools: setup.tools,
        ..ReplaySettings::new(setup.limits.window.unwrap_or(USUAL_WINDOW))
    };
    let played = replayed_film(&log, policy.as_ref().clone(), &settings);
    let (film, report) = played.map_err(|error| ApiProblem::bad(error.to_string()))?;
    to_json(&json!({
        "preset": name,
        "film": film,
        "calls": report.calls,
        "tokens": report.tokens,
        "largest": report.largest,
        "billed": report.billed.dollars(),
        "breaks": report.breaks,
        "over": report.over,
        "compactions": report.compactions,
        "own_calls": report.own_calls,
    }))
}
