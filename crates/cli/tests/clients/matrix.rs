//! Every client, scenario and preset: run, compared and shown as one table.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::judge::{Comparison, RunFailure, RunReport, compare};
use crate::run::say;
use crate::scenario::Scenario;
use crate::session::{Through, run};
use crate::setup::ClientSetup;

/// The presets that every scenario is run under.
const PRESETS: [&str; 2] = ["steady", "refs"];
/// Columns of a client's name in the table, and of a cell.
const NAME_WIDTH: usize = 33;
const CELL_WIDTH: usize = 16;
/// How many clients run at once.
const AT_ONCE: usize = 2;

/// One line of the table.
pub(crate) struct ClientRow {
    name: &'static str,
    /// Why the client could not be run at all.
    skipped: Option<String>,
    cells: Vec<MatrixCell>,
}

/// One client in one scenario under one preset.
struct MatrixCell {
    scenario: Scenario,
    preset: &'static str,
    direct: RunReport,
    proxied: RunReport,
    comparison: Comparison,
}

/// Runs `clients`, some at once.
pub(crate) async fn run_matrix(clients: Vec<&'static ClientSetup>) -> Vec<ClientRow> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let tasks = clients.into_iter().map(|client| {
        let places = Arc::clone(&places);
        tokio::spawn(async move {
            let _place = places.acquire().await.unwrap();
            let row = run_client(client).await;
            say(&row.line());
            row.reasons().iter().for_each(|reason| say(reason));
            row
        })
    });
    let tasks: Vec<_> = tasks.collect();
    let mut rows = Vec::new();
    for task in tasks {
        rows.push(task.await.unwrap());
    }
    rows
}

async fn run_client(client: &'static ClientSetup) -> ClientRow {
    let package = client.package;
    let installed = tokio::task::spawn_blocking(move || package.installed());
    let mut row = ClientRow {
        name: client.name,
        skipped: None,
        cells: Vec::new(),
    };
    match installed.await.unwrap() {
        Ok(installed) => {
            for scenario in Scenario::ALL {
                let cells = run_scenario(client, &installed, scenario).await;
                row.cells.extend(cells);
            }
        }
        Err(why) => row.skipped = Some(why),
    }
    row
}

async fn run_scenario(
    client: &'static ClientSetup,
    installed: &Path,
    scenario: Scenario,
) -> Vec<MatrixCell> {
    let direct = run(client, installed, scenario, None).await;
    let window = direct.first_tokens + scenario.room();
    let mut cells = Vec::new();
    for preset in PRESETS {
        let through = Through { preset, window };
        let proxied = run(client, installed, scenario, Some(through)).await;
        cells.push(MatrixCell {
            scenario,
            preset,
            comparison: compare(&direct, &proxied),
            direct: direct.clone(),
            proxied,
        });
    }
    cells
}

impl MatrixCell {
    fn word(&self) -> &'static str {
        match self.comparison {
            Comparison::Fine => "ok",
            Comparison::SameAsDirect(_) => "same as direct",
            Comparison::Failed(_) => "FAILED",
        }
    }

    fn place(&self) -> String {
        format!("{} {}", self.scenario.name(), self.preset)
    }

    fn to_json(&self) -> Value {
        json!({
            "scenario": self.scenario.name(),
            "preset": self.preset,
            "result": self.word(),
            "direct": self.direct.to_json(),
            "proxied": self.proxied.to_json(),
        })
    }
}

impl ClientRow {
    /// True if something fails only through the proxy.
    pub(crate) fn has_failed(&self) -> bool {
        let mut cells = self.cells.iter();
        cells.any(|cell| matches!(cell.comparison, Comparison::Failed(_)))
    }

    fn line(&self) -> String {
        let mut line = format!("{:<NAME_WIDTH$}", self.name);
        if let Some(why) = &self.skipped {
            let _ = write!(line, "SKIPPED: it cannot be installed: {why}");
            return line;
        }
        for cell in &self.cells {
            let _ = write!(line, "{:<CELL_WIDTH$}", cell.word());
        }
        line.trim_end().to_owned()
    }

    /// Why cells are not `ok`.
    fn reasons(&self) -> Vec<String> {
        let told = |failures: &[RunFailure]| {
            let told = failures
                .iter()
                .map(|one| format!("{} ({})", one.kind, one.detail));
            told.collect::<Vec<_>>().join("; ")
        };
        let reasons = self.cells.iter().filter_map(|cell| {
            let why = match &cell.comparison {
                Comparison::Fine => return None,
                Comparison::SameAsDirect(failures) | Comparison::Failed(failures) => told(failures),
            };
            Some(format!(
                "{} {}: {}: {why}",
                self.name,
                cell.place(),
                cell.word()
            ))
        });
        reasons.collect()
    }

    fn to_json(&self) -> Value {
        let cells: Vec<Value> = self.cells.iter().map(MatrixCell::to_json).collect();
        json!({"client": self.name, "skipped": self.skipped, "runs": cells})
    }
}

/// The table, and below it why cells are not `ok`.
pub(crate) fn table(rows: &[ClientRow]) -> String {
    let mut text = format!("\n{:<NAME_WIDTH$}", "client");
    for scenario in Scenario::ALL {
        for preset in PRESETS {
            let _ = write!(
                text,
                "{:<CELL_WIDTH$}",
                format!("{} {preset}", scenario.name())
            );
        }
    }
    let lines = rows.iter().map(ClientRow::line);
    let reasons = rows.iter().flat_map(ClientRow::reasons);
    for line in lines.chain([String::new()]).chain(reasons) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// The same as JSON, with the figures of every run.
pub(crate) fn to_json(rows: &[ClientRow]) -> Value {
    rows.iter().map(ClientRow::to_json).collect()
}
