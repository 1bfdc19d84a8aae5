//! Where the replies come from.

use std::fmt;
use std::sync::Arc;

use super::ReceivedRequest;
use crate::script::{Script, ScriptedReply};

type Closure = dyn Fn(&ReceivedRequest) -> ScriptedReply + Send + Sync;

/// Where the replies come from.
///
/// An answer that was spoiled by a fault is given again when the model is asked again.
#[derive(Clone)]
pub struct ReplySource(ReplySourceKind);

#[derive(Clone)]
enum ReplySourceKind {
    One(Script),
    Keyed {
        by: ScriptSelector,
        scripts: Vec<(String, Script)>,
        other: Script,
    },
    Closure(Arc<Closure>),
}

#[derive(Clone)]
enum ScriptSelector {
    Header(String),
    FirstUser,
}

impl ReplySource {
    /// One script for all requests, in the order they come.
    pub fn script(script: Script) -> Self {
        Self(ReplySourceKind::One(script))
    }

    /// A script for each value of header `name`; each other value plays `other` for itself.
    pub fn by_header(
        name: impl Into<String>,
        scripts: impl IntoIterator<Item = (String, Script)>,
        other: Script,
    ) -> Self {
        let by = ScriptSelector::Header(name.into().to_ascii_lowercase());
        let scripts = scripts.into_iter().collect();
        Self(ReplySourceKind::Keyed { by, scripts, other })
    }

    /// A script for each conversation whose first user message contains a text; every other
    /// conversation plays `other` for itself.
    pub fn by_first_user(
        scripts: impl IntoIterator<Item = (String, Script)>,
        other: Script,
    ) -> Self {
        let scripts = scripts.into_iter().collect();
        let by = ScriptSelector::FirstUser;
        Self(ReplySourceKind::Keyed { by, scripts, other })
    }

    /// Whatever `reply` makes of a request.
    pub fn with(reply: impl Fn(&ReceivedRequest) -> ScriptedReply + Send + Sync + 'static) -> Self {
        Self(ReplySourceKind::Closure(Arc::new(reply)))
    }

    /// What tells the conversation of a request from others.
    pub(super) fn key(&self, received: &ReceivedRequest) -> String {
        match &self.0 {
            ReplySourceKind::One(_) => String::new(),
            ReplySourceKind::Keyed { by, .. } => by.key(received).to_owned(),
            ReplySourceKind::Closure(_) => received.first_user.clone(),
        }
    }

    /// The reply number `step` of conversation `key`, if it is known without the request.
    pub(super) fn known(&self, key: &str, step: usize) -> Option<ScriptedReply> {
        match &self.0 {
            ReplySourceKind::One(script) => Some(script.reply(step)),
            ReplySourceKind::Keyed { by, scripts, other } => {
                let mut fitting = scripts.iter().filter(|(name, _)| by.fits(name, key));
                let script = fitting.next().map_or(other, |(_, script)| script);
                Some(script.reply(step))
            }
            ReplySourceKind::Closure(_) => None,
        }
    }

    /// The reply that is made for a request.
    pub(super) fn made(&self, received: &ReceivedRequest) -> ScriptedReply {
        match &self.0 {
            ReplySourceKind::Closure(reply) => reply(received),
            _ => ScriptedReply::done(),
        }
    }
}

impl ScriptSelector {
    fn key<'a>(&self, received: &'a ReceivedRequest) -> &'a str {
        match self {
            Self::Header(name) => received.header(name).unwrap_or_default(),
            Self::FirstUser => &received.first_user,
        }
    }

    fn fits(&self, name: &str, key: &str) -> bool {
        match self {
            Self::Header(_) => name == key,
            Self::FirstUser => key.contains(name),
        }
    }
}

impl Default for ReplySource {
    fn default() -> Self {
        Self::script(Script::default())
    }
}

impl fmt::Debug for ReplySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            ReplySourceKind::One(_) => "Source::script",
            ReplySourceKind::Keyed {
                by: ScriptSelector::FirstUser,
                ..
            } => "Source::by_first_user",
            ReplySourceKind::Keyed { .. } => "Source::by_header",
            ReplySourceKind::Closure(_) => "Source::with",
        })
    }
}
