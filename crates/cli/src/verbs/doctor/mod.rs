//! `trimtab doctor`: checks the configuration and says how to fix it.
//!
//! It resolves the same settings as `trimtab serve`, runs one module per check, and prints the
//! results in a fixed order.

mod access;
mod catalogue;
mod check;
mod network;
mod port;
mod store;
mod upstream;

use std::io::Write;
use std::net::SocketAddr;

use serde_json::json;
use trimtab::config::SettingSource;

use self::check::{CheckState, DoctorCheck};
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::proxy::block_on;
use crate::proxy::destinations::destinations;
use crate::proxy::http::HttpClient;
use crate::proxy::listen::parse_listen;
use crate::proxy::settings::{ProxyArgs, ResolvedProxy, mode_name, resolve};
use crate::ui::visible::visible;
use crate::ui::{Terminal, style};

/// The arguments of `trimtab doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Address and port that the proxy would listen on [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub listen: Option<SocketAddr>,
    /// The options of the proxy.
    #[command(flatten)]
    pub proxy: ProxyArgs,
    /// Contact no upstream: no request leaves this machine
    #[arg(long)]
    pub offline: bool,
}

/// The first part of `trimtab doctor --help`.
pub const ABOUT: &str = "\
Check settings, store, upstreams and keys, and say how to fix problems.

Each check prints one line: ok, warning or problem, the finding, and the fix.

  settings    every file, variable and flag is understood
  network     additional certificate authorities and the egress proxy
  store       can be written and read, has room, contains no damaged output
  catalogue   windows and prices are available
  access      who can reach the proxy; certificate, key and audit log, if set
  port        is free, or another trimtab listens on it
  upstream    answers; accepts the key of ANTHROPIC_API_KEY or OPENAI_API_KEY, if set;
              and its clock agrees with ours

If requests would go to an address other than the provider's own, it is printed first. A key is \
sent only to an upstream of its own kind, and is never printed.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab doctor
  trimtab doctor --offline --json
  trimtab doctor --upstream http://127.0.0.1:11434

Exit codes: 0 no problems, 1 problems found, 2 wrong arguments.";

/// Runs the verb.
pub fn run(args: &DoctorArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let mut checks = Vec::new();
    match resolve(&args.proxy, args.listen, common) {
        Ok(resolved) => {
            for line in destinations(&resolved) {
                terminal.note(&line);
            }
            checks.extend(all(&resolved, args.offline)?);
        }
        Err(failure) => {
            checks.push(DoctorCheck::of_failure("settings", &failure));
            checks.push(catalogue::check());
        }
    }
    print(&checks, common, terminal)?;
    if has_no_problem(&checks) {
        Ok(())
    } else {
        Err(Failure::ProblemsFound)
    }
}

/// All checks of settings that were resolved.
fn all(resolved: &ResolvedProxy, is_offline: bool) -> Result<Vec<DoctorCheck>, Failure> {
    let mut checks = vec![settings(resolved), network::check(resolved)];
    checks.extend(store::check(resolved));
    checks.push(catalogue::check());
    checks.extend(access::check(&resolved.proxy));
    checks.extend(block_on(async { Ok(outside(is_offline, resolved).await) })?);
    Ok(checks)
}

/// The result of all checks, as `--json` prints it. Contacts the upstreams, so it may take a while.
pub fn report(resolved: &ResolvedProxy) -> serde_json::Value {
    let checks = all(resolved, false);
    json_report(&checks.unwrap_or_else(|failure| vec![DoctorCheck::of_failure("doctor", &failure)]))
}

fn json_report(checks: &[DoctorCheck]) -> serde_json::Value {
    json!({"ok": has_no_problem(checks), "checks": checks})
}

fn has_no_problem(checks: &[DoctorCheck]) -> bool {
    checks
        .iter()
        .all(|check| check.state != CheckState::Problem)
}

fn settings(resolved: &ResolvedProxy) -> DoctorCheck {
    let proxy = &resolved.proxy;
    let settings = resolved.config.settings().into_iter();
    let mut sources: Vec<String> = settings
        .map(|setting| setting.source)
        .filter(|source| !matches!(source, SettingSource::Preset(_) | SettingSource::Default))
        .map(|source| source.name())
        .collect();
    sources.sort_unstable();
    sources.dedup();
    let from = match sources.as_slice() {
        [] => "all defaults".to_owned(),
        sources => format!("from {}", sources.join(", ")),
    };
    let mode = mode_name(proxy.mode);
    DoctorCheck::ok(
        "settings",
        format!("preset {}, {mode}; {from}", proxy.preset),
    )
}

/// The checks that use the network.
async fn outside(is_offline: bool, resolved: &ResolvedProxy) -> Vec<DoctorCheck> {
    let http = HttpClient::new(resolved.outgoing.clone());
    let mut checks = vec![port::check(&http, resolved.proxy.listen).await];
    for one in resolved.proxy.upstreams() {
        let name = format!("upstream {}", one.name);
        if is_offline {
            checks.push(DoctorCheck::ok(name, format!("{}, not asked", one.url)));
        } else {
            let key = |name: &str| std::env::var(name).ok().filter(|key| !key.is_empty());
            checks.extend(upstream::check(&http, &one, key).await);
        }
    }
    checks
}

fn print(
    checks: &[DoctorCheck],
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    if common.json {
        terminal.json(&json_report(checks))?;
        return Ok(());
    }
    let widest = checks
        .iter()
        .map(|check| visible(&check.name).chars().count())
        .max()
        .unwrap_or(0);
    // The words of a check stand below each other, also if they have several lines.
    let gap = " ".repeat(widest + 11);
    let in_lines = |text: &str| {
        let lines: Vec<_> = text.lines().map(visible).collect();
        lines.join(&format!("\n{gap}"))
    };
    for check in checks {
        let colour = match check.state {
            CheckState::Ok => style::GOOD,
            CheckState::Warning => style::WARN,
            CheckState::Problem => style::BAD,
        };
        let DoctorCheck {
            state,
            name,
            message,
            ..
        } = check;
        let state = state.as_str();
        writeln!(
            terminal.out(),
            "{colour}{state:<8}{colour:#} {:<widest$}  {}",
            visible(name),
            in_lines(message)
        )?;
        if let Some(hint) = &check.hint {
            let dim = style::DIM;
            writeln!(terminal.out(), "{gap}{dim}hint:{dim:#} {}", in_lines(hint))?;
        }
    }
    Ok(())
}
