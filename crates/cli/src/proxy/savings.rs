//! The savings of the proxy as text.

use std::fmt::Write as _;

use trimtab_model::SavedTokens;

use crate::ui::number::{counted, percent, short};

pub use trimtab_proxy::{Savings, SavingsTotal};

/// The saved tokens as text: `56k tokens saved (37 %)`, `300 tokens more (2 %)`.
pub fn tokens_line(tokens: &SavedTokens) -> String {
    let saved = tokens.saved();
    let word = if saved < 0 { "more" } else { "saved" };
    let saved = saved.unsigned_abs();
    format!(
        "{} tokens {word} ({})",
        short(saved),
        percent(saved, tokens.without)
    )
}

/// The savings as one line of text.
pub fn total_line(total: &SavingsTotal) -> String {
    let mut line = counted(usize::try_from(total.calls).unwrap_or(usize::MAX), "call");
    // Writing into a String cannot fail.
    let _ = write!(line, ", {}", tokens_line(&total.tokens));
    if total.observed != 0 {
        let observed = short(total.observed.unsigned_abs());
        let word = if total.observed < 0 { "more" } else { "fewer" };
        let _ = write!(line, ", observed: {observed} {word} would have been sent");
    }
    if total.spent > 0.0 {
        let word = if total.saved < 0.0 { "more" } else { "saved" };
        let (spent, saved) = (dollars(total.spent), dollars(total.saved.abs()));
        let _ = write!(line, ", {spent} spent, {saved} {word}");
    }
    for (figure, [one, several]) in [
        (
            total.recovered,
            ["overflow recovered", "overflows recovered"],
        ),
        (total.retrievals, ["output retrieved", "outputs retrieved"]),
        (
            total.summaries,
            ["summary requested", "summaries requested"],
        ),
        (
            total.unpriced,
            ["call of unknown price", "calls of unknown price"],
        ),
        (
            total.tokens.over_window,
            [
                "call would not have fit; it is counted as one full window",
                "calls would not have fit; each is counted as one full window",
            ],
        ),
    ] {
        let what = if figure == 1 { one } else { several };
        if figure > 0 {
            let _ = write!(line, ", {figure} {what}");
        }
    }
    line
}

/// An amount of money as text.
pub fn dollars(amount: f64) -> String {
    // From ten cents on, cents are precise enough.
    if amount >= 0.1 {
        format!("${amount:.2}")
    } else {
        format!("${amount:.4}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_names_every_figure_that_is_not_zero() {
        let total = SavingsTotal {
            calls: 2,
            tokens: SavedTokens {
                without: 220_000,
                with: 20_000,
                over_window: 1,
            },
            observed: 80_000,
            summaries: 2,
            spent: 0.08,
            saved: -0.4,
            unpriced: 1,
            ..SavingsTotal::default()
        };
        assert_eq!(
            total_line(&total),
            "2 calls, 200k tokens saved (91 %), observed: 80k fewer would have been sent, \
             $0.0800 spent, $0.40 more, 2 summaries requested, 1 call of unknown price, \
             1 call would not have fit; it is counted as one full window"
        );
    }
}
