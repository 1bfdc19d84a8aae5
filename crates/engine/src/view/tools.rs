//! The two tools with which the model retrieves what a view omits.

use serde_json::{Value, json};
use trimtab_model::Dialect;

/// The tool that reads lines of a stored output.
pub const READ: &str = "tool_output_cache";
/// The tool that searches stored outputs.
pub const GREP: &str = "tool_output_cache_grep";

/// What follows the name of a tool in the calls that our texts contain.
pub(super) const FIRST_ARGUMENT: &str = "({\"ref_id\":\"";

/// The names of the two tools in one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolNames {
    /// The tool that reads lines of a stored output.
    pub read: &'static str,
    /// The tool that searches stored outputs.
    pub grep: &'static str,
}

/// The usual names, and alternatives for clients that have tools of the same names.
const NAMES: [ToolNames; 3] = [
    ToolNames {
        read: READ,
        grep: GREP,
    },
    ToolNames {
        read: "trimtab_tool_output_cache",
        grep: "trimtab_tool_output_cache_grep",
    },
    ToolNames {
        read: "trimtab_own_output_cache",
        grep: "trimtab_own_output_cache_grep",
    },
];

impl Default for ToolNames {
    fn default() -> Self {
        let [usual, ..] = NAMES;
        usual
    }
}

impl ToolNames {
    /// The first names that no tool in `taken` has; none if all are taken.
    ///
    /// ```
    /// # use trimtab_engine::view::tools::ToolNames;
    /// assert_eq!(ToolNames::beside(&["bash"]), Some(ToolNames::default()));
    /// let other = ToolNames::beside(&["tool_output_cache"]).unwrap();
    /// assert_eq!(other.read, "trimtab_tool_output_cache");
    /// assert!(other.serves(other.grep) && !other.serves("tool_output_cache"));
    /// ```
    pub fn beside<S: AsRef<str>>(taken: &[S]) -> Option<Self> {
        let is_free = |names: &Self| !taken.iter().any(|tool| names.serves(tool.as_ref()));
        NAMES.into_iter().find(is_free)
    }

    /// The names that include `tool`, also with the prefix that MCP clients add.
    pub fn of(tool: &str) -> Option<Self> {
        // MCP clients call a tool `mcp__SERVER__TOOL`.
        let bare = tool.rsplit_once("__").map_or(tool, |(_, bare)| bare);
        NAMES.into_iter().find(|names| names.serves(bare))
    }

    /// True if `tool` is one of the two.
    pub fn serves(&self, tool: &str) -> bool {
        tool == self.read || tool == self.grep
    }

    /// The definitions of both, in the order in which they are offered.
    pub fn definitions(&self) -> [ToolDefinition; 2] {
        [(self.read, read()), (self.grep, grep())].map(|(name, usual)| ToolDefinition {
            name: name.to_owned(),
            description: self.in_words(&usual.description),
            ..usual
        })
    }

    /// Replaces the names of the tools in the calls of one of our texts; none if there is nothing
    /// to replace.
    ///
    /// ```
    /// # use trimtab_engine::view::tools::ToolNames;
    /// let names = ToolNames::beside(&["tool_output_cache"]).unwrap();
    /// let text = names.in_calls(r#"all of it: tool_output_cache({"ref_id":"r1"})"#).unwrap();
    /// assert_eq!(text, r#"all of it: trimtab_tool_output_cache({"ref_id":"r1"})"#);
    /// assert_eq!(names.in_calls(&text), None);
    /// ```
    pub fn in_calls(&self, text: &str) -> Option<String> {
        let mut renamed = String::new();
        let mut done = 0;
        for (at, _) in text.match_indices(FIRST_ARGUMENT) {
            let before = text.get(done..at).unwrap_or_default();
            let is_joint = |c: char| !c.is_ascii_alphanumeric() && c != '_';
            let name = before.rsplit(is_joint).next().unwrap_or_default();
            let Some(own) = self.instead_of(name).filter(|own| *own != name) else {
                continue;
            };
            renamed.push_str(before.strip_suffix(name).unwrap_or_default());
            renamed.push_str(own);
            done = at;
        }
        // Nothing was replaced: the caller keeps its text without a copy.
        let rest = text.get(done..).filter(|_| done > 0)?;
        Some(renamed + rest)
    }

    /// The name of the tool in this conversation that has `name` in some other; none if it is not
    /// ours.
    pub fn instead_of(&self, name: &str) -> Option<&'static str> {
        let names = NAMES.into_iter().find(|names| names.serves(name))?;
        Some(if name == names.read {
            self.read
        } else {
            self.grep
        })
    }

    /// Replaces the usual names in one of our texts.
    pub fn in_words(&self, text: &str) -> String {
        // The name of the search tool begins with that of the other, so this replaces both.
        text.replace(READ, self.read)
    }
}

/// True for the two retrieval tools, under any of their names, also with the prefix that MCP
/// clients add.
///
/// ```
/// # use trimtab_engine::view::tools::is_retrieval;
/// assert!(is_retrieval("tool_output_cache") && is_retrieval("mcp__trimtab__tool_output_cache_grep"));
/// assert!(is_retrieval("trimtab_tool_output_cache") && !is_retrieval("my_tool_output_cache"));
/// ```
pub fn is_retrieval(tool: &str) -> bool {
    ToolNames::of(tool).is_some()
}

