//! The command line arguments: the verbs and their flags, as clap parses them.

use clap::{Parser, Subcommand};

use crate::common::CommonArgs;
use crate::verbs::{
    chat, compact, completions, config, demo, doctor, hook, inspect, man, mcp, models, output,
    replay, serve, store, wrap,
};

/// The context engine between an agent and its model.
#[derive(Debug, Parser)]
#[command(
    name = "trimtab",
    version,
    propagate_version = true,
    max_term_width = 100
)]
pub struct Cli {
    /// The verb to run.
    #[command(subcommand)]
    pub verb: Verb,
    /// Flags that every verb takes.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Demonstrate the proxy without a key, on a recorded session and a small window
    #[command(long_about = demo::ABOUT, after_help = demo::EXAMPLES)]
    Demo(demo::DemoArgs),
    /// Run the proxy: one base URL between your agents and their models
    #[command(long_about = serve::ABOUT, after_help = serve::EXAMPLES)]
    Serve(serve::ServeArgs),
    /// Run an agent through a private proxy
    #[command(long_about = wrap::ABOUT, after_help = wrap::EXAMPLES)]
    Wrap(wrap::WrapArgs),
    /// Check settings, store, upstreams and keys, and say how to fix problems
    #[command(long_about = doctor::ABOUT, after_help = doctor::EXAMPLES)]
    Doctor(doctor::DoctorArgs),
    /// Show what fills the window of a recorded conversation, and its faults
    #[command(long_about = inspect::ABOUT, after_help = inspect::EXAMPLES)]
    Inspect(inspect::InspectArgs),
    /// Talk to a model in the terminal, with tools and a managed window
    #[command(long_about = chat::ABOUT, after_help = chat::EXAMPLES)]
    Chat(chat::ChatArgs),
    /// Compact a recorded conversation and write it back in the same form
    #[command(long_about = compact::ABOUT, after_help = compact::EXAMPLES)]
    Compact(compact::CompactArgs),
    /// Show windows, prices and rules of models
    #[command(long_about = models::ABOUT, after_help = models::EXAMPLES)]
    Models(models::ModelsArgs),
    /// Replay recorded sessions through a preset: tokens, cost, recall, faults
    #[command(long_about = replay::ABOUT, after_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Manage stored tool outputs: put, list, read, search and remove them
    #[command(long_about = output::ABOUT, after_help = output::EXAMPLES)]
    Output(output::OutputArgs),
    /// Check the store, and repair it if it is damaged
    #[command(long_about = store::ABOUT, after_help = store::EXAMPLES)]
    Store(store::StoreVerbArgs),
    /// Show the settings, describe them, or write a file to start from
    #[command(long_about = config::ABOUT, after_help = config::EXAMPLES)]
    Config(config::ConfigArgs),
    /// Shorten the outputs of a client's tools before they enter its transcript
    #[command(long_about = hook::ABOUT, after_help = hook::EXAMPLES)]
    Hook(hook::HookArgs),
    /// Serve the two retrieval tools to an MCP client, over standard input and output
    #[command(long_about = mcp::ABOUT, after_help = mcp::EXAMPLES)]
    Mcp(mcp::McpArgs),
    /// Print the completions of a shell
    #[command(long_about = completions::ABOUT, after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
    /// Print the manual page
    #[command(long_about = man::ABOUT, after_help = man::EXAMPLES)]
    Man,
}
