//! Conformance to the five designs.
//!
//! Every case in the JSON files of the folder named by `TRIMTAB_VECTORS`, or of the project's
//! own folder, is run under `Policy::preset` with the settings of the case. What is compared is
//! the window that a session would send, or what the function gives that the session calls: the
//! table in `ops` says which, and why. An inverted case is one that the real system gets wrong:
//! ours must differ there, and be valid.
//!
//! A case that fails is reported and the next one is run, also if it panics.

#![expect(
    clippy::print_stdout,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test runner prints its verdict, and a broken case may panic: it is caught"
)]

mod case;
mod expect;
mod front;
mod ops;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use case::Case;

fn main() -> ExitCode {
    let folder = std::env::var_os("TRIMTAB_VECTORS").map_or_else(own_cases, in_workspace);
    let mut passed = 0;
    let mut failed = 0;
    // What a panic says is part of the report.
    std::panic::set_hook(Box::new(|_| {}));
    for read in case::read_folder(&folder) {
        let verdict = match read {
            Ok(case) => judged(&case).map_err(|why| format!("{}: {why}", case.title())),
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

/// The verdict on a case; a panic is one as well.
fn judged(case: &Case) -> Result<(), String> {
    let verdict = catch_unwind(AssertUnwindSafe(|| judge(case)));
    verdict.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied());
        Err(format!("panicked: {}", text.unwrap_or("no message")))
    })
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
