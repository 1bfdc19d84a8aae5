//! Selects the shape of an output by its tool.

use globset::{GlobBuilder, GlobMatcher};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Shape, tools};

/// A shape for the tools that a glob matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolShape {
    /// Matched against the whole name of the tool.
    pub tool: String,
    /// The shape of its outputs.
    #[serde(flatten)]
    pub shape: Shape,
}

/// The shapes by tool, as in a config file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ViewPolicy {
    /// The shape for all other tools.
    pub default: Shape,
    /// Shapes for some tools; the first matching glob wins.
    pub tools: Vec<ToolShape>,
    /// Globs of tools whose outputs are never shortened. They win over `tools`.
    pub protected: Vec<String>,
}

/// A glob that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "tool glob `{glob}` cannot be read: {reason}\n\
     hint: `*` stands for any characters, as in `mcp__browser__*`"
)]
pub struct BadGlob {
    /// The glob.
    pub glob: String,
    /// What is wrong with it.
    pub reason: String,
}

/// Globs over tool names.
#[derive(Clone, Debug, Default)]
pub struct ToolGlobs(Vec<GlobMatcher>);

impl ToolGlobs {
    /// Parses the globs.
    ///
    /// ```
    /// # use trimtab_engine::view::policy::ToolGlobs;
    /// let globs = ToolGlobs::new(["read_*", "mcp__{git,fs}__*"]).unwrap();
    /// assert!(globs.matches("read_file") && globs.matches("mcp__fs__stat"));
    /// assert!(!globs.matches("bash"));
    /// assert!(ToolGlobs::new(["[a"]).is_err());
    /// ```
    pub fn new<S: AsRef<str>>(globs: impl IntoIterator<Item = S>) -> Result<Self, BadGlob> {
        let matchers = globs.into_iter().map(|glob| matcher(glob.as_ref()));
        matchers.collect::<Result<_, _>>().map(Self)
    }

    /// True if one of them matches `tool`.
    pub fn matches(&self, tool: &str) -> bool {
        self.0.iter().any(|glob| glob.is_match(tool))
    }
}

fn matcher(glob: &str) -> Result<GlobMatcher, BadGlob> {
    GlobBuilder::new(glob)
        // Tool names are not paths: `*` also matches a slash.
        .literal_separator(false)
        .build()
        .map(|glob| glob.compile_matcher())
        .map_err(|error| BadGlob {
            glob: glob.to_owned(),
            reason: error.kind().to_string(),
        })
}

/// A [`ViewPolicy`] with compiled globs.
#[derive(Clone, Debug, Default)]
pub struct CompiledViews {
    default: Shape,
    tools: Vec<(GlobMatcher, Shape)>,
    protected: ToolGlobs,
}

impl CompiledViews {
    /// Compiles the globs of `policy`.
    ///
    /// ```
    /// use trimtab_engine::view::policy::{ToolShape, ViewPolicy, CompiledViews};
    /// use trimtab_engine::view::{HeadLinesCut, PrefixCut, Shape};
    ///
    /// let policy = ViewPolicy {
    ///     default: Shape::HeadLines(HeadLinesCut::default()),
    ///     tools: vec![ToolShape { tool: "web_*".into(), shape: Shape::Prefix(PrefixCut::default()) }],
    ///     protected: vec!["manage_todo_list".into()],
    ///     ..ViewPolicy::default()
    /// };
    /// let views = CompiledViews::new(&policy).unwrap();
    /// assert_eq!(views.shape("web_fetch"), &Shape::Prefix(PrefixCut::default()));
    /// assert_eq!(views.shape("manage_todo_list"), &Shape::Whole);
    /// assert_eq!(views.shape("tool_output_cache"), &Shape::Whole);
    /// ```
    pub fn new(policy: &ViewPolicy) -> Result<Self, BadGlob> {
        let tools = policy
            .tools
            .iter()
            .map(|tool| Ok((matcher(&tool.tool)?, tool.shape.clone())));
        Ok(Self {
            default: policy.default.clone(),
            tools: tools.collect::<Result<_, _>>()?,
            protected: ToolGlobs::new(&policy.protected)?,
        })
    }

    /// The shape of the outputs of `tool`; an empty name means an unknown tool.
    pub fn shape(&self, tool: &str) -> &Shape {
        // Protection wins over a shape of its own, so that a broad glob cannot undo it.
        if self.protects(tool) {
            return &Shape::Whole;
        }
        let tool_shape = self.tools.iter().find(|(glob, _)| glob.is_match(tool));
        tool_shape.map_or(&self.default, |(_, shape)| shape)
    }

    /// True if the outputs of `tool` are never shortened: it is protected, or it is one of the two
    /// retrieval tools.
    pub fn protects(&self, tool: &str) -> bool {
        tools::is_retrieval(tool) || self.protected.matches(tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::{PrefixCut, StructureCut};

    #[test]
    fn a_policy_is_read_from_a_config_file_and_written_back() {
        let text = r#"{
            "default": { "shape": "structure", "cap": 9000 },
            "tools": [{ "tool": "web_*", "shape": "prefix", "chars": 100 }],
            "protected": ["todo"]
        }"#;
        let policy: ViewPolicy = serde_json::from_str(text).unwrap();
        let structure = StructureCut {
            cap: 9_000,
            ..StructureCut::default()
        };
        assert_eq!(policy.default, Shape::Structure(structure));
        let views = CompiledViews::new(&policy).unwrap();
        assert_eq!(
            views.shape("web_get"),
            &Shape::Prefix(PrefixCut { chars: 100 })
        );
        let written = serde_json::to_string(&policy).unwrap();
        assert_eq!(
            serde_json::from_str::<ViewPolicy>(&written).unwrap(),
            policy
        );
    }

    #[test]
    fn a_misspelt_setting_is_refused() {
        let text = r#"{ "default": { "shape": "prefix", "char": 100 } }"#;
        let error = serde_json::from_str::<ViewPolicy>(text).unwrap_err();
        assert!(error.to_string().contains("char"), "{error}");
    }

    #[test]
    fn the_retrieval_tools_are_never_cut() {
        let policy = ViewPolicy {
            default: Shape::Prefix(PrefixCut { chars: 1 }),
            tools: vec![ToolShape {
                tool: "*".to_owned(),
                shape: Shape::Prefix(PrefixCut { chars: 2 }),
            }],
            ..ViewPolicy::default()
        };
        let views = CompiledViews::new(&policy).unwrap();
        for tool in [tools::READ, tools::GREP, "mcp__trimtab__tool_output_cache"] {
            assert_eq!(views.shape(tool), &Shape::Whole);
        }
        assert_ne!(views.shape(""), &Shape::Whole);
    }
}
