//! `trimtab demo`: demonstrates the proxy with embedded defaults and without a key.
//!
//! `agent` plays the recorded `session` against two instances of `provider`: directly, and through
//! a real proxy. The comparison becomes a `report`, which `chart` draws.

mod agent;
mod answer;
mod chart;
mod model;
mod prompt;
mod provider;
mod report;
mod session;

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use trimtab::store::FolderStore;
use trimtab_model::Usage;
use trimtab_proxy::{PORT, Proxy, ProxyConfig, Record, RunningProxy, StartError};

use self::provider::{AnsweredCall, DemoProvider};
use self::report::{DemoCall, DemoReport, RunTotals};
use self::session::{DemoRound, DemoSession};
use crate::catalogue;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::proxy::line::request_line;
use crate::proxy::listen::parse_listen;
use crate::proxy::log::{self, RecordReceiver, is_traffic};
use crate::proxy::savings::Savings;
use crate::proxy::settings::rule;
use crate::proxy::signals::SignalOrders;
use crate::proxy::{block_on, config_failure, failure_with_hint};
use crate::ui::Terminal;
use crate::ui::number::parse_tokens;
use crate::ui::progress::Progress;

/// The model of the session, whose prices apply.
const MODEL: &str = "claude-sonnet-4-5";

/// How long to wait for the records of the last calls.
const SETTLING: Duration = Duration::from_secs(1);

/// The arguments of `trimtab demo`.
#[derive(Debug, clap::Args)]
pub struct DemoArgs {
    /// Exit after the report instead of serving
    #[arg(long)]
    pub once: bool,
    /// The window of the scripted model, in tokens
    #[arg(long, value_name = "TOKENS", default_value = "64k", value_parser = parse_window)]
    pub window: u64,
    /// The preset that decides what goes into the window
    #[arg(long, value_name = "NAME", default_value = "steady")]
    pub preset: String,
    /// Address and port to listen on [default: 127.0.0.1:8787, or a free port]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub listen: Option<SocketAddr>,
    /// Print the session as a transcript for `inspect`, `compact` and `replay`, and exit
    #[arg(long, conflicts_with_all = ["once", "window", "preset", "listen"])]
    pub transcript: bool,
}

/// The first part of `trimtab demo --help`.
pub const ABOUT: &str = "\
Demonstrate the proxy without a key or any configuration.

An agent looks for a bug in a web shop: 38 model calls, and more files, logs, test runs and query \
results than fit the window. The session runs twice over HTTP: directly to a scripted model with a \
window large enough for everything, and through the proxy to the same model with a small window \
and the rules of a real provider, which rejects requests that are too long or malformed. The \
report shows the window of each call and the savings, in tokens and at real prices, with the \
provider's prompt cache counted for both.

Then the proxy keeps serving, so that you can point a client at it; --once exits instead. All data \
is kept in a temporary folder that is removed at the end.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab demo
  trimtab demo --once --window 32k
  trimtab demo --once --preset refs --json
  trimtab demo --transcript > session.json

Exit codes: 0 success, 1 failure, 2 wrong arguments.";

/// Runs the verb.
pub fn run(args: &DemoArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    if args.transcript {
        return Ok(terminal.json(&DemoSession::make().transcript(MODEL))?);
    }
    block_on(async {
        // Register before serving, so that no signal is lost.
        let mut orders = SignalOrders::new()?;
        let folder = tempfile::tempdir()?;
        let mut stage = DemoStage::set(args, &folder).await?;
        if !common.json {
            write!(terminal.out(), "{}", chart::opening(args.window))?;
            terminal.out().flush()?;
        }
        let report = stage.play(args, terminal).await?;
        print(&report, common, terminal)?;
        if args.once {
            stage.proxy.shutdown().await;
            return Ok(());
        }
        terminal.say(&serving(stage.proxy.address()));
        loop {
            tokio::select! {
                () = orders.stop() => break,
                Some(record) = stage.log.recv() => tell(&record, terminal),
            }
        }
        tokio::select! {
            () = stage.proxy.shutdown() => {}
            () = orders.stop() => {}
        }
        Ok(())
    })
}

/// The smallest window in which the session can be played, in tokens.
const LEAST_WINDOW: u64 = 5_000;

fn parse_window(text: &str) -> Result<u64, String> {
    let tokens = parse_tokens(text)?;
    if tokens < LEAST_WINDOW {
        return Err(format!(
            "the demo needs a window of at least {LEAST_WINDOW} tokens"
        ));
    }
    Ok(tokens)
}

fn serving(address: SocketAddr) -> String {
    format!(
        "still serving on http://{address} with the scripted model\n\
         the session that was just played: http://{address}/dashboard\n\ntry\n\n\
         curl http://{address}/v1/messages \\\n  \
         -H 'content-type: application/json' -H 'x-api-key: demo' \\\n  \
         -H 'anthropic-version: 2023-06-01' \\\n  \
         -d '{{\"model\": \"{MODEL}\", \"max_tokens\": 64,\n       \
         \"messages\": [{{\"role\": \"user\", \"content\": \"hello\"}}]}}'\n\n\
         with a real model: trimtab serve, or trimtab wrap claude; Ctrl-C ends this"
    )
}

fn print(report: &DemoReport, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    if common.json {
        terminal.json(report)?;
    } else {
        let picture = chart::calls(report, terminal.has_colour());
        let summary = chart::summary(report);
        write!(terminal.out(), "\n{picture}\n{summary}\n")?;
    }
    terminal.out().flush()?;
    Ok(())
}

