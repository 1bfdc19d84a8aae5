//! House rules that a machine can check.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The crates there are, and which of them each may use. A new one needs a reason in
/// `ARCHITECTURE.md`.
const CRATES: [(&str, &[&str]); 14] = [
    ("model", &[]),
    ("engine", &["model"]),
    ("wire", &["model"]),
    ("store", &["model"]),
    ("trimtab", &["engine", "model", "store", "wire"]),
    ("agent", &["engine", "model", "store", "trimtab", "wire"]),
    (
        "cli",
        &[
            "agent", "engine", "model", "proxy", "store", "trimtab", "wire",
        ],
    ),
    ("proxy", &["engine", "model", "store", "trimtab", "wire"]),
    ("judge", &["trimtab"]),
    ("testkit", &["model", "wire"]),
    ("binding", &["trimtab"]),
    ("python", &["binding"]),
    ("node", &["binding"]),
    ("rig", &["binding"]),
];

/// What the tests of a crate may use beyond that, and beside the testkit.
const IN_TESTS: [(&str, &str); 2] = [("store", "store"), ("wire", "engine")];

/// What the crates that touch nothing may use of others: none of these opens a file or a socket.
const PURE: [(&str, &[&str]); 3] = [
    (
        "model",
        &["data-encoding", "imagesize", "serde", "serde_json"],
    ),
    (
        "engine",
        &[
            "globset",
            "memchr",
            "regex",
            "serde",
            "serde_json",
            "thiserror",
            "toml",
        ],
    ),
    (
        "wire",
        &[
            "memchr",
            "regex",
            "serde",
            "serde_json",
            "simdutf8",
            "thiserror",
            "toml",
        ],
    ),
];

/// Largest file that may be committed, in bytes: larger ones are data that somebody forgot.
const LARGEST_FILE: u64 = 256 * 1024;

/// The threat model names at least this many tests, or it has lost its form.
const LEAST_TESTS: usize = 30;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn arrows_point_downward_only() {
    let allowed: BTreeMap<&str, &[&str]> = CRATES.into_iter().collect();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let Some(allowed) = allowed.get(name.as_str()) else {
            panic!("crate {name} is not in the list of tests/it/tidy.rs");
        };
        for (table, key) in dependencies(&manifest_of(&name)) {
            let Some(used) = key
                .strip_prefix("trimtab")
                .map(|key| key.trim_start_matches('-'))
            else {
                continue;
            };
            let used = if used.is_empty() { "trimtab" } else { used };
            let in_tests = table == "dev-dependencies"
                && (used == "testkit" || IN_TESTS.contains(&(name.as_str(), used)));
            assert!(
                in_tests || allowed.contains(&used),
                "{name} must not have {used} in its {table}"
            );
        }
    }
}

#[test]
fn verifier_and_normaliser_share_no_code() {
    let engine = root().join("crates/engine/src");
    let verifier = fs::read_to_string(engine.join("verify.rs")).unwrap();
    assert!(!verifier.contains("normalise::"));
    for entry in fs::read_dir(engine.join("normalise")).unwrap() {
        let path = entry.unwrap().path();
        let is_test = path.ends_with("tests.rs");
        let text = fs::read_to_string(&path).unwrap();
        assert!(is_test || !text.contains("verify::"), "{}", path.display());
    }
}

/// Crates whose modules must not use each other in a circle.
const WITHOUT_CYCLES: [&str; 9] = [
    "agent", "cli", "engine", "model", "proxy", "store", "testkit", "trimtab", "wire",
];

#[test]
fn modules_of_a_crate_have_no_cycle() {
    for krate in WITHOUT_CYCLES {
        let mut uses = module_uses(&root().join("crates").join(krate).join("src"));
        // Take away modules that use none of the rest, until nothing is left or a cycle is.
        loop {
            let names: BTreeSet<String> = uses.keys().cloned().collect();
            let before = uses.len();
            uses.retain(|_, used| !used.is_disjoint(&names));
            if uses.len() == before {
                break;
            }
        }
        assert!(uses.is_empty(), "{krate} has a cycle among {uses:?}");
    }
}

