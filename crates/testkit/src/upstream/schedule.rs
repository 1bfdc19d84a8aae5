//! What goes wrong with which answer.

use crate::script::Fault;

/// What goes wrong with which answer, by the order in which answers are asked for.
#[derive(Clone, Debug, Default)]
pub struct Schedule(Kind);

#[derive(Clone, Debug, Default)]
enum Kind {
    #[default]
    None,
    List(Vec<Option<Fault>>),
    Seeded {
        seed: u64,
        percent: u8,
        faults: Vec<Fault>,
    },
}

impl Schedule {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self::default()
    }

    /// The fault of each answer in order; nothing goes wrong behind the end.
    pub fn list(faults: impl IntoIterator<Item = Option<Fault>>) -> Self {
        Self(Kind::List(faults.into_iter().collect()))
    }

    /// In `percent` of the answers one of `faults`, the same ones for the same `seed`.
    pub fn seeded(seed: u64, percent: u8, faults: impl IntoIterator<Item = Fault>) -> Self {
        let faults = faults.into_iter().collect();
        Self(Kind::Seeded {
            seed,
            percent,
            faults,
        })
    }

    /// What goes wrong with answer number `serial`.
    pub fn fault(&self, serial: usize) -> Option<Fault> {
        match &self.0 {
            Kind::None => None,
            Kind::List(list) => list.get(serial).copied().flatten(),
            Kind::Seeded {
                seed,
                percent,
                faults,
            } => {
                let dice = mixed(seed.wrapping_add(serial as u64));
                let number = usize::try_from(dice >> 32).unwrap_or(0);
                let hit = dice % 100 < u64::from(*percent);
                let at = number.checked_rem(faults.len())?;
                faults.get(at).copied().filter(|_| hit)
            }
        }
    }
}

/// Spreads the bits of `number` (the finaliser of `SplitMix64`).
fn mixed(number: u64) -> u64 {
    let mut bits = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seeded_schedule_repeats_and_keeps_its_rate() {
        let schedule = |seed| Schedule::seeded(seed, 20, Fault::catalogue());
        let faults = |seed| {
            (0..1000)
                .map(|at| schedule(seed).fault(at))
                .collect::<Vec<_>>()
        };
        assert_eq!(faults(7), faults(7));
        assert_ne!(faults(7), faults(8));
        let hits = faults(7).iter().flatten().count();
        assert!((150..250).contains(&hits), "{hits}");
    }

    #[test]
    fn a_list_ends() {
        let schedule = Schedule::list([None, Some(Fault::Html)]);
        assert_eq!(schedule.fault(0), None);
        assert_eq!(schedule.fault(1), Some(Fault::Html));
        assert_eq!(schedule.fault(2), None);
    }
}
