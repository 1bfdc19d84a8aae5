//! The official SDKs of the providers, through `trimtab serve`.
//!
//! They are installed once into a folder of the user's cache. Without Python or without the
//! network the test says that it was skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::model::{LAST, ROUNDS, upstream};
use crate::run::{Served, cache, say};

/// Bytes of every output: a window takes three of them.
const OUTPUT: usize = 60_000;
/// The window, in tokens.
const WINDOW: u64 = 50_000;
/// What is installed.
const PACKAGES: [&str; 2] = ["openai", "anthropic"];
/// Every way in which they are used.
const FLOWS: [&str; 6] = [
    "messages",
    "messages-stream",
    "chat",
    "chat-stream",
    "responses",
    "responses-stream",
];

#[tokio::test(flavor = "multi_thread")]
async fn sdks_run_to_the_end() {
    let Some(python) = python() else {
        say("SKIPPED: no Python with the openai and anthropic packages, and none could be made");
        return;
    };
    for flow in FLOWS {
        let upstream = upstream(Some(WINDOW)).await;
        let served = Served::start(&["--upstream", &upstream.url(), "--window", "50000"]);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/clients/sdk.py");
        let (url, size) = (served.url.clone(), OUTPUT.to_string());
        let mut command = Command::new(&python);
        command.arg(script).args([&url, flow, &size]);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let wrong = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{flow}: {wrong}");
        assert_eq!(said.trim(), LAST, "{flow}");
        assert!(
            upstream.violations().is_empty(),
            "{flow}: {:?}",
            upstream.violations()
        );
        let answered = upstream.requests().len();
        assert!(answered > ROUNDS, "{flow}: {answered} requests");
        say(&format!(
            "{flow}: {answered} requests, windows valid, to the end"
        ));
    }
}

/// A Python that has the SDKs.
fn python() -> Option<PathBuf> {
    let folder = cache()?.join("trimtab").join("sdk-venv");
    let python = folder.join("bin").join("python");
    if has_packages(&python) {
        return Some(python);
    }
    let run = |program: &Path, args: &[&str]| {
        let done = Command::new(program).args(args).output();
        done.is_ok_and(|output| output.status.success())
    };
    let made = run(Path::new("python3"), &["-m", "venv", folder.to_str()?]);
    let mut install = vec!["-m", "pip", "install", "--quiet"];
    install.extend(PACKAGES);
    (made && run(&python, &install) && has_packages(&python)).then_some(python)
}

fn has_packages(python: &Path) -> bool {
    let imports = format!("import {}", PACKAGES.join(", "));
    let tried = Command::new(python).args(["-c", &imports]).output();
    tried.is_ok_and(|output| output.status.success())
}
