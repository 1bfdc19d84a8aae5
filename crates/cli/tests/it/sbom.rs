//! The bill of materials of the binary.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Whether the tool behind `./sbom` is installed: it takes minutes to build.
fn has_tool() -> bool {
    let version = Command::new("cargo")
        .args(["cyclonedx", "--version"])
        .output();
    version.is_ok_and(|output| output.status.success())
}

#[test]
fn sbom_names_what_is_linked_and_nothing_else() {
    if !has_tool() {
        println!("SKIPPED: cargo-cyclonedx is not installed");
        return;
    }
    let output = Command::new(root().join("sbom")).arg("-").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let bill: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(bill["bomFormat"], "CycloneDX");
    let components = bill["components"].as_array().unwrap();
    let names: Vec<&str> = components
        .iter()
        .map(|component| component["name"].as_str().unwrap())
        .collect();
    for linked in ["rustls", "tokio", "trimtab-proxy"] {
        assert!(names.contains(&linked), "{linked} is missing");
    }
    for other in ["proptest", "trimtab-testkit"] {
        assert!(!names.contains(&other), "{other} is not in the binary");
    }
    for component in components {
        assert!(component["purl"].is_string(), "{component}");
    }
    let folder = root().canonicalize().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains(folder.to_str().unwrap()));
}
