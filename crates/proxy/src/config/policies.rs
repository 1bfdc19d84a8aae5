//! Policies by name: the presets, and those that the settings define.

use std::collections::BTreeMap;

use toml::{Table, Value};
use trimtab_engine::policy::{PRESETS, Policy, preset_file};

/// The policies of the settings: each is a preset with changes.
pub(crate) type Policies = BTreeMap<String, Table>;

/// The policy `name`, or its problem.
pub(crate) fn find(name: &str, defined: &Policies) -> Result<Policy, String> {
    let Some(table) = defined.get(name) else {
        return Policy::preset(name).map_err(|_| names(defined));
    };
    let base = table
        .get("preset")
        .and_then(Value::as_str)
        .unwrap_or("steady");
    // Only presets can be a base, so policies cannot refer to each other in a cycle.
    let file = preset_file(base).map_err(|_| names(&Policies::new()))?;
    let mut merged: Table = file
        .toml
        .parse()
        .map_err(|error: toml::de::Error| error.to_string())?;
    merge(&mut merged, table);
    let policy: Policy = merged
        .try_into()
        .map_err(|error: toml::de::Error| error.to_string())?;
    policy.check(None).map_err(|bad| {
        let bad: Vec<String> = bad.iter().map(ToString::to_string).collect();
        bad.join("; ")
    })?;
    Ok(policy)
}

/// The known names.
fn names(defined: &Policies) -> String {
    let presets = PRESETS.iter().map(|preset| preset.name);
    let names: Vec<&str> = presets.chain(defined.keys().map(String::as_str)).collect();
    names.join(", ")
}

/// Overrides values of `base` by those of `over`, table by table.
fn merge(base: &mut Table, over: &Table) {
    for (key, value) in over {
        match (base.get_mut(key), value) {
            (Some(Value::Table(base)), Value::Table(over)) => merge(base, over),
            _ => drop(base.insert(key.clone(), value.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_a_preset_and_what_differs() {
        let defined: Policies = toml::from_str(
            "[small]\npreset = \"refs\"\n[small.ageing.placeholder]\nenabled = false\n",
        )
        .unwrap();
        let refs = Policy::preset("refs").unwrap();
        let small = find("small", &defined).unwrap();
        assert!(!small.ageing.placeholder.enabled);
        assert_eq!(
            small.ageing.placeholder.budget,
            refs.ageing.placeholder.budget
        );
        assert_eq!(find("refs", &defined).unwrap(), refs);
        assert!(find("tidy", &defined).unwrap_err().contains("steady, refs"));
    }

    #[test]
    fn error_about_a_policy_names_the_setting() {
        let bad = |toml: &str| find("mine", &toml::from_str(toml).unwrap()).unwrap_err();
        assert!(bad("[mine]\nnonsense = 1").contains("nonsense"));
        assert!(bad("[mine.compaction]\nkeep_percent = 0").contains("compaction.keep_percent"));
    }
}
