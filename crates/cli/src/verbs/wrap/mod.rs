//! `trimtab wrap`: an agent through a private proxy.

mod child;
mod clients;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};

use serde_json::json;

use self::clients::{Setup, setup};
use crate::args::Common;
use crate::catalogue;
use crate::exit::Failure;
use crate::proxy::destinations::destinations;
use crate::proxy::savings::Savings;
use crate::proxy::settings::{ProxyArgs, resolve};
use crate::proxy::{block_on, start};
use crate::ui::Terminal;
use crate::ui::visible::visible_json;

/// What `trimtab wrap` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Set NAME for the client; {url} stands for the proxy's address. May be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<String>,
    /// How the proxy works.
    #[command(flatten)]
    pub proxy: ProxyArgs,
    /// The client and its arguments
    #[arg(
        value_name = "CLIENT [ARGS]",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub command: Vec<OsString>,
}

/// What `trimtab wrap --help` says first.
pub const ABOUT: &str = "\
Run an agent through a private proxy.

Starts a proxy on a free port of this machine, points the client at it by environment or flags, \
runs it in the foreground with its terminal, and tells at the end in one line what was saved. \
No file of the client is changed, and the proxy ends with it. The exit code is the client's.

Known are claude, codex, opencode and gemini. Any other command, such as aider, gets \
ANTHROPIC_BASE_URL, ANTHROPIC_API_BASE, OPENAI_BASE_URL and OPENAI_API_BASE, which the libraries \
read; or what --env says, and nothing else.

If ANTHROPIC_BASE_URL, OPENAI_BASE_URL, or another variable that the client reads is set already, \
the proxy sends requests there, unless --upstream or the settings say otherwise. Where they go is \
told at the start if it is not the provider's own address.

Options for trimtab stand before the client; all that follows it belongs to the client.";

/// What it says last.
pub const EXAMPLES: &str = "\
Examples:
  trimtab wrap claude
  trimtab wrap --preset refs codex exec \"fix the failing test\"
  trimtab wrap --observe claude -p \"what does this repository do?\"
  trimtab wrap --env OPENAI_BASE_URL={url}/v1 python agent.py

Exit codes: the client's own; 127 if it is not there, 1 and 2 as everywhere before it starts.";

/// Runs the verb.
pub fn run(args: &Args, common: &Common, terminal: &mut Terminal) -> Result<(), Failure> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let mut resolved = resolve(&args.proxy, Some(listen), common)?;
    // It is private: nobody else is told its address.
    resolved.proxy.make_private();
    let (name, rest) = args.command.split_first().ok_or_else(no_client)?;
    let mut savings = Savings::new(catalogue::load()?);
    let code = block_on(async {
        let client = name.to_string_lossy();
        let plan = setup(&client, &args.env, |name| std::env::var(name).ok())?;
        if resolved.proxy.upstreams.is_empty() {
            resolved.proxy.upstreams.clone_from(&plan.upstreams);
            resolved.upstreams_from = None;
        }
        for line in destinations(&resolved) {
            terminal.note(&line);
        }
        let (running, mut log, mut notices) = start(&resolved).await?;
        if let Ok(notice) = notices.try_recv() {
            // Before the client has the terminal.
            terminal.warn(&notice);
        }
        let Setup { env, args: own, .. } = plan.at(&format!("http://{}", running.address()));
        let code = child::run(
            name,
            own.iter().map(OsString::from).chain(rest.iter().cloned()),
            env,
        );
        tokio::pin!(code);
        let code = loop {
            tokio::select! {
                code = &mut code => break code?,
                Some(record) = log.recv() => savings.add(&record),
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
        terminal.note(&format!("trimtab: {}", total.line()));
    }
    if code == 0 {
        Ok(())
    } else {
        Err(Failure::Child(code))
    }
}

fn no_client() -> Failure {
    Failure::input("which client?", "trimtab wrap claude, for example")
}
