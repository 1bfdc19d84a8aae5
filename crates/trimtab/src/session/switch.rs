//! Is this a moment at which bytes that were sent may change?

use trimtab_engine::planner::Now;
use trimtab_engine::steady::{Rates, Steady, Switch};
use trimtab_wire::catalogue::{Prices, Tier};

use super::Session;

/// What is left of the room below a price cliff, in percent: counts differ.
const BELOW_CLIFF: u64 = 98;

/// A switch point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Why it is one.
    pub(super) switch: Switch,
    /// The room for messages that the window has to be brought into.
    pub(super) room: u64,
    /// What tokens cost.
    pub(super) rates: Rates,
}

/// What the edge knows about the next call.
#[derive(Clone, Debug)]
pub(super) struct Edge {
    cold: bool,
    prices: Option<Prices>,
    tiers: Vec<Tier>,
}

impl Session {
    pub(super) fn edge(&self) -> Edge {
        Edge {
            cold: self.cold,
            prices: self.setup.prices,
            tiers: self.setup.tiers.clone(),
        }
    }
}

impl Edge {
    /// The switch point that this is, for a window of `total` tokens; none if it is none.
    pub(super) fn due(&self, steady: &Steady, now: &Now<'_>, total: u64) -> Option<Due> {
        let room = messages_room(now);
        let rates = rates(self.prices.as_ref());
        let due = |switch| Due {
            switch,
            room,
            rates,
        };
        if total > steady.high(room) {
            return Some(due(Switch::HighWater));
        }
        let cold = self.cold && total > steady.cold(room);
        self.cliff(now, total, rates)
            .or_else(|| cold.then(|| due(Switch::Cold)))
    }

    /// The cliff that the next call would go over.
    fn cliff(&self, now: &Now<'_>, total: u64, rates: Rates) -> Option<Due> {
        let below = |tier: &&Tier| {
            let room = tier.above.saturating_sub(now.tools);
            (room * BELOW_CLIFF / 100, total > room * BELOW_CLIFF / 100)
        };
        let tier = self.tiers.iter().rev().find(|tier| below(tier).1)?;
        let input = self.prices?.input;
        Some(Due {
            switch: Switch::PriceCliff,
            room: below(&tier).0,
            rates: Rates {
                rise: thousandths(tier.prices.input.ratio(input)),
                ..rates
            },
        })
    }
}

/// The room for messages: the window without tools and the answer's reserve.
pub(super) fn messages_room(now: &Now<'_>) -> u64 {
    let window = now.window.unwrap_or(u64::MAX);
    window
        .saturating_sub(now.tools)
        .saturating_sub(now.answer())
}

fn rates(prices: Option<&Prices>) -> Rates {
    prices.map_or_else(Rates::default, |prices| Rates {
        read: thousandths(prices.read_ratio()),
        write: thousandths(prices.write_ratio()),
        ..Rates::default()
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a price in thousandths of another is small and not negative"
)]
fn thousandths(ratio: f64) -> u64 {
    (ratio * 1_000.0).round() as u64
}
