//! Finds a client's tool for running commands, whatever its name.

use serde_json::{Map, Value, json};
use trimtab_engine::view::tools::is_retrieval;
use trimtab_testkit::script::{ScriptedCall, ScriptedReply};

/// Names under which clients offer a shell, the usual ones first.
const SHELLS: [&str; 12] = [
    "Bash",
    "bash",
    "shell_command",
    "exec_command",
    "shell",
    "run_shell_command",
    "run_commands",
    "execute_command",
    "terminal",
    "run_terminal_command",
    "execute_bash",
    "Execute",
];
/// Parameters that take the command.
const COMMANDS: [&str; 4] = ["command", "cmd", "commands", "script"];
/// The tool of Codex's code mode, which runs JavaScript.
const CODE: &str = "exec";
/// The tool with which some clients want the last words.
const FINAL_ANSWER: &str = "final_answer";

/// A tool that a request offers.
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    schema: Value,
    is_custom: bool,
}

/// How the client of a request runs commands.
pub(crate) enum Shell {
    /// By a call of this tool.
    Tool(OfferedTool),
    /// By JavaScript in a call of this custom tool.
    Script(String),
    /// By Python in the text of the answer.
    Text,
}

/// All tools that a body offers: in `tools`, in namespaces, and in items of the input.
pub(crate) fn offered_tools(body: &Value) -> Vec<OfferedTool> {
    let mut tools = Vec::new();
    collect(body.get("tools"), &mut tools);
    let items = body.get("input").and_then(Value::as_array);
    for item in items.into_iter().flatten() {
        if item["type"] == "additional_tools" {
            collect(item.get("tools"), &mut tools);
        }
    }
    tools
}

fn collect(list: Option<&Value>, tools: &mut Vec<OfferedTool>) {
    for tool in list.and_then(Value::as_array).into_iter().flatten() {
        if tool["type"] == "namespace" {
            collect(tool.get("tools"), tools);
            continue;
        }
        let inner = tool.get("function").unwrap_or(tool);
        let Some(name) = inner["name"].as_str() else {
            continue;
        };
        let schema = inner
            .get("parameters")
            .or_else(|| inner.get("input_schema"));
        tools.push(OfferedTool {
            name: name.to_owned(),
            schema: schema.cloned().unwrap_or_default(),
            is_custom: tool["type"] == "custom",
        });
    }
}

impl Shell {
    /// How the client that sent `body` runs commands, if this request is about that at all.
    pub(crate) fn of(body: &Value) -> Option<Self> {
        let mut tools = offered_tools(body);
        let at = SHELLS
            .iter()
            .find_map(|name| tools.iter().position(|tool| tool.name == *name));
        if let Some(at) = at {
            return Some(Self::Tool(tools.swap_remove(at)));
        }
        let code = tools
            .iter()
            .find(|tool| tool.is_custom && tool.name == CODE);
        if let Some(code) = code {
            return Some(Self::Script(code.name.clone()));
        }
        let system = body.pointer("/messages/0/content").map(Value::to_string);
        let system = system.unwrap_or_default();
        let is_text = system.contains("<code>") && system.contains(FINAL_ANSWER);
        // The tools of the proxy may have come in addition.
        let has_none = tools.iter().all(|tool| is_retrieval(&tool.name));
        (has_none && is_text).then_some(Self::Text)
    }

    /// Adds the run of `command` to `reply`, as call `id`.
    pub(crate) fn run(&self, reply: &mut ScriptedReply, id: &str, command: &str) {
        let (name, arguments, custom) = match self {
            Self::Tool(tool) => (tool.name.as_str(), tool.arguments(command), false),
            Self::Script(name) => {
                let arguments = json!({"cmd": command});
                let script = format!(
                    "const result = await tools.exec_command({arguments});\n\
                     text(result.output ?? result);"
                );
                (name.as_str(), Value::String(script), true)
            }
            Self::Text => {
                // JSON texts are Python texts too.
                let line = format!("# {id}\nprint(bash({}))\n</code>", json!(command));
                reply.text = match reply.text.strip_suffix("</code>") {
                    Some(begun) => format!("{begun}{line}"),
                    None => format!("Thought: {}\n<code>\n{line}", reply.text),
                };
                return;
            }
        };
        reply.calls.push(ScriptedCall {
            id: Some(id.to_owned()),
            custom,
            ..ScriptedCall::new(name, arguments)
        });
    }

