//! The MCP server with both retrieval tools.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use trimtab::engine::view::tools;
use trimtab::retrieval::{NOT_FOUND, Retrieval, RetrievalAnswer};
use trimtab::store::{SessionId, Store};

use crate::verbs::output::sessions::tenant;

/// Instructions that clients may show to the model.
const INSTRUCTIONS: &str = "\
Tool outputs that were shortened or trimmed are stored whole. Where one names a ref_id, read the \
lines you need with tool_output_cache, or search with tool_output_cache_grep.";

/// Without a session, a ref is looked up in this many of the newest sessions.
const MOST_SESSIONS: usize = 256;
/// The answer if there are no outputs.
const NO_SESSION: &str = "No outputs are stored yet.";

/// Both tools for one session, or for the session used last.
#[derive(Clone)]
pub(super) struct McpServer {
    store: Arc<dyn Store>,
    session: Option<SessionId>,
}

impl McpServer {
    pub(super) fn new(store: Arc<dyn Store>, session: Option<SessionId>) -> Self {
        Self { store, session }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let name = Implementation::new("trimtab", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(name)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools: Result<Vec<Tool>, _> = tools::all()
            .iter()
            .map(|tool| serde_json::from_value(tool.in_mcp()))
            .collect();
        let tools = tools.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if !Retrieval::is_ours(&request.name) {
            let message = format!("unknown tool: {}", request.name);
            return Err(ErrorData::invalid_params(message, None));
        }
        let server = self.clone();
        // The store reads from disk, so other requests are served meanwhile.
        let answer = tokio::task::spawn_blocking(move || {
            server.answer(&request.name, request.arguments.unwrap_or_default())
        });
        let answer = answer.await;
        let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let content = vec![ContentBlock::text(answer.text)];
        let result = if answer.is_error {
            CallToolResult::error(content)
        } else {
            CallToolResult::success(content)
        };
        Ok(result.into())
    }
}

impl McpServer {
    fn answer(&self, tool: &str, arguments: JsonObject) -> RetrievalAnswer {
        let arguments = serde_json::Value::Object(arguments).to_string();
        let sessions = match &self.session {
            Some(session) => vec![session.clone()],
            None => self.newest_sessions(),
        };
        let mut answer = RetrievalAnswer {
            text: NO_SESSION.to_owned(),
            is_error: true,
        };
        // A ref belongs to one of them; the first one answers a search of all outputs.
        for session in sessions {
            answer = Retrieval::new(&*self.store, session).call(tool, &arguments);
            if answer.text != NOT_FOUND {
                break;
            }
        }
        answer
    }

    /// The session used last, followed by the others of its tenant.
    fn newest_sessions(&self) -> Vec<SessionId> {
        let mut sessions = self.store.sessions().unwrap_or_default();
        // A session without outputs has nothing to read, even if it was used last.
        sessions.retain(|info| info.outputs > 0);
        sessions.sort_by_key(|info| std::cmp::Reverse((info.used, info.created)));
        let mut names = sessions.into_iter().map(|info| info.session);
        let Some(newest) = names.next() else {
            return Vec::new();
        };
        let owner = tenant(newest.as_str()).map(str::to_owned);
        let others = names.filter(|session| tenant(session.as_str()) == owner.as_deref());
        let others: Vec<SessionId> = others.take(MOST_SESSIONS).collect();
        [vec![newest], others].concat()
    }
}
