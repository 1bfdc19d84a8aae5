//! The options of a chat, merged from flags, the resumed session and the settings.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::ChatArgs;
use crate::model::{DialectName, SCRIPTED};

/// The options of a chat. A session remembers them, so that resuming needs no flags.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ChatChoice {
    /// The model, or `scripted:FILE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) base_url: Option<String>,
    /// The dialect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) dialect: Option<DialectName>,
    /// The preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) preset: Option<String>,
    /// The window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) window: Option<u64>,
    /// The longest answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) max_output: Option<u64>,
    /// The workspace of the tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) workspace: Option<PathBuf>,
}

impl ChatChoice {
    /// The options given as flags.
    pub(super) fn of_flags(args: &ChatArgs) -> Self {
        Self {
            model: args.model.clone(),
            base_url: args.base_url.clone(),
            dialect: args.dialect,
            preset: args.preset.clone(),
            window: args.window,
            max_output: args.max_output,
            workspace: args.workspace.clone(),
        }
    }

    /// Fills unset options from `fallback`.
    pub(super) fn or(self, fallback: Self) -> Self {
        // The server of another model does not apply to this one.
        let is_other =
            self.model.is_some() && fallback.model.is_some() && self.model != fallback.model;
        let of_model = if is_other {
            Self::default()
        } else {
            fallback.clone()
        };
        Self {
            model: self.model.or(fallback.model),
            base_url: self.base_url.or(of_model.base_url),
            dialect: self.dialect.or(of_model.dialect),
            preset: self.preset.or(fallback.preset),
            window: self.window.or(of_model.window),
            max_output: self.max_output.or(of_model.max_output),
            workspace: self.workspace.or(fallback.workspace),
        }
    }

    /// Makes the path of a script absolute, because the chat may be resumed elsewhere.
    pub(super) fn absolute(mut self) -> Self {
        let file = self
            .model
            .as_deref()
            .and_then(|name| name.strip_prefix(SCRIPTED));
        if let Some(whole) = file.and_then(|file| std::path::absolute(file).ok()) {
            self.model = Some(format!("{SCRIPTED}{}", whole.display()));
        }
        self
    }

    /// The same options with another model.
    pub(super) fn with_model(self, name: &str) -> Self {
        let other = Self {
            model: Some(name.to_owned()),
            ..Self::default()
        };
        other.or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(model: &str, window: u64) -> ChatChoice {
        ChatChoice {
            model: Some(model.to_owned()),
            window: Some(window),
            preset: Some("refs".to_owned()),
            ..ChatChoice::default()
        }
    }

    #[test]
    fn unset_options_come_from_the_session() {
        let resumed = ChatChoice::default().or(choice("a", 1));
        assert_eq!(resumed, choice("a", 1));
        let wider = ChatChoice {
            window: Some(2),
            ..ChatChoice::default()
        };
        assert_eq!(wider.or(choice("a", 1)), choice("a", 2));
    }

    #[test]
    fn window_of_another_model_is_not_reused() {
        let other = choice("a", 1).with_model("b");
        assert_eq!(
            (other.window, other.preset.as_deref()),
            (None, Some("refs"))
        );
        assert_eq!(choice("a", 1).with_model("a").window, Some(1));
    }
}
