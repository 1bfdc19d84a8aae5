//! The conformance cases of the designs test the estimates of messages and texts.

use serde_json::{Value, json};

use super::*;
use crate::estimate::Measure;

#[test]
fn tool_definitions_count_alike_in_every_dialect() {
    let schema = json!({"type": "object", "properties": {"b": {}, "a": {}}});
    let chat = json!({"type": "function", "function":
        {"name": "find", "description": "Finds.", "parameters": schema}});
    let responses =
        json!({"type": "function", "name": "find", "description": "Finds.", "parameters": schema});
    let messages = json!({"name": "find", "description": "Finds.", "input_schema": schema});
    // 4 + 6 + 46 + 20 characters.
    let tokens =
        |tools: Value| Heuristic::Turns.tools(Measure::of_tools(&tools.to_string()).sizes());
    for tool in [&chat, &responses, &messages] {
        assert_eq!(tokens(json!([tool])), 76 * 2 / 5);
        assert_eq!(tokens(tool.clone()), 76 * 2 / 5);
    }
    assert_eq!(tokens(json!([chat, messages])), 152 * 2 / 5);
    assert_eq!(tokens(json!([{"name": "x"}])), 21 * 2 / 5);
    assert_eq!(tokens(json!([])), 0);
}
