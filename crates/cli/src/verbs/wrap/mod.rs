//! `trimtab wrap`: runs an agent through a private proxy.
//!
//! `clients` decides how a client is pointed at the proxy, `setup` collects the variables,
//! arguments and temporary files for it, and `child` runs it. The proxy ends with the client.

mod child;
mod clients;
mod codex;
mod continue_dev;
mod files;
mod opencode;
mod setup;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use serde_json::json;

use self::clients::{CLIENTS, KnownClient, setup};
use self::setup::{ClientSetup, ClientSurroundings};
use crate::catalogue;
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::proxy::destinations::destinations;
use crate::proxy::savings::{Savings, total_line};
use crate::proxy::settings::{ProxyArgs, resolve};
use crate::proxy::{block_on, start};
use crate::ui::Terminal;
use crate::ui::visible::visible_json;
use crate::verbs::doctor;

/// The arguments of `trimtab wrap`.
#[derive(Debug, clap::Args)]
pub struct WrapArgs {
    /// Set a variable for the client; {url} stands for the proxy's address. Can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// List the known clients, and how each is pointed at the proxy
    #[arg(long)]
    pub list: bool,
    /// The options of the proxy.
    #[command(flatten)]
    pub proxy: ProxyArgs,
    /// The client and its arguments
    #[arg(
        value_name = "CLIENT [ARGS]",
        required_unless_present = "list",
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}

/// The first part of `trimtab wrap --help`.
pub const ABOUT: &str = "\
Run an agent through a private proxy.

Starts a proxy on a free local port, points the client at it by environment or flags, runs the \
client in the foreground with its terminal, and reports the savings in one line at the end. No \
file of the client is changed, and the proxy exits with it. The exit code is that of the client.

Known clients are claude, codex, opencode, gemini, qwen, aider, pi, copilot, cline, cn (Continue), \
droid and vibe; --list shows how each is pointed at the proxy. Any other command gets \
ANTHROPIC_BASE_URL, ANTHROPIC_API_BASE, OPENAI_BASE_URL and OPENAI_API_BASE, which most libraries \
read, or only the variables of --env.

If one of these variables is already set, or the client's settings name an address, the proxy \
sends requests there, unless --upstream or the settings of trimtab say otherwise. An address other \
than the provider's own is printed at startup.

Options for trimtab come before the client; everything after it belongs to the client.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab wrap claude
  trimtab wrap --preset refs codex exec \"fix the failing test\"
  trimtab wrap --observe claude -p \"what does this repository do?\"
  trimtab wrap --env OPENAI_BASE_URL={url}/v1 python agent.py
  trimtab wrap --list

Exit codes: that of the client; 127 if it does not exist; 1 and 2 for failures before it starts.";

/// Runs the verb.
pub fn run(args: &WrapArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    if args.list {
        return list(common, terminal);
    }
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut resolved = resolve(&args.proxy, Some(listen), common)?;
    // Nobody else knows its address, so it needs no token.
    resolved.proxy.make_private();
    let (name, rest) = args.command.split_first().ok_or_else(no_client)?;
    if name.as_encoded_bytes().starts_with(b"-") {
        return Err(unknown_option(name));
    }
    let mut savings = Savings::new(catalogue::load()?);
    let code = block_on(async {
        let has_upstreams = !resolved.proxy.upstreams.is_empty();
        let plan = planned(name, rest, &args.env, has_upstreams)?;
        // Flags and settings of Trimtab take precedence over addresses of the client.
        if resolved.proxy.upstreams.is_empty() {
            resolved.proxy.upstreams.clone_from(&plan.upstreams);
            resolved.upstreams_from = None;
        }
        for line in destinations(&resolved) {
            terminal.note(&line);
        }
        let (running, mut log, mut notices) = start(&resolved, doctor::report).await?;
        if let Ok((_, notice)) = notices.try_recv() {
            // Print before the client takes over the terminal.
            terminal.warn(&notice);
        }
        // `_folder` keeps the temporary files until the client has ended.
        let (plan, _folder) = plan.at(&format!("http://{}", running.address()))?;
        let own = plan.args.into_iter().map(OsString::from);
        let code = child::run(name, own.chain(plan.user_args), plan.env);
        tokio::pin!(code);
        let code = loop {
            tokio::select! {
                code = &mut code => break code?,
                Some(record) = log.recv() => {
                    savings.add(&record);
                }
            }
        };
        running.shutdown().await;
        while let Ok(record) = log.try_recv() {
            savings.add(&record);
        }
        Ok(code)
    })?;
    let total = savings.total();
    if common.json {
        let line = json!({"wrap": total, "exit_code": code});
        terminal.say(&visible_json(&line));
    } else {
        terminal.note(&format!("trimtab: {}", total_line(total)));
    }
    if code == 0 {
        Ok(())
    } else {
        Err(Failure::Child(code))
    }
}

/// Determines how to run the client in this environment.
fn planned(
    name: &OsStr,
    rest: &[OsString],
    asked: &[String],
    has_upstreams: bool,
) -> Result<ClientSetup, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    let ask = |args: &[&str]| child::output_of(name, args);
    let surroundings = ClientSurroundings {
        variable: &variable,
        read: &read,
        ask: &ask,
        has_upstreams,
    };
    setup(&name.to_string_lossy(), rest, asked, &surroundings)
}

/// Lists the known clients.
fn list(common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    let line = |client: &KnownClient| {
        let (command, how) = (client.command, client.how);
        if common.json {
            visible_json(&json!({"client": command, "how": how})) + "\n"
        } else {
            format!("{command:<10}{how}\n")
        }
    };
    let mut text: String = CLIENTS.iter().map(line).collect();
    if !common.json {
        text +=
            "any other ANTHROPIC_BASE_URL, ANTHROPIC_API_BASE, OPENAI_BASE_URL, OPENAI_API_BASE\n";
    }
    terminal.out().write_all(text.as_bytes())?;
    Ok(())
}

fn unknown_option(name: &OsStr) -> Failure {
    let name = name.display();
    let hint = "`trimtab wrap --help` lists the options; those of the client come after its name";
    Failure::input(format!("unknown option {name}"), hint)
}

fn no_client() -> Failure {
    Failure::input("no client is given", "for example: trimtab wrap claude")
}
