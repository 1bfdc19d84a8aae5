//! What a model is told about a tool.

use serde_json::{Value, json};
use trimtab_engine::view::tools as retrieval;
use trimtab_model::Dialect;

/// What a model is told about a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// What it does and when to use it.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Value,
}

impl Definition {
    /// A tool called `name`.
    pub fn new(name: impl Into<String>, description: impl Into<String>, schema: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            schema,
        }
    }

    /// As an entry of `tools` in a request of `dialect`.
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
                // Strict schemas must require every property; tools have optional ones.
                "strict": false,
            }),
            Dialect::Messages => json!({
                "name": name,
                "description": description,
                "input_schema": schema,
            }),
        }
    }
}

impl From<retrieval::Definition> for Definition {
    fn from(tool: retrieval::Definition) -> Self {
        Self::new(tool.name, tool.description, tool.schema)
    }
}
