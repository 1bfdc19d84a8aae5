//! The rules under which a conversation is replayed: presets, and baselines to compare them with.

use trimtab::engine::policy::{PRESETS, Policy};
use trimtab::replay::managed::ManagedSession;
use trimtab::replay::manager::ManagerError;
use trimtab::replay::oracle::{MARKS, Oracle};
use trimtab::replay::{DropOldest, ReplaySettings, SendAll, WindowManager};

use super::ReplayArgs;
use super::recorded_sessions::RecordedSession;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::settings;

/// Knows what later calls need. Not a preset, because nothing can know that in advance.
pub const ORACLE: &str = "oracle";
/// Drops the oldest rounds when the window is full.
pub const DROP_OLDEST: &str = "drop-oldest";
/// The preset that `--curve` replays with several values of its economy.
const CURVE: &str = "steady";

/// A rule that decides what is sent.
pub struct Contender {
    /// Its name in the report.
    pub name: String,
    /// True for a point of the curve.
    pub on_curve: bool,
    rule: ContenderRule,
}

enum ContenderRule {
    Preset(Box<Policy>),
    DropOldest,
    Oracle,
}

impl Contender {
    /// The managers to try; the one with the smallest bill counts. Only the oracle has several.
    pub fn managers<'r>(
        &self,
        recorded: &'r RecordedSession,
        settings: &ReplaySettings,
    ) -> Result<Vec<Box<dyn WindowManager + 'r>>, ManagerError> {
        let window = settings.window;
        Ok(match &self.rule {
            ContenderRule::Preset(policy) => {
                let policy = Policy::clone(policy);
                vec![Box::new(ManagedSession::new(policy, settings)?)]
            }
            ContenderRule::DropOldest => vec![Box::new(DropOldest::new(window))],
            ContenderRule::Oracle => {
                let oracle = |mark| Oracle::new(&recorded.needs, window, mark);
                let boxed = |mark| Box::new(oracle(mark)) as Box<dyn WindowManager>;
                let all = std::iter::once(Box::<SendAll>::default() as Box<dyn WindowManager>);
                // If everything fits, sending it may be cheapest.
                all.chain(MARKS.map(boxed)).collect()
            }
        })
    }
}

/// The contenders that the flags name. Other settings apply to each preset.
pub fn contenders(args: &ReplayArgs, common: &CommonArgs) -> Result<Vec<Contender>, Failure> {
    let mut found = Vec::new();
    for economy in &args.curve {
        let economy = economy.to_string();
        let named = [
            ("preset", CURVE.to_owned(), "--curve"),
            ("ageing.rewrite.economy", economy.clone(), "--curve"),
        ];
        let policy = settings::load(common, &named)?.policy;
        found.push(Contender {
            name: format!("{CURVE}, economy {economy}"),
            on_curve: true,
            rule: ContenderRule::Preset(Box::new(policy)),
        });
    }
    // The preset of the settings is replayed only if no flag names anything else.
    if args.compare.is_empty() && (args.preset.is_some() || found.is_empty()) {
        found.push(contender(args.preset.as_deref(), "--preset", common)?);
    }
    for name in &args.compare {
        found.push(contender(Some(name.trim()), "--compare", common)?);
    }
    Ok(found)
}

fn contender(name: Option<&str>, flag: &str, common: &CommonArgs) -> Result<Contender, Failure> {
    let rule = match name {
        Some(ORACLE) => ContenderRule::Oracle,
        Some(DROP_OLDEST) => ContenderRule::DropOldest,
        _ => {
            name.map_or(Ok(()), |name| check(name, flag))?;
            let named = name.map(|name| ("preset", name.to_owned(), flag));
            let named: Vec<_> = named.into_iter().collect();
            ContenderRule::Preset(Box::new(settings::load(common, &named)?.policy))
        }
    };
    let name = match &rule {
        ContenderRule::Preset(policy) => policy.preset.clone(),
        _ => name.unwrap_or_default().to_owned(),
    };
    Ok(Contender {
        name,
        on_curve: false,
        rule,
    })
}

/// Fails if there is no preset of this name. The settings know no baselines, so their own error would
/// not name them.
fn check(name: &str, flag: &str) -> Result<(), Failure> {
    let mut names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
    if names.contains(&name) {
        return Ok(());
    }
    names.extend([ORACLE, DROP_OLDEST]);
    Err(Failure::input(
        format!("{flag}: {name:?} is not a valid value of preset"),
        format!("allowed: one of {}", names.join(", ")),
    ))
}
