//! What a client asks of the provider's prompt cache, by the markers in its request.

use std::time::Duration;

use trimtab_model::estimate::Measure;
use trimtab_wire::catalogue::{CacheKind, CacheRules, ModelInfo};
use trimtab_wire::scan::{BodyScan, MarkerSpan};

use crate::conversation::branch::Branch;
use crate::records::record::MarkedParts;

/// What a client asks of the provider's prompt cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AskedCache {
    /// How long an unused prompt stays in it; none if unknown.
    pub(crate) lifetime: Option<Duration>,
    /// True if that is the long lifetime, for which writing costs more.
    pub(crate) is_long: bool,
}

/// The end of a marked part in the order of the prompt: tools, system, messages.
type MarkerPlace = (PromptRegion, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum PromptRegion {
    Tools,
    System,
    Messages,
    /// A marker of the whole request stands for one at the end of the prompt.
    End,
}

impl AskedCache {
    /// What a request asks of a cache with these rules.
    pub(super) fn of(cache: &CacheRules, scan: &BodyScan<'_>) -> Self {
        let markers = scan.request().markers.iter();
        // Providers want long lifetimes first, so the last marker says how long messages stay.
        let last = markers.max_by_key(|marker| place(scan, marker));
        let long = last.filter(|marker| is_long(scan, marker));
        let long = long.and(cache.long_lifetime);
        Self {
            lifetime: long.or(cache.lifetime),
            is_long: long.is_some(),
        }
    }
}

/// The parts of the client's prompt that its markers cover; none if the model caches without them.
/// The messages must be in the branch.
pub(super) fn marked_parts(
    model: Option<&ModelInfo>,
    branch: &Branch,
    scan: &BodyScan<'_>,
) -> Option<MarkedParts<Measure>> {
    model.filter(|model| model.cache.kind == CacheKind::Marked)?;
    let markers = || scan.request().markers.iter();
    let measure = |place: Option<MarkerPlace>| {
        place.map_or_else(Measure::default, |place| measure_up_to(place, branch, scan))
    };
    let long = markers().filter(|marker| is_long(scan, marker));
    Some(MarkedParts {
        all: measure(markers().map(|marker| place(scan, marker)).max()),
        long: measure(long.map(|marker| place(scan, marker)).max()),
    })
}

/// True if a marker asks for the long lifetime. A `ttl` is "5m" or "1h".
fn is_long(scan: &BodyScan<'_>, marker: &MarkerSpan) -> bool {
    scan.json(marker.value).contains("\"1h\"")
}

fn place(scan: &BodyScan<'_>, marker: &MarkerSpan) -> MarkerPlace {
    let request = scan.request();
    let region = if request.tools.contains(marker.field) {
        PromptRegion::Tools
    } else if request.system.contains(marker.field) {
        PromptRegion::System
    } else if request.list.contains(marker.field) {
        PromptRegion::Messages
    } else {
        PromptRegion::End
    };
    (region, marker.object.end)
}

/// The size of the client's prompt up to a marker.
fn measure_up_to((region, end): MarkerPlace, branch: &Branch, scan: &BodyScan<'_>) -> Measure {
    let positions = match region {
        PromptRegion::Tools => 0..0,
        PromptRegion::System => 0..scan.first_in_list(),
        PromptRegion::Messages => scan.first_in_list()..scan.len(),
        PromptRegion::End => return branch.measure_of_beginning(scan.len()),
    };
    // From the end, because that is where most markers are.
    let begins_before = |at: &usize| scan.parts(*at).iter().any(|part| part.span.start < end);
    let Some(last) = positions.rev().find(begins_before) else {
        return branch.measure_of_beginning(0);
    };
    let parts = scan.parts(last).iter();
    let behind = parts.filter(|part| part.span.start >= end);
    let behind: Measure = behind
        .map(|part| Measure::of_text(scan.json(part.content)))
        .sum();
    branch.measure_of_beginning(last + 1) - behind
}
