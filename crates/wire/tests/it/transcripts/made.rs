//! Sessions that never were.

use proptest::collection::vec;
use proptest::prelude::*;
use trimtab_testkit::history::hostile_text;

/// One thing that happened in a generated session.
#[derive(Clone, Debug)]
pub(super) enum Happened {
    Asked(String),
    Answered {
        thought: Option<String>,
        text: Option<String>,
        /// For each call, what it was answered with: none if it never was.
        calls: Vec<Option<(String, bool)>>,
    },
}

pub(super) fn text() -> impl Strategy<Value = String> {
    hostile_text().prop_map(|text| {
        if text.trim().is_empty() {
            "said".to_owned()
        } else {
            text
        }
    })
}

pub(super) fn session() -> impl Strategy<Value = Vec<Happened>> {
    let output = (text(), prop::bool::weighted(0.1));
    let calls = vec(prop::option::weighted(0.9, output), 0..3);
    let answered = (prop::option::of(text()), prop::option::of(text()), calls).prop_map(
        |(thought, text, calls)| Happened::Answered {
            thought,
            text: if calls.is_empty() {
                text.or_else(|| Some("well".to_owned()))
            } else {
                text
            },
            calls,
        },
    );
    let happened = prop_oneof![1 => text().prop_map(Happened::Asked), 3 => answered];
    (text(), vec(happened, 0..12)).prop_map(|(first, mut all)| {
        all.insert(0, Happened::Asked(first));
        all
    })
}
