//! What the designs state and where we differ from them, as data.

use serde::Deserialize;

/// What a design states, in our own words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statement {
    /// The preset that carries it out.
    pub preset: String,
    /// The statement.
    pub says: String,
    /// The settings that carry it out.
    pub settings: Vec<String>,
}

/// Where we differ from a design.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// The preset.
    pub preset: String,
    /// What the design does.
    pub does: String,
    /// What we do.
    pub ours: String,
    /// Why.
    pub why: String,
}

/// What is known of the designs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Designs {
    /// What they state.
    #[serde(rename = "statement")]
    pub statements: Vec<Statement>,
    /// Where we differ.
    #[serde(rename = "deviation")]
    pub deviations: Vec<Deviation>,
}

impl Designs {
    /// What the data beside the presets says.
    ///
    /// ```
    /// use trimtab_engine::policy::Designs;
    ///
    /// let designs = Designs::read();
    /// assert!(designs.deviations.iter().any(|deviation| deviation.preset == "archive"));
    /// ```
    pub fn read() -> Self {
        // The file is part of the program, and a test reads it.
        toml::from_str(include_str!("../../presets/designs.toml")).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PRESETS;

    #[test]
    fn the_data_can_be_read_and_speaks_of_presets_that_exist() {
        let text = include_str!("../../presets/designs.toml");
        let designs: Designs = toml::from_str(text).unwrap();
        assert_eq!(designs, Designs::read());
        let is = |name: &str| PRESETS.iter().any(|preset| preset.name == name);
        assert!(
            designs
                .statements
                .iter()
                .all(|statement| is(&statement.preset))
        );
        assert!(
            designs
                .deviations
                .iter()
                .all(|deviation| is(&deviation.preset))
        );
        for preset in PRESETS {
            let said = |statement: &&Statement| statement.preset == preset.name;
            assert!(
                designs.statements.iter().any(|one| said(&one)),
                "{}",
                preset.name
            );
        }
    }
}
