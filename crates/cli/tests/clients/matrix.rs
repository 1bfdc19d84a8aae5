//! Every client, scenario and preset: run, compared and shown as one table.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Semaphore;
use trimtab_engine::policy::PRESETS;

use crate::judge::{Comparison, RunFailure, RunReport, compare};
use crate::run::say;
use crate::scenario::Scenario;
use crate::session::{Through, run};
use crate::setup::ClientSetup;

/// The presets that every client is run under.
const USUAL: [&str; 2] = ["steady", "refs"];
/// Columns of a client's name in the table, of a scenario, and of a cell.
const NAME_WIDTH: usize = 33;
const SCENARIO_WIDTH: usize = 16;
const CELL_WIDTH: usize = 16;
/// How many clients run at once.
const AT_ONCE: usize = 3;

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
            say(&row.lines());
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
            for scenario in scenarios(client) {
                let cells = run_scenario(client, &installed, scenario).await;
                row.cells.extend(cells);
            }
            let direct: Vec<RunReport> = row.cells.iter().map(|cell| cell.direct.clone()).collect();
            for cell in &mut row.cells {
                cell.comparison = compare(&cell.direct, &cell.proxied, &direct);
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
    let window = scenario.room().map(|room| direct.first_tokens + room);
    let mut cells = Vec::new();
    for preset in presets(client) {
        let mut cell = MatrixCell {
            scenario,
            preset,
            comparison: Comparison::Fine,
            direct: direct.clone(),
            proxied: RunReport::default(),
        };
        // Clients do work in the background, so that no two runs are the same. A fault of ours is
        // there in both.
        for _ in 0..2 {
            let through = Through { preset, window };
            cell.proxied = run(client, installed, scenario, Some(through)).await;
            cell.comparison = compare(&direct, &cell.proxied, &[]);
            if !matches!(cell.comparison, Comparison::Failed(_)) {
                break;
            }
        }
        cells.push(cell);
    }
    cells
}

/// The scenarios that a client is run through. The window that a model has by its name makes no
/// difference to the client.
fn scenarios(client: &ClientSetup) -> impl Iterator<Item = Scenario> {
    let all = Scenario::ALL.into_iter();
    let is_full = client.is_under_all_presets;
    all.filter(move |scenario| is_full || *scenario != Scenario::DefaultWindow)
}

/// The presets that a client is run under.
fn presets(client: &ClientSetup) -> impl Iterator<Item = &'static str> {
    columns().filter(|preset| client.is_under_all_presets || USUAL.contains(preset))
}

impl MatrixCell {
    fn word(&self) -> &'static str {
        match self.comparison {
            Comparison::Fine => "ok",
            Comparison::SameAsDirect(_) => "same as direct",
            Comparison::Failed(_) => "FAILED",
        }
    }

    fn is_of(&self, scenario: Scenario, preset: &str) -> bool {
        self.scenario == scenario && self.preset == preset
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

    fn ran(&self, scenario: Scenario) -> bool {
        self.cells.iter().any(|cell| cell.scenario == scenario)
    }

    /// A line for each scenario, with a cell for each preset.
    fn lines(&self) -> String {
        if let Some(why) = &self.skipped {
            let name = self.name;
            return format!("{name:<NAME_WIDTH$}SKIPPED: it cannot be installed: {why}");
        }
        let lines = Scenario::ALL
            .iter()
            .filter(|scenario| self.ran(**scenario))
            .map(|scenario| {
                let (name, scenario_name) = (self.name, scenario.name());
                let mut line = format!("{name:<NAME_WIDTH$}{scenario_name:<SCENARIO_WIDTH$}");
                for preset in columns() {
                    let mut cells = self.cells.iter();
                    let cell = cells.find(|cell| cell.is_of(*scenario, preset));
                    let word = cell.map_or("-", MatrixCell::word);
                    let _ = write!(line, "{word:<CELL_WIDTH$}");
                }
                line.trim_end().to_owned()
            });
        lines.collect::<Vec<_>>().join("\n")
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

    /// What the prompt cache did in the long session, without the proxy and under each preset.
    fn cached(&self) -> Option<String> {
        let is_long = |cell: &&MatrixCell| cell.scenario == Scenario::LongSession;
        let mut cells = self.cells.iter().filter(is_long).peekable();
        let direct = &cells.peek()?.direct;
        let told = |way: &str, run: &RunReport| {
            let (prompt, cached) = (run.prompt_tokens / 1_000, run.cached_tokens / 1_000);
            format!("{way} {prompt}k ({cached}k)")
        };
        let proxied = cells.map(|cell| told(cell.preset, &cell.proxied));
        let all: Vec<String> = [told("direct", direct)]
            .into_iter()
            .chain(proxied)
            .collect();
        Some(format!("{:<NAME_WIDTH$}{}", self.name, all.join(", ")))
    }

    fn to_json(&self) -> Value {
        let cells: Vec<Value> = self.cells.iter().map(MatrixCell::to_json).collect();
        json!({"client": self.name, "skipped": self.skipped, "runs": cells})
    }
}

/// The presets in the order of the table.
fn columns() -> impl Iterator<Item = &'static str> {
    let names = PRESETS.iter().map(|preset| preset.name);
    names.filter(|name| *name != "none")
}

/// The table, and below it why cells are not `ok`.
pub(crate) fn table(rows: &[ClientRow]) -> String {
    let mut text = format!("\n{:<NAME_WIDTH$}{:<SCENARIO_WIDTH$}", "client", "scenario");
    for preset in columns() {
        let _ = write!(text, "{preset:<CELL_WIDTH$}");
    }
    let lines = rows.iter().map(ClientRow::lines);
    let cached = rows.iter().filter_map(ClientRow::cached);
    let reasons = rows.iter().flat_map(ClientRow::reasons);
    let title = "tokens of the prompts of a long session, and those read from the cache:";
    let blank = String::new;
    let figures = [blank(), title.to_owned()].into_iter().chain(cached);
    for line in lines.chain([blank()]).chain(reasons).chain(figures) {
        text.push('\n');
        text.push_str(&line);
    }
    text
}

/// The same as JSON, with the figures of every run.
pub(crate) fn to_json(rows: &[ClientRow]) -> Value {
    rows.iter().map(ClientRow::to_json).collect()
}
