//! The official SDKs of the providers, in Python and for Node, through `trimtab serve`.
//!
//! They are installed once into folders of the user's cache. Where that is not possible the
//! test says that it was skipped, and why.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::model::{LAST, RETRIEVED, ROUNDS, upstream};
use crate::run::{Served, cache, say, texts};
use crate::windows;

/// Bytes of every output: a window takes three of them.
const OUTPUT: &str = "60000";
/// The window, in tokens.
const WINDOW: u64 = 50_000;
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
async fn python_sdks_run_to_the_end() {
    match python() {
        Ok(python) => all_flows("Python", || Command::new(&python), "sdk.py", None).await,
        Err(why) => say(&format!("SKIPPED: the Python SDKs: {why}")),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn node_sdks_run_to_the_end() {
    match node() {
        Ok(folder) => {
            all_flows("Node", || Command::new("node"), "sdk.mjs", Some(&folder)).await;
        }
        Err(why) => say(&format!("SKIPPED: the Node SDKs: {why}")),
    }
}

/// Every way of using the SDKs of one language; `folder` is where they are, if that is said.
async fn all_flows(
    language: &str,
    runs: impl Fn() -> Command,
    script: &str,
    folder: Option<&Path>,
) {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/clients");
    for flow in FLOWS {
        let upstream = upstream(Some(WINDOW)).await;
        let served = Served::start(&["--upstream", &upstream.url(), "--window", "50000"]);
        let mut command = runs();
        command.arg(scripts.join(script));
        command.args([&served.url, flow, OUTPUT]).args(folder);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap())
            .await
            .unwrap();
        let (stdout, wrong) = texts(&output);
        assert!(output.status.success(), "{language} {flow}: {wrong}");
        assert_eq!(stdout.trim(), LAST, "{language} {flow}");
        let name = format!("{language} {flow}");
        let windows = windows::judge(&name, &upstream, |received| {
            received.tools.iter().any(|tool| tool == "read_log")
        });
        assert!(windows.calls > ROUNDS, "{name}: {windows}");
        assert_eq!(windows.retrieved.len(), 1, "{name}: {windows}");
        assert!(
            windows.retrieved[0].contains(RETRIEVED),
            "{name}: {windows:?}"
        );
        say(&format!("{name}: {windows}, to the end"));
    }
}

/// A Python that has the SDKs.
fn python() -> Result<PathBuf, String> {
    let packages = ["openai", "anthropic"];
    let folder = kept("sdk-venv")?;
    let python = folder.join("bin").join("python");
    let imports = format!("import {}", packages.join(", "));
    let ready = || done(Command::new(&python).args(["-c", &imports]));
    if ready().is_err() {
        done(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let mut pip = Command::new(&python);
        done(pip.args(["-m", "pip", "install", "--quiet"]).args(packages))?;
        ready()?;
    }
    Ok(python)
}

/// The folder in which Node finds the SDKs.
fn node() -> Result<PathBuf, String> {
    let folder = kept("sdk-node")?;
    let ready = || {
        let requires = "require('openai'); require('@anthropic-ai/sdk')";
        done(
            Command::new("node")
                .args(["-e", requires])
                .current_dir(&folder),
        )
    };
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    if ready().is_err() {
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund"]);
        npm.args(["openai", "@anthropic-ai/sdk"]);
        done(npm.current_dir(&folder))?;
        ready()?;
    }
    Ok(folder)
}

/// A folder of the user's cache.
fn kept(name: &str) -> Result<PathBuf, String> {
    let cache = cache().ok_or("there is no folder for what can be made again")?;
    Ok(cache.join("trimtab").join(name))
}

/// Runs a command to its end, or says why that did not work.
fn done(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .output()
        .map_err(|error| format!("{program} cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let (_, stderr) = texts(&output);
    let line = stderr.lines().rfind(|line| !line.trim().is_empty());
    Err(format!("{program} failed: {}", line.unwrap_or_default()))
}
