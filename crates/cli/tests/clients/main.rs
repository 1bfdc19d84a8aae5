//! Real clients from the package registries, straight at a strict provider and through
//! `trimtab serve`.
//!
//! Each runs through three scenarios under two presets, and nothing may go wrong through the
//! proxy that does not go wrong without it. That takes an hour and several gigabytes, so it runs
//! only where `TRIMTAB_CLIENTS` is set, as `./test --clients` does: `all`, or names with commas
//! between them.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stderr,
    reason = "helpers of tests fail and report as tests do"
)]

mod catalogue;
mod install;
mod judge;
mod launch;
mod matrix;
mod model;
mod scenario;
mod session;
mod setup;
mod shell;

#[path = "../proxy/run.rs"]
#[allow(dead_code, reason = "other test binaries use the rest of it")]
mod run;

use std::path::{Path, PathBuf};

use catalogue::clients;
use run::say;
use setup::ClientSetup;

#[tokio::test(flavor = "multi_thread")]
async fn real_clients_fail_in_nothing_that_works_without_the_proxy() {
    let Some(wanted) = std::env::var_os("TRIMTAB_CLIENTS") else {
        say("SKIPPED: set TRIMTAB_CLIENTS=all, or run ./test --clients, for real clients");
        return;
    };
    let rows = matrix::run_matrix(chosen(&wanted.to_string_lossy())).await;
    say(&matrix::table(&rows));
    let file = records_folder().join("table.json");
    std::fs::write(&file, format!("{:#}\n", matrix::to_json(&rows))).unwrap();
    say(&format!("\nthe table as JSON: {}", file.display()));
    assert!(
        !rows.iter().any(matrix::ClientRow::has_failed),
        "clients fail through the proxy; what each sent is beside the JSON"
    );
}

/// The clients that were asked for: all, or those whose name is given or begins with it.
fn chosen(wanted: &str) -> Vec<&'static ClientSetup> {
    if matches!(wanted, "1" | "all") {
        return clients();
    }
    let names: Vec<&str> = wanted.split(',').map(str::trim).collect();
    let is_wanted = |client: &ClientSetup, name: &str| {
        let family = client.name.strip_prefix(name);
        family.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    for name in &names {
        let known = clients().iter().any(|client| is_wanted(client, name));
        let all: Vec<&str> = clients().iter().map(|client| client.name).collect();
        assert!(
            known,
            "there is no client {name:?}\nhint: one of {}",
            all.join(", ")
        );
    }
    let mut chosen = clients();
    chosen.retain(|client| names.iter().any(|name| is_wanted(client, name)));
    chosen
}

/// Where runs leave what was sent and said.
pub(crate) fn records_folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