/// For each module at the top of a crate, the other ones that it names.
fn module_uses(source: &Path) -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files(source) {
        let inside = path.strip_prefix(source).unwrap();
        let first = inside.iter().next().unwrap().to_string_lossy();
        let module = first.trim_end_matches(".rs").to_owned();
        let is_code =
            path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs");
        if !is_code || module == "lib" || module == "main" {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        // What tests and comments name does not count.
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = text.lines();
        let code = lines.filter(|line| !line.trim_start().starts_with("//"));
        let text: String = code.flat_map(|line| [line, "\n"]).collect();
        let named = text.split("crate::").skip(1).flat_map(|rest| {
            let group = rest
                .strip_prefix('{')
                .and_then(|rest| rest.split("};").next());
            group.map_or_else(
                || vec![first_word(rest)],
                |group| group.split(',').map(first_word).collect(),
            )
        });
        let others = uses.entry(module.clone()).or_default();
        others.extend(named.filter(|name| *name != module));
    }
    uses
}

fn first_word(text: &str) -> String {
    let letters = text.trim_start().chars();
    letters
        .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
        .collect()
}

#[test]
fn pure_crates_use_nothing_that_touches_the_world() {
    for (name, allowed) in PURE {
        for (table, key) in dependencies(&manifest_of(name)) {
            let pure = key.starts_with("trimtab") || allowed.contains(&key.as_str());
            let in_tests = table == "dev-dependencies";
            assert!(
                pure || in_tests,
                "{name} must not have {key} in its {table}"
            );
        }
    }
}

fn manifest_of(name: &str) -> toml::Table {
    let manifest = root().join("crates").join(name).join("Cargo.toml");
    fs::read_to_string(manifest).unwrap().parse().unwrap()
}

/// Every dependency in a manifest, with the name of the table that it is in, those of single
/// systems included.
fn dependencies(table: &toml::Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (key, value) in table {
        let Some(inner) = value.as_table() else {
            continue;
        };
        if key.ends_with("dependencies") {
            found.extend(inner.keys().map(|name| (key.clone(), name.clone())));
        } else {
            found.extend(dependencies(inner));
        }
    }
    found
}

#[test]
fn every_test_in_the_threat_model_exists() {
    let page = fs::read_to_string(root().join("docs/threat-model.md")).unwrap();
    let named: Vec<(&str, &str)> = page
        .split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|code| code.split_once(".rs::"))
        .collect();
    assert!(named.len() >= LEAST_TESTS, "only {} tests", named.len());
    for (path, function) in named {
        let file = root().join("crates").join(format!("{path}.rs"));
        let text = fs::read_to_string(&file)
            .unwrap_or_else(|error| panic!("docs/threat-model.md: {}: {error}", file.display()));
        assert!(
            text.contains(&format!("fn {function}(")),
            "docs/threat-model.md: {path}.rs has no test {function}"
        );
    }
}

#[test]
fn the_map_names_every_crate() {
    let map = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for (name, _) in CRATES {
        assert!(
            map.contains(&format!("`crates/{name}`")),
            "ARCHITECTURE.md: no crates/{name}"
        );
    }
}

#[test]
fn no_file_is_too_large() {
    for file in files(&root()) {
        let size = fs::metadata(&file).unwrap().len();
        assert!(size <= LARGEST_FILE, "{} has {size} bytes", file.display());
    }
}

#[test]
fn the_source_does_not_speak_of_its_own_past() {
    let marks = ["TODO", "FIXME", "XXX", "HACK"];
    let sources = files(&root().join("crates")).into_iter();
    for file in sources.filter(|file| file.extension().is_some_and(|end| end == "rs")) {
        let text = fs::read_to_string(&file).unwrap();
        let this = file.ends_with("tests/it/tidy.rs");
        for mark in marks.iter().filter(|_| !this) {
            assert!(
                !text.contains(&format!("// {mark}")),
                "{}: {mark}",
                file.display()
            );
        }
    }
}

/// Every file below `folder` that is not hidden and not built.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let is_built = ["target", "dist", "Cargo.lock"].contains(&name.as_str());
        if name.starts_with('.') || is_built {
            continue;
        }
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}
