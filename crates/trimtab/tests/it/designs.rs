//! What the designs state, and the tests that show it, as data.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use trimtab::engine::policy::PRESETS;

/// What a design states, in our own words.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Statement {
    /// The preset that carries it out.
    pub(crate) preset: String,
    /// What it is about.
    pub(crate) part: String,
    /// The statement.
    pub(crate) says: String,
    /// What we do instead, where we differ.
    #[serde(default)]
    pub(crate) ours: String,
    /// Why we differ, or why it does not apply.
    #[serde(default)]
    pub(crate) why: String,
    /// The settings that carry it out.
    #[serde(default)]
    pub(crate) settings: Vec<String>,
    /// The tests that show it.
    #[serde(default)]
    pub(crate) tests: Vec<String>,
}

impl Statement {
    /// True for one that says nothing about what we do.
    pub(crate) fn is_absent(&self) -> bool {
        self.ours.is_empty() && !self.why.is_empty()
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Designs {
    statement: Vec<Statement>,
}

/// What the data beside the presets says.
pub(crate) fn statements() -> Vec<Statement> {
    let text = include_str!("../../../engine/presets/designs.toml");
    toml::from_str::<Designs>(text).unwrap().statement
}

#[test]
fn the_data_speaks_of_presets_that_exist_and_of_all_of_them() {
    let statements = statements();
    let is = |name: &str| PRESETS.iter().any(|preset| preset.name == name);
    assert!(statements.iter().all(|one| is(&one.preset)));
    for preset in PRESETS {
        let said = |one: &Statement| one.preset == preset.name;
        assert!(statements.iter().any(said), "{}", preset.name);
    }
}

/// True if the repository has a test of this name.
fn exists(test: &str) -> bool {
    let Some((place, name)) = test.split_once("::") else {
        return false;
    };
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let ending = Path::new(place).extension().and_then(|end| end.to_str());
    let (file, mark) = if ending == Some("json") {
        let file = crates.join("trimtab/tests/vectors").join(place);
        (file, format!("\"op\": \"{name}\""))
    } else if ending == Some("rs") {
        (crates.join(place), format!("fn {name}("))
    } else {
        let file = format!("cli/tests/designs/{place}.rs");
        (crates.join(file), format!("fn {name}("))
    };
    fs::read_to_string(file).is_ok_and(|text| text.contains(&mark))
}

#[test]
fn every_statement_is_shown_by_tests_that_exist() {
    for statement in statements() {
        let says = &statement.says;
        assert_eq!(statement.tests.is_empty(), statement.is_absent(), "{says}");
        assert_eq!(
            statement.ours.is_empty(),
            statement.why.is_empty() || statement.is_absent(),
            "{says}"
        );
        for test in &statement.tests {
            assert!(exists(test), "{says} no test {test}");
        }
    }
}

#[test]
fn every_test_of_the_designs_shows_a_statement() {
    let named: Vec<String> = statements().into_iter().flat_map(|one| one.tests).collect();
    for preset in ["refs", "checkpoint", "turns", "archive", "retention"] {
        let file = format!("../cli/tests/designs/{preset}.rs");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = fs::read_to_string(file).unwrap();
        let tests = text.split("test").filter_map(|rest| {
            let (head, rest) = rest.split_once("fn ")?;
            let is_test = head.ends_with("]\n") || head.ends_with("]\nasync ");
            is_test.then(|| rest.split('(').next().unwrap_or_default())
        });
        for test in tests {
            let name = format!("{preset}::{test}");
            assert!(named.contains(&name), "{name} shows no statement");
        }
    }
}