/// Prints a request that arrived after the report.
fn tell(record: &Record, terminal: &mut Terminal) {
    if is_traffic(record) {
        terminal.note(&request_line(record));
    }
}

/// The session, the two providers, and the proxy in front of one of them.
struct DemoStage {
    session: DemoSession,
    /// The provider with a window large enough for everything.
    boundless: DemoProvider,
    /// The provider with the small window.
    strict: DemoProvider,
    proxy: RunningProxy,
    /// The records of the proxy.
    log: RecordReceiver,
}

impl DemoStage {
    async fn set(args: &DemoArgs, folder: &TempDir) -> Result<Self, Failure> {
        let session = DemoSession::make();
        let boundless = DemoProvider::start(&session, None).await?;
        let strict = DemoProvider::start(&session, Some(args.window)).await?;
        let config = ProxyConfig {
            preset: args.preset.clone(),
            models: vec![rule(args.window)],
            ..ProxyConfig::to_upstream(strict.url())
        };
        let (proxy, log) = start(args.listen, config, folder).await?;
        Ok(Self {
            session,
            boundless,
            strict,
            proxy,
            log,
        })
    }

    /// Plays the session directly and through the proxy.
    async fn play(&mut self, args: &DemoArgs, terminal: &Terminal) -> Result<DemoReport, Failure> {
        let begun = Instant::now();
        let without = self
            .play_at(&self.boundless.url(), "without trimtab", terminal)
            .await?;
        // The same session through the proxy, against the strict provider.
        let address = self.proxy.address();
        self.play_at(&format!("http://{address}"), "with trimtab", terminal)
            .await?;
        self.settle().await;
        let answered = self.strict.answered();
        let with = windows(&answered, without.len());
        // Includes summaries and retrieval rounds, because they cost money too.
        let all: Vec<Usage> = answered.iter().map(|request| request.usage).collect();
        let found = catalogue::load()?
            .find(MODEL)
            .map_err(|unknown| failure_with_hint(&unknown.to_string()))?;
        let figures = self.proxy.report();
        let mut counted = Savings::new(catalogue::load()?);
        // The same sum as on the dashboard, from the same records.
        while let Ok(record) = self.log.try_recv() {
            counted.add(&record);
        }
        let calls: Vec<DemoCall> = self
            .session
            .rounds()
            .zip(without.iter().zip(&with))
            .map(|(round, (without, with))| call(round, without, with))
            .collect();
        Ok(DemoReport {
            model: found.model.id.clone(),
            window: args.window,
            preset: args.preset.clone(),
            overflows_at: calls
                .iter()
                .position(|call| call.without > args.window)
                .map(|at| at + 1),
            calls,
            without: RunTotals::of(&without, &found.model),
            with: RunTotals::of(&all, &found.model),
            counted: counted.total().clone(),
            violations: self.strict.violations(),
            recovered: figures.recovered,
            retrievals: figures.retrievals,
            took_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Waits for the last records of the proxy: a record is written after the client has its
    /// answer, and summaries may still be in progress.
    async fn settle(&self) {
        let until = Instant::now() + SETTLING;
        while self.proxy.report().open > 0 && Instant::now() < until {
            tokio::time::sleep(SETTLING / 200).await;
        }
    }

    async fn play_at(
        &self,
        url: &str,
        name: &str,
        terminal: &Terminal,
    ) -> Result<Vec<Usage>, Failure> {
        let bar = Progress::steps(name, self.session.rounds().count() as u64, terminal);
        let usages = agent::play(&self.session, url, || bar.advance()).await;
        bar.finish();
        usages
    }
}

/// The usage of each call of the session, from its final answer.
fn windows(answered: &[AnsweredCall], calls: usize) -> Vec<Usage> {
    let mut windows = vec![Usage::default(); calls];
    for request in answered {
        // A later request of the same call replaces an earlier one: it was sent again after an
        // overflow.
        if let Some(window) = request.call.and_then(|call| windows.get_mut(call)) {
            *window = request.usage;
        }
    }
    windows
}

fn call(round: &DemoRound, without: &Usage, with: &Usage) -> DemoCall {
    let what = round.calls.first().map_or("answers", |call| call.tool);
    DemoCall {
        what: what.to_owned(),
        without: without.prompt(),
        with: with.prompt(),
        cached: with.cache_read,
    }
}

/// Starts the proxy on the given address; by default on the usual port if it is free.
async fn start(
    listen: Option<SocketAddr>,
    config: ProxyConfig,
    folder: &TempDir,
) -> Result<(RunningProxy, RecordReceiver), Failure> {
    let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let store = FolderStore::open(folder.path().join("store"));
    let store = Arc::new(store.map_err(|error| failure_with_hint(&error.to_string()))?);
    let mut last = None;
    // By default use the usual port, or any port if it is taken.
    for listen in listen.map_or_else(|| vec![at(PORT), at(0)], |one| vec![one]) {
        let config = ProxyConfig {
            listen,
            ..config.clone()
        };
        let (sink, records) = log::channel();
        let proxy = Proxy::new(config, Arc::clone(&store) as _).log(sink);
        match proxy.run().await {
            Ok(running) => return Ok((running, records)),
            Err(StartError::Config(error)) => return Err(config_failure(&error)),
            Err(error) => last = Some(error.to_string()),
        }
    }
    Err(failure_with_hint(&last.unwrap_or_default()))
}