/// The definition of a tool, independent of the dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does and when to use it, for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
}

const READ_DESCRIPTION: &str = "\
Reads lines of an earlier tool output that was shortened or removed. Every output is stored in \
full. Copy the ref_id from the text that stands in its place; never invent one. Lines are numbered \
from 1 and offset counts from 0, so offset 60 starts at line 61. Ask for the range you need, and \
use tool_output_cache_grep first if you do not know where it is. The tool is not run again: you \
see what it printed then.";

const GREP_DESCRIPTION: &str = "\
Searches earlier tool outputs of this session in full, also what is no longer shown: one output \
with ref_id, else all. The pattern is plain text unless regex is true. Matches are numbered lines \
below the ref_id of their output; tool_output_cache reads on from there (offset = line number - \
1). Use it before you run a command or read a file a second time.";

/// The definition of [`READ`].
pub fn read() -> ToolDefinition {
    ToolDefinition::new(
        READ,
        READ_DESCRIPTION,
        json!({
            "type": "object",
            "properties": {
                "ref_id": text("The ref_id that stands in the shortened or trimmed output."),
                "offset": count(0, "First line to read, counted from 0. Default 0."),
                "limit": count(1, "How many lines to read. Default: as many as fit one answer."),
                "column": count(0, "Byte of the first line to start at, to read on in a very long line. Default 0."),
            },
            "required": ["ref_id"],
            "additionalProperties": false,
        }),
    )
}

/// The definition of [`GREP`].
pub fn grep() -> ToolDefinition {
    ToolDefinition::new(
        GREP,
        GREP_DESCRIPTION,
        json!({
            "type": "object",
            "properties": {
                "pattern": text("What to look for."),
                "ref_id": text("Search this output only. Default: all outputs of the session."),
                "regex": {
                    "type": "boolean",
                    "description": "True if the pattern is a regular expression. Default false.",
                },
                "before": count(0, "Lines to show before each match. Default 0."),
                "after": count(0, "Lines to show after each match. Default 0."),
                "max": count(1, "The most matches to show. Default 50."),
                "skip": count(0, "How many matches to pass over, to go on where an answer ended. Default 0."),
            },
            "required": ["pattern"],
            "additionalProperties": false,
        }),
    )
}

/// Both definitions, in the order in which they are offered.
pub fn all() -> [ToolDefinition; 2] {
    [read(), grep()]
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn count(minimum: u64, description: &str) -> Value {
    json!({ "type": "integer", "minimum": minimum, "description": description })
}

impl ToolDefinition {
    /// A tool called `name`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            schema,
        }
    }

    /// The names of its arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flat_map(|names| names.keys().map(String::as_str))
    }

    /// As an entry of `tools` in a request of `dialect`.
    ///
    /// ```
    /// # use trimtab_engine::view::tools;
    /// # use trimtab_model::Dialect;
    /// let tool = tools::read().in_dialect(Dialect::Messages);
    /// assert_eq!(tool["name"], "tool_output_cache");
    /// assert_eq!(tool["input_schema"]["required"][0], "ref_id");
    /// ```
    pub fn in_dialect(&self, dialect: Dialect) -> Value {
        let Self {
            name,
            description,
            schema,
        } = self;
        match dialect {
            Dialect::Chat => json!({
                "type": "function",
                "function": { "name": name, "description": description, "parameters": schema },
            }),
            Dialect::Responses => json!({
                "type": "function",
                "name": name,
                "description": description,
                "parameters": schema,
                // Strict schemas must require every property, but these tools have optional ones.
                "strict": false,
            }),
            Dialect::Messages => json!({
                "name": name,
                "description": description,
                "input_schema": schema,
            }),
        }
    }

    /// As an entry of `tools/list` of an MCP server.
    pub fn in_mcp(&self) -> Value {
        let Self {
            name,
            description,
            schema,
        } = self;
        json!({
            "name": name,
            "description": description,
            "inputSchema": schema,
            "annotations": { "readOnlyHint": true, "idempotentHint": true, "openWorldHint": false },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dialect_carries_name_description_and_schema() {
        for tool in all() {
            let entries = Dialect::ALL.map(|dialect| tool.in_dialect(dialect));
            for entry in entries.iter().chain([&tool.in_mcp()]) {
                let function = entry.get("function").unwrap_or(entry);
                let schema = ["parameters", "input_schema", "inputSchema"]
                    .iter()
                    .find_map(|key| function.get(key))
                    .unwrap();
                assert_eq!(function["name"], tool.name);
                assert_eq!(function["description"], tool.description);
                assert_eq!(schema, &tool.schema);
            }
        }
    }

    #[test]
    fn required_arguments_are_described() {
        for tool in all() {
            for name in tool.schema["required"].as_array().unwrap() {
                let property = &tool.schema["properties"][name.as_str().unwrap()];
                assert!(property["description"].is_string(), "{name}");
            }
        }
    }
}
