//! Conformance to the five designs.
//!
//! Every case in the JSON files of the folder named by `TRIMTAB_VECTORS`, or of the project's
//! own folder, is given to the engine with the settings of its preset, and the result is held
//! against what the case expects. An inverted case is one that the real system gets wrong:
//! ours must differ there, and be valid.

#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test runner prints its verdict, and a broken case may end it"
)]

mod case;
mod expect;
mod ops;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use case::Case;

fn main() -> ExitCode {
    let folder = std::env::var_os("TRIMTAB_VECTORS").map_or_else(own_cases, in_workspace);
    let mut passed = 0;
    let mut failed = 0;
    for case in case::read_folder(&folder) {
        match judge(&case) {
            Ok(()) => passed += 1,
            Err(why) => {
                failed += 1;
                println!("FAILED {} / {} ({}): {why}", case.file, case.name, case.op);
            }
        }
    }
    println!("conformance: {passed} passed, {failed} failed");
    if failed == 0 && passed > 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn own_cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// Tests run in the folder of their crate; a relative path is meant from the workspace.
fn in_workspace(folder: std::ffi::OsString) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(folder)
}

fn judge(case: &Case) -> Result<(), String> {
    let Some(result) = ops::run(case) else {
        return Err("this op is not known".to_owned());
    };
    let difference = expect::difference(&case.expected, &result);
    match (case.inverted, difference) {
        (false, None) => Ok(()),
        (false, Some(difference)) => Err(difference),
        (true, None) => Err(format!("is as wrong as the real system: {result}")),
        (true, Some(_)) => expect::must_be_valid(&case.input, &result),
    }
}
