//! The two retrieval tools as they are offered, written and measured once.

use std::sync::LazyLock;

use trimtab_engine::view::tools;
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, RawJson};

/// The tools in one dialect.
pub(crate) struct Ours {
    /// As entries of `tools`.
    pub(crate) definitions: Vec<RawJson>,
    /// What they add to a window.
    pub(crate) measure: Measure,
}

/// The tools in `dialect`.
pub(crate) fn of(dialect: Dialect) -> &'static Ours {
    static ALL: [LazyLock<Ours>; 3] = [
        LazyLock::new(|| Ours::new(Dialect::Chat)),
        LazyLock::new(|| Ours::new(Dialect::Messages)),
        LazyLock::new(|| Ours::new(Dialect::Responses)),
    ];
    let [chat, messages, responses] = &ALL;
    match dialect {
        Dialect::Chat => chat,
        Dialect::Messages => messages,
        Dialect::Responses => responses,
    }
}

impl Ours {
    fn new(dialect: Dialect) -> Self {
        let tools = tools::all();
        let definitions: Vec<RawJson> = tools
            .iter()
            .map(|tool| RawJson::of(&tool.in_dialect(dialect)))
            .collect();
        let measures = definitions.iter();
        let measure = measures.map(|json| Measure::of_text(json.as_str())).sum();
        Self {
            definitions,
            measure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_take_what_their_definitions_take() {
        for dialect in Dialect::ALL {
            let ours = of(dialect);
            assert_eq!(ours.definitions.len(), 2);
            let bytes: usize = ours
                .definitions
                .iter()
                .map(|json| json.as_str().len())
                .sum();
            let tokens = ours.measure.tokens();
            assert!(
                (bytes as u64 / 8..bytes as u64 / 2).contains(&tokens),
                "{dialect}: {tokens}"
            );
        }
    }
}
