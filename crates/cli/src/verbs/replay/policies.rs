//! The presets under which a conversation is replayed.

use trimtab::engine::policy::Policy;

use super::ReplayArgs;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::settings;

/// The policies that the flags name. Other settings apply to each preset.
pub fn policies(args: &ReplayArgs, common: &CommonArgs) -> Result<Vec<Policy>, Failure> {
    let preset = |name: &str, flag| {
        let named = [("preset", name.trim().to_owned(), flag)];
        Ok(settings::load(common, &named)?.policy)
    };
    if !args.compare.is_empty() {
        let names = args.compare.iter();
        return names.map(|name| preset(name, "--compare")).collect();
    }
    let policy = match &args.preset {
        Some(name) => preset(name, "--preset")?,
        None => settings::load(common, &[])?.policy,
    };
    Ok(vec![policy])
}
