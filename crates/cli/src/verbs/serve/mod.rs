//! `trimtab serve`: runs the proxy in the foreground.
//!
//! The proxy itself is `trimtab-proxy`. This verb resolves its settings, prints its records and
//! notices, and handles signals: SIGHUP reloads the settings, SIGTERM and Ctrl-C stop it.

pub mod lines;

use std::io::Write;
use std::net::SocketAddr;

use trimtab_proxy::{NoticeLevel, Record, RunningProxy};

use crate::catalogue;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::proxy::destinations::destinations;
use crate::proxy::line::request_line;
use crate::proxy::listen::parse_listen;
use crate::proxy::log::{NoticeReceiver, RecordReceiver, is_traffic};
use crate::proxy::savings::{Savings, total_line};
use crate::proxy::settings::{ProxyArgs, ResolvedProxy, resolve};
use crate::proxy::signals::{SignalOrder, SignalOrders};
use crate::proxy::{block_on, start};
use crate::settings;
use crate::ui::Terminal;
use crate::verbs::doctor;

/// The arguments of `trimtab serve`.
#[derive(Debug, clap::Args)]
pub struct ServeArgs {
    /// Address and port to listen on, or a port alone [default: 127.0.0.1:8787]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    pub listen: Option<SocketAddr>,
    /// The options of the proxy.
    #[command(flatten)]
    pub proxy: ProxyArgs,
}

/// The first part of `trimtab serve --help`.
pub const ABOUT: &str = "\
Run the proxy: one base URL between your agents and their models.

The proxy supports Chat Completions, Responses and Messages under their usual paths and passes \
everything else through. It stores tool outputs in full and shows them shortened, compacts old \
rounds before the window overflows, and recovers from overflows. Requests that it does not \
understand, or for which it fails, are sent unchanged.

Without --upstream, Messages go to api.anthropic.com and the other dialects to api.openai.com, \
with the client's key; the proxy needs no key. A request goes only to an upstream that accepts its \
dialect, and is refused if there is none.

The proxy prints one line per request on standard error: a short one on a terminal (time in UTC, \
session, model, tokens of the original and of the sent prompt). If standard error is not a terminal, \
every line is a JSON object. With --json the objects of requests go to standard output.

SIGHUP reloads the settings without dropping streams. \
SIGTERM and Ctrl-C let open streams finish; a second signal ends them.

Settings come from the table [proxy] of the user's file or of the file that --config names, from \
TRIMTAB_PROXY_<KEY>, and from these flags; later sources win. docs/proxy.md lists them all, and \
which of them a project's trimtab.toml may set. The token for an address that others can reach is \
TRIMTAB_PROXY_TOKEN or proxy.token, never a flag.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab serve                                          then: ANTHROPIC_BASE_URL=http://127.0.0.1:8787 claude
  trimtab serve --observe                                only report what it would do
  trimtab serve --upstream http://127.0.0.1:11434        a local model server
  trimtab serve --upstream messages=https://gw.example   only Messages, only to this server
  trimtab serve --listen 127.0.0.1:0 --preset refs       a free port, another preset

Exit codes: 0 ended by a signal, 1 failure, 2 wrong settings or arguments.";

/// Runs the verb.
pub fn run(args: &ServeArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let resolved = resolve(&args.proxy, args.listen, common)?;
    let mut savings = Savings::new(catalogue::load()?);
    block_on(async {
        // Register before announcing the address, so that no signal is lost.
        let mut orders = SignalOrders::new()?;
        let (running, mut log, mut notices) = start(&resolved, doctor::report).await?;
        terminal.log_messages();
        terminal.say(&lines::started(running.address(), &resolved));
        let mut server = ServeRun {
            args,
            common,
            running: &running,
            savings: &mut savings,
            terminal,
        };
        server
            .until_stopped(&mut orders, &mut log, &mut notices)
            .await?;
        let open = running.report().open;
        if open > 0 {
            terminal.note(&format!("trimtab: stopping, {open} requests still open"));
        }
        tokio::select! {
            () = running.shutdown() => {}
            // A second signal ends the open streams.
            () = orders.stop() => {}
        }
        // Streams that ended during the shutdown have sent their records since.
        while let Ok(record) = log.try_recv() {
            print(&record, &mut savings, common, terminal)?;
        }
        terminal.note(&format!("trimtab: {}", total_line(savings.total())));
        Ok(())
    })
}

struct ServeRun<'a> {
    args: &'a ServeArgs,
    common: &'a CommonArgs,
    running: &'a RunningProxy,
    savings: &'a mut Savings,
    terminal: &'a mut Terminal,
}

impl ServeRun<'_> {
    /// Prints records and notices, and reloads the settings on request.
    async fn until_stopped(
        &mut self,
        orders: &mut SignalOrders,
        log: &mut RecordReceiver,
        notices: &mut NoticeReceiver,
    ) -> Result<(), Failure> {
        loop {
            tokio::select! {
                order = orders.next() => match order {
                    SignalOrder::Stop => return Ok(()),
                    SignalOrder::Reload => self.reload(),
                },
                Some((level, notice)) = notices.recv() => print_notice(level, &notice, self.terminal),
                Some(record) = log.recv() => {
                    print(&record, self.savings, self.common, self.terminal)?;
                }
            }
        }
    }

    /// Reloads the settings. Invalid settings leave the old ones active.
    fn reload(&mut self) {
        let resolved = resolve(&self.args.proxy, self.args.listen, self.common);
        let done = resolved.and_then(|resolved| {
            let reloaded = self.running.reload(resolved.proxy.clone());
            reloaded.map_err(|error| crate::proxy::config_failure(&error))?;
            Ok(resolved)
        });
        match done {
            Ok(resolved) => {
                let moved = moved(self.running.address(), &resolved);
                self.terminal
                    .say(&format!("trimtab: settings reloaded{moved}"));
                settings::warn_of_skipped(self.common, self.terminal);
                for line in destinations(&resolved) {
                    self.terminal.say(&line);
                }
            }
            Err(failure) => {
                let message = format!("keeping the old settings: {failure}");
                self.terminal.error(&message, None);
            }
        }
    }
}

/// Prints a notice of the proxy.
fn print_notice(level: NoticeLevel, notice: &str, terminal: &mut Terminal) {
    match level {
        NoticeLevel::Info => terminal.say(&format!("trimtab: {notice}")),
        NoticeLevel::Warning => terminal.warn(notice),
        NoticeLevel::Error => terminal.error(notice, None),
    }
}

/// The note about an address that only a restart can change.
fn moved(address: SocketAddr, resolved: &ResolvedProxy) -> String {
    let listen = resolved.proxy.listen;
    if listen.port() == 0 || listen == address {
        return String::new();
    }
    format!("; still listening on {address}: {listen} needs a restart")
}

fn print(
    record: &Record,
    savings: &mut Savings,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    savings.add(record);
    if common.json {
        terminal.json(record)?;
        terminal.out().flush()?;
    } else if is_traffic(record) {
        terminal.log(record, || request_line(record));
    }
    Ok(())
}
