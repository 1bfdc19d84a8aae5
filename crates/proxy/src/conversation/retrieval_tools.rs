//! The two retrieval tools as they are offered to a model: their names beside the client's tools,
//! their definitions in each dialect, and their size.

use std::borrow::Cow;
use std::sync::LazyLock;

use trimtab_engine::view::tools::{ToolNames, is_retrieval};
use trimtab_model::estimate::Measure;
use trimtab_model::{Dialect, RawJson};
use trimtab_wire::catalogue::ModelRules;
use trimtab_wire::json::pick;
use trimtab_wire::scan::BodyScan;

/// The number of our tools.
const OUR_TOOLS: usize = 2;
/// The number of tools that Chat Completions and Responses accept.
const MOST_TOOLS: usize = 128;

/// The beginnings of the types of tools that the provider runs. A model of a search or research
/// service may have no others.
const RUN_BY_PROVIDER: [&str; 5] = [
    "\"web_search",
    "\"file_search",
    "\"code_interpreter",
    "\"image_generation",
    "\"mcp\"",
];

/// The tools in one dialect.
#[derive(Clone)]
pub(crate) struct OfferedTools {
    /// The entries for `tools`.
    pub(crate) definitions: Vec<RawJson>,
    /// Their size in the window.
    pub(crate) measure: Measure,
}

/// The retrieval tools of one request.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RetrievalOffer {
    /// The names of the tools that we may add; none if we add none.
    pub(crate) ours: Option<ToolNames>,
    /// The names that placeholders may use; none if the model cannot call the tools.
    pub(crate) callable: Option<ToolNames>,
    /// True to add them to every request, false to add them once a window shows a ref.
    pub(crate) from_start: bool,
}

impl RetrievalOffer {
    /// Our tools beside those of a client, with other names if the client has tools with the usual
    /// ones. A client with our MCP server offers them itself.
    ///
    /// Tools stand in front of everything else. Adding them later would cost the whole cached
    /// prompt, which is more than reading their few lines with every call of an agent.
    pub(crate) fn beside(scan: &BodyScan<'_>, rules: ModelRules) -> Self {
        if has_mcp_server(scan) {
            return Self {
                callable: Some(ToolNames::default()),
                ..Self::default()
            };
        }
        let mut tools = scan.request().tool_list.iter();
        let is_agent = tools.any(|tool| is_run_by_client(scan.json(tool.span)));
        if !is_agent && rules.no_chat_tools && scan.dialect() == Dialect::Chat {
            return Self::default();
        }
        let is_chat_or_responses = scan.dialect() != Dialect::Messages;
        let count = scan.request().tool_list.len() + OUR_TOOLS;
        if is_chat_or_responses && count > MOST_TOOLS {
            return Self::default();
        }
        let tools = scan.request().tool_list.iter();
        let taken: Vec<_> = tools.filter_map(|tool| scan.string(tool.name)).collect();
        let ours = ToolNames::beside(&taken);
        Self {
            ours,
            callable: ours,
            from_start: is_agent,
        }
    }
}

fn is_run_by_client(tool: &str) -> bool {
    let kind = pick(tool, ["type"]).map_or("", |[kind]| kind.unwrap_or_default());
    !RUN_BY_PROVIDER.iter().any(|type_| kind.starts_with(type_))
}

/// True if the client has our tools from an MCP server. Clients put a prefix before such names.
fn has_mcp_server(scan: &BodyScan<'_>) -> bool {
    let mut tools = scan.request().tool_list.iter();
    tools.any(|tool| {
        let name = scan.string(tool.name);
        // Clients write the tools of an MCP server as `mcp__SERVER__TOOL`. Without the prefix, a
        // tool of this name is one that the client defined itself.
        name.is_some_and(|name| name.contains("__") && is_retrieval(&name))
    })
}

/// The tools in `dialect`, under these names.
pub(crate) fn offered_tools(dialect: Dialect, names: ToolNames) -> Cow<'static, OfferedTools> {
    // Almost every request uses the default names, so these definitions are written and measured
    // once.
    static USUAL: [LazyLock<OfferedTools>; 3] = [
        LazyLock::new(|| OfferedTools::new(Dialect::Chat, ToolNames::default())),
        LazyLock::new(|| OfferedTools::new(Dialect::Messages, ToolNames::default())),
        LazyLock::new(|| OfferedTools::new(Dialect::Responses, ToolNames::default())),
    ];
    if names != ToolNames::default() {
        return Cow::Owned(OfferedTools::new(dialect, names));
    }
    let [chat, messages, responses] = &USUAL;
    Cow::Borrowed(match dialect {
        Dialect::Chat => chat,
        Dialect::Messages => messages,
        Dialect::Responses => responses,
    })
}

impl OfferedTools {
    /// The bytes of the definitions, each with what separates it from the next.
    pub(crate) fn bytes(&self) -> usize {
        self.definitions
            .iter()
            .map(|json| json.as_str().len() + 1)
            .sum()
    }

    fn new(dialect: Dialect, names: ToolNames) -> Self {
        let tools = names.definitions();
        let definitions: Vec<RawJson> = tools
            .iter()
            .map(|tool| RawJson::of(&tool.in_dialect(dialect)))
            .collect();
        let measures = definitions.iter();
        let measure = measures.map(|json| Measure::of_tools(json.as_str())).sum();
        Self {
            definitions,
            measure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_take_what_their_definitions_take() {
        for dialect in Dialect::ALL {
            let ours = offered_tools(dialect, ToolNames::default());
            assert_eq!(ours.definitions.len(), 2);
            let bytes: usize = ours
                .definitions
                .iter()
                .map(|json| json.as_str().len())
                .sum();
            let tokens = ours.measure.tokens();
            assert!(
                (bytes as u64 / 8..bytes as u64 / 2).contains(&tokens),
                "{dialect}: {tokens}"
            );
        }
    }
}
