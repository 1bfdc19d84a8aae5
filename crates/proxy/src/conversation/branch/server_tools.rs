//! Measures the tool definitions of a request by the MCP server that they belong to, for the
//! dashboard.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use trimtab::film::server_of;
use trimtab_model::estimate::Measure;

/// The name for tools without a server, which are the client's own.
const OWN: &str = "client";

#[derive(Deserialize)]
struct ToolDefinition {
    #[serde(default)]
    name: String,
    #[serde(default)]
    function: Option<FunctionDefinition>,
}

#[derive(Deserialize)]
struct FunctionDefinition {
    #[serde(default)]
    name: String,
}

/// The size of the definitions of each server, in the order of their appearance.
pub(super) fn measure(json: &str) -> Vec<(String, Measure)> {
    let tools: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
    let mut servers: Vec<(String, Measure)> = Vec::new();
    // Where each server is in the list. A request can name thousands of them, so the list is not
    // searched.
    let mut places: HashMap<String, usize> = HashMap::new();
    for tool in tools {
        let definition: Option<ToolDefinition> = serde_json::from_str(tool.get()).ok();
        let name = definition.map_or_else(String::new, |tool| {
            tool.function.map_or(tool.name, |function| function.name)
        });
        let server = server_of(&name).unwrap_or(OWN);
        let measure = Measure::of_text(tool.get());
        let place = places.get(server).copied();
        match place.and_then(|place| servers.get_mut(place)) {
            Some((_, sum)) => *sum += measure,
            None => {
                places.insert(server.to_owned(), servers.len());
                servers.push((server.to_owned(), measure));
            }
        }
    }
    servers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_are_added_up_by_server() {
        let json = r#"[{"name": "mcp__hub__list", "x": "a long description"},
            {"type": "function", "function": {"name": "mcp__hub__get"}},
            {"name": "bash"}, {"type": "web_search"}]"#;
        let servers = measure(json);
        let names: Vec<&str> = servers.iter().map(|(server, _)| server.as_str()).collect();
        assert_eq!(names, ["hub", "client"]);
        assert!(servers[0].1.tokens() > 10);
        assert!(measure("not json").is_empty());
    }
}
