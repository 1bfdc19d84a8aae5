//! The set of tools of an agent.

use std::sync::Arc;

use trimtab_model::Call;

use super::{
    ListFolder, ReadFile, SearchFiles, Shell, Tool, ToolDefinition, ToolOutcome, Workspace,
    WriteFile, arguments,
};

/// The set of tools of an agent, in the order in which the model sees them.
#[derive(Clone, Default)]
pub struct ToolSet(Vec<Arc<dyn Tool>>);

impl ToolSet {
    /// No tools.
    pub fn none() -> Self {
        Self::default()
    }

    /// Read file, write file, list, search and shell.
    pub fn standard() -> Self {
        Self::none()
            .with(ReadFile)
            .with(WriteFile)
            .with(ListFolder)
            .with(SearchFiles)
            .with(Shell::default())
    }

    /// Adds a tool; it replaces one with the same name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        let name = tool.definition().name;
        self.0.retain(|other| other.definition().name != name);
        self.0.push(Arc::new(tool));
        self
    }

    /// The tool called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.iter().find(|tool| tool.definition().name == name)
    }

    /// The definitions that the model sees.
    pub fn definitions(&self) -> Arc<[ToolDefinition]> {
        self.0.iter().map(|tool| tool.definition()).collect()
    }

    /// The names of the tools whose rounds no compaction may remove.
    pub fn protected(&self) -> Vec<String> {
        let protected = self.0.iter().filter(|tool| tool.is_protected());
        protected.map(|tool| tool.definition().name).collect()
    }

    /// Executes a call. Errors are part of the outcome.
    pub async fn call(&self, call: &Call, workspace: &Workspace) -> ToolOutcome {
        let Some(tool) = self.get(&call.name) else {
            let names: Vec<String> = self.0.iter().map(|tool| tool.definition().name).collect();
            return ToolOutcome::error(format!(
                "error: there is no tool `{}`\nhint: the tools are {}",
                call.name,
                names.join(", ")
            ));
        };
        match arguments::parse(&call.arguments) {
            Ok(arguments) => tool.call(&arguments, workspace).await,
            Err(why) => ToolOutcome::error(format!("error: {why}")),
        }
    }
}

impl std::fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = self.0.iter().map(|tool| tool.definition().name);
        f.debug_list().entries(names).finish()
    }
}
