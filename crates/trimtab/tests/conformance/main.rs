//! Conformance to the five designs.
//!
//! Every case in the JSON files of the folder named by `TRIMTAB_VECTORS`, or of the project's
//! own folder, is run under `Policy::preset` with the settings of the case. What is compared is
//! the window that a session would send, or what the function gives that the session calls: the
//! table in `ops` says which, and why. An inverted case is one that the real system gets wrong,
//! or one that `differs.toml` names with a reason: ours must differ there, and be valid.
//!
//! A case that fails or cannot be run is reported, and the next one is run.

#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::unnecessary_wraps,
    reason = "a test runner prints its verdict, indexing JSON does not panic, and all ops have one type"
)]

mod case;
mod expect;
mod front;
mod ops;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use case::Case;

fn main() -> ExitCode {
    let folder = std::env::var_os("TRIMTAB_VECTORS").map_or_else(own_cases, in_workspace);
    let mut passed = 0;
    let mut failed = 0;
    for read in case::read_folder(&folder, &own_cases().join("differs.toml")) {
        let verdict = match read {
            Ok(case) => judge(&case).map_err(|why| format!("{}: {why}", case.title())),
            Err(why) => Err(why),
        };
        match verdict {
            Ok(()) => passed += 1,
            Err(why) => {
                failed += 1;
                println!("FAILED {why}");
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
    let result = ops::run(case)?;
    let difference = expect::difference(&case.expected, &result);
    match (case.inverted, difference) {
        (false, None) => Ok(()),
        (false, Some(difference)) => Err(difference),
        (true, None) => Err(format!("is as wrong as the real system: {result}")),
        (true, Some(_)) => expect::must_be_valid(&case.input, &result),
    }
}