    /// The last words, as the client that sent `body` wants them.
    pub(crate) fn last_words(&self, body: &Value, words: &str) -> ScriptedReply {
        if matches!(self, Self::Text) {
            return ScriptedReply::text(format!("<code>\nfinal_answer({})\n</code>", json!(words)));
        }
        let mut tools = offered_tools(body).into_iter();
        if tools.any(|tool| tool.name == FINAL_ANSWER) {
            return ScriptedReply::call(FINAL_ANSWER, json!({"answer": words}));
        }
        ScriptedReply::text(words)
    }
}

impl OfferedTool {
    /// Arguments that run `command`; what else is required gets a plain value.
    fn arguments(&self, command: &str) -> Value {
        let properties = &self.schema["properties"];
        let name = COMMANDS
            .iter()
            .find(|name| properties.get(**name).is_some());
        let name = *name.unwrap_or(&COMMANDS[0]);
        let is_list = takes(&properties[name], "array") && !takes(&properties[name], "string");
        let value = match (is_list, name) {
            (false, _) => json!(command),
            (true, "commands") => json!([command]),
            (true, _) => json!(["bash", "-lc", command]),
        };
        let mut arguments = Map::from_iter([(name.to_owned(), value)]);
        let required = self.schema["required"].as_array();
        for name in required.into_iter().flatten().filter_map(Value::as_str) {
            let plain = plain_value(&properties[name]);
            arguments.entry(name).or_insert(plain);
        }
        Value::Object(arguments)
    }
}

/// True if a schema takes values of type `kind`.
fn takes(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|one| one == kind),
        one => one == kind,
    }
}

/// A value that a schema takes.
fn plain_value(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|all| all.first()) {
        return first.clone();
    }
    let plain = [
        ("string", json!("a step of the audit")),
        ("boolean", json!(false)),
        ("integer", json!(1)),
        ("number", json!(1)),
        ("array", json!([])),
        ("object", json!({})),
    ];
    let found = plain.into_iter().find(|(kind, _)| takes(schema, kind));
    found.map_or(Value::Null, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_with(body: &Value) -> ScriptedReply {
        let mut reply = ScriptedReply::text("I look.");
        Shell::of(body).unwrap().run(&mut reply, "call_1", "ls -la");
        reply
    }

    #[test]
    fn command_goes_where_the_schema_wants_it() {
        let bash = json!({"tools": [{"name": "Bash", "input_schema": {
            "properties": {"command": {"type": "string"}, "description": {"type": "string"}},
            "required": ["command", "description"],
        }}]});
        let arguments = run_with(&bash).calls[0].arguments.to_text();
        let arguments: Value = serde_json::from_str(&arguments).unwrap();
        assert_eq!(arguments["command"], "ls -la");
        assert!(arguments["description"].is_string());
        let list = json!({"tools": [{"type": "function", "function": {"name": "shell",
            "parameters": {"properties": {"command": {"type": "array"}}}}}]});
        let arguments = run_with(&list).calls[0].arguments.to_text();
        assert_eq!(arguments, r#"{"command":["bash","-lc","ls -la"]}"#);
    }

    #[test]
    fn code_mode_gets_a_script_from_tools_in_the_input() {
        let body = json!({"input": [{"type": "additional_tools",
            "tools": [{"type": "custom", "name": "exec"}]}]});
        let reply = run_with(&body);
        assert!(reply.calls[0].custom);
        let script = reply.calls[0].arguments.to_text();
        assert!(
            script.contains(r#"tools.exec_command({"cmd":"ls -la"})"#),
            "{script}"
        );
    }

    #[test]
    fn requests_without_a_shell_are_no_part_of_the_session() {
        assert!(Shell::of(&json!({"messages": []})).is_none());
        let other = json!({"tools": [{"name": "title", "input_schema": {}}]});
        assert!(Shell::of(&other).is_none());
    }
}
