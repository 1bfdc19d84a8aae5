//! Index cards: what is left of an output that was trimmed.

use trimtab_model::{Output, Part};

use crate::policy::Rewriting;
use crate::view::names::{Known, NAMES, chosen};
use crate::view::placeholder::placeholder;

/// Bytes of a token in our own texts, which are names for the most part.
pub(super) const BYTES_PER_TOKEN: u64 = 3;

/// True for an output that is shown as a card.
pub(super) fn is_card(output: &Output) -> bool {
    output.trimmed && output.text().starts_with("[trimtab: output left out")
}

/// The card of an output, if it is smaller than what is shown of it. `share` says how much of
/// what the settings allow is spent on names, in percent.
pub(super) fn card(
    output: &Output,
    settings: &Rewriting,
    share: u64,
    known: &mut Known,
) -> Option<Output> {
    let stored = output.stored.as_ref()?;
    let text = output.text();
    if text.len() < settings.small_bytes {
        return None;
    }
    let allowed = settings.names(text.len()) * usize::try_from(share).unwrap_or(100) / 100;
    let mut card = placeholder(stored);
    let names = chosen(&text, allowed, known);
    if !names.is_empty() {
        card.push_str(NAMES);
        card.push_str(&names);
    }
    (card.len() < text.len()).then(|| {
        known.add(&card);
        Output {
            content: vec![Part::text(card)],
            trimmed: true,
            ..output.clone()
        }
    })
}
