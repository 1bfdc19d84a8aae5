//! The server: both tools, one session.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use trimtab::engine::view::tools;
use trimtab::retrieval::{Retrieval, RetrievalAnswer};
use trimtab::store::{FolderStore, SessionId};

/// What clients may show the model beside the tools.
const INSTRUCTIONS: &str = "\
Tool outputs that were shortened or trimmed are stored whole. Where one names a ref_id, read the \
lines you need with tool_output_cache, or search with tool_output_cache_grep.";

/// Both tools over the outputs of one session.
#[derive(Clone, Debug)]
pub(super) struct Server {
    store: Arc<FolderStore>,
    session: SessionId,
}

impl Server {
    pub(super) fn new(store: FolderStore, session: SessionId) -> Self {
        let store = Arc::new(store);
        Self { store, session }
    }
}

impl ServerHandler for Server {
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
        // The store reads from disk: other requests are served meanwhile.
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

impl Server {
    fn answer(&self, tool: &str, arguments: JsonObject) -> RetrievalAnswer {
        let arguments = serde_json::Value::Object(arguments).to_string();
        Retrieval::new(&*self.store, self.session.clone()).call(tool, &arguments)
    }
}
