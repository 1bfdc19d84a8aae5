//! `trimtab mcp`: serves the two retrieval tools to an MCP client.
//!
//! The protocol comes from `rmcp`; `server` maps its calls to `trimtab::retrieval`, the same code
//! that the proxy and the agent use.

mod server;

use std::io;

use rmcp::service::ServerInitializeError;
use rmcp::{ServiceExt, transport};

use self::server::McpServer;
use super::output::store_location::{StoreLocation, session_id};
use crate::common::CommonArgs;
use crate::exit::Failure;

/// The arguments of `trimtab mcp`.
#[derive(Debug, clap::Args)]
pub struct McpArgs {
    /// The session whose outputs the client may read [default: the session used last]
    #[arg(
        long,
        short,
        value_name = "S",
        env = "TRIMTAB_SESSION",
        hide_env_values = true
    )]
    pub session: Option<String>,
}

/// The first part of `trimtab mcp --help`.
pub const ABOUT: &str = "\
Serve the two retrieval tools to an MCP client, over standard input and output.

The tools are tool_output_cache, which reads lines of a stored output, and tool_output_cache_grep, \
which searches one or all of them. With --session the client can read the outputs of that session \
and its parents, and nothing else.

Without --session a search covers the session that was used last, determined at each call, and a \
ref is looked up in all sessions of the same tenant. Refs cannot be guessed, so a model can only \
name a ref that it was shown. Use this for a client behind `trimtab serve` or `trimtab wrap`, \
whose sessions have generated names.

The store is created if it does not exist, because its writer may start later.

Exits when standard input ends.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
Examples:
  trimtab mcp
  claude mcp add trimtab -- trimtab mcp
  trimtab mcp --session S                       one session; trimtab output list --sessions

In the configuration of a client:
  {\"mcpServers\": {\"trimtab\": {\"command\": \"trimtab\", \"args\": [\"mcp\"]}}}";

/// Runs the verb. Nothing else may hold standard output meanwhile.
pub fn run(args: &McpArgs, common: &CommonArgs) -> Result<(), Failure> {
    // Requires the full name: the session may not exist yet, and a prefix could match another one.
    let session = args.session.as_deref().map(session_id).transpose()?;
    let StoreLocation { store, .. } = common.store.make()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let served = runtime.block_on(serve(McpServer::new(store, session)));
    // A thread that waits for standard input must not keep the process alive.
    runtime.shutdown_background();
    served
}

async fn serve(server: McpServer) -> Result<(), Failure> {
    let failed =
        |error: &dyn std::fmt::Display| Failure::Failed(io::Error::other(error.to_string()));
    match server.serve(transport::io::stdio_pipes()).await {
        Ok(running) => running
            .waiting()
            .await
            .map(|_| ())
            .map_err(|error| failed(&error)),
        // A client may disconnect before it has sent anything.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(failed(&error)),
    }
}
