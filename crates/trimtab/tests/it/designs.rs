//! What the designs state and where we differ from them, as data.

use serde::Deserialize;
use trimtab::engine::policy::PRESETS;

/// What a design states, in our own words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    /// The preset that carries it out.
    pub(crate) preset: String,
    /// The statement.
    pub(crate) says: String,
    /// The settings that carry it out.
    pub(crate) settings: Vec<String>,
}

/// Where we differ from a design.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Deviation {
    /// The preset.
    pub(crate) preset: String,
    /// What the design does.
    pub(crate) does: String,
    /// What we do.
    pub(crate) ours: String,
    /// Why.
    pub(crate) why: String,
}

/// What is known of the designs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Designs {
    /// What they state.
    #[serde(rename = "statement")]
    pub(crate) statements: Vec<Statement>,
    /// Where we differ.
    #[serde(rename = "deviation")]
    pub(crate) deviations: Vec<Deviation>,
}

impl Designs {
    /// What the data beside the presets says.
    pub(crate) fn read() -> Self {
        toml::from_str(include_str!("../../../engine/presets/designs.toml")).unwrap()
    }
}

#[test]
fn the_data_speaks_of_presets_that_exist_and_of_all_of_them() {
    let designs = Designs::read();
    let is = |name: &str| PRESETS.iter().any(|preset| preset.name == name);
    assert!(designs.statements.iter().all(|one| is(&one.preset)));
    assert!(designs.deviations.iter().all(|one| is(&one.preset)));
    for preset in PRESETS {
        let said = |one: &Statement| one.preset == preset.name;
        assert!(designs.statements.iter().any(said), "{}", preset.name);
    }
}
