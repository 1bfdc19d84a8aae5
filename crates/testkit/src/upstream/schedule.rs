//! What goes wrong with which answer.

use crate::script::ScriptedFault;

/// What goes wrong with which answer, by the order in which answers are asked for.
#[derive(Clone, Debug, Default)]
pub struct FaultSchedule(FaultScheduleKind);

#[derive(Clone, Debug, Default)]
enum FaultScheduleKind {
    #[default]
    None,
    List(Vec<Option<ScriptedFault>>),
    Seeded {
        seed: u64,
        percent: u8,
        faults: Vec<ScriptedFault>,
    },
}

impl FaultSchedule {
    /// Nothing goes wrong.
    pub fn none() -> Self {
        Self::default()
    }

    /// The fault of each answer in order; nothing goes wrong behind the end.
    pub fn list(faults: impl IntoIterator<Item = Option<ScriptedFault>>) -> Self {
        Self(FaultScheduleKind::List(faults.into_iter().collect()))
    }

    /// In `percent` of the answers one of `faults`, the same ones for the same `seed`.
    pub fn seeded(seed: u64, percent: u8, faults: impl IntoIterator<Item = ScriptedFault>) -> Self {
        let faults = faults.into_iter().collect();
        Self(FaultScheduleKind::Seeded {
            seed,
            percent,
            faults,
        })
    }

    /// What goes wrong with answer number `serial`.
    pub fn fault(&self, serial: usize) -> Option<ScriptedFault> {
        match &self.0 {
            FaultScheduleKind::None => None,
            FaultScheduleKind::List(list) => list.get(serial).copied().flatten(),
            FaultScheduleKind::Seeded {
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
        let schedule = |seed| FaultSchedule::seeded(seed, 20, ScriptedFault::catalogue());
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
        let schedule = FaultSchedule::list([None, Some(ScriptedFault::Html)]);
        assert_eq!(schedule.fault(0), None);
        assert_eq!(schedule.fault(1), Some(ScriptedFault::Html));
        assert_eq!(schedule.fault(2), None);
    }
}
