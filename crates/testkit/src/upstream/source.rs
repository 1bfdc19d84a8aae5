//! Where the replies come from.

use std::fmt;
use std::sync::Arc;

use super::Received;
use crate::script::{Reply, Script};

type Closure = dyn Fn(&Received) -> Reply + Send + Sync;

/// Where the replies come from.
///
/// An answer that was spoiled by a fault is given again when the model is asked again.
#[derive(Clone)]
pub struct Source(Kind);

#[derive(Clone)]
enum Kind {
    One(Script),
    Keyed {
        by: By,
        scripts: Vec<(String, Script)>,
        other: Script,
    },
    Closure(Arc<Closure>),
}

#[derive(Clone)]
enum By {
    Header(String),
    FirstUser,
}

impl Source {
    /// One script for all requests, in the order they come.
    pub fn script(script: Script) -> Self {
        Self(Kind::One(script))
    }

    /// A script for each value of header `name`; each other value plays `other` for itself.
    pub fn by_header(
        name: impl Into<String>,
        scripts: impl IntoIterator<Item = (String, Script)>,
        other: Script,
    ) -> Self {
        let by = By::Header(name.into().to_ascii_lowercase());
        let scripts = scripts.into_iter().collect();
        Self(Kind::Keyed { by, scripts, other })
    }

    /// A script for each conversation whose first user message contains a text; every other
    /// conversation plays `other` for itself.
    pub fn by_first_user(
        scripts: impl IntoIterator<Item = (String, Script)>,
        other: Script,
    ) -> Self {
        let scripts = scripts.into_iter().collect();
        let by = By::FirstUser;
        Self(Kind::Keyed { by, scripts, other })
    }

    /// Whatever `reply` makes of a request.
    pub fn with(reply: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        Self(Kind::Closure(Arc::new(reply)))
    }

    /// What tells the conversation of a request from others.
    pub(super) fn key(&self, received: &Received) -> String {
        match &self.0 {
            Kind::One(_) => String::new(),
            Kind::Keyed { by, .. } => by.key(received).to_owned(),
            Kind::Closure(_) => received.first_user.clone(),
        }
    }

    /// The reply number `step` of conversation `key`, if it is known without the request.
    pub(super) fn known(&self, key: &str, step: usize) -> Option<Reply> {
        match &self.0 {
            Kind::One(script) => Some(script.reply(step)),
            Kind::Keyed { by, scripts, other } => {
                let mut fitting = scripts.iter().filter(|(name, _)| by.fits(name, key));
                let script = fitting.next().map_or(other, |(_, script)| script);
                Some(script.reply(step))
            }
            Kind::Closure(_) => None,
        }
    }

    /// The reply that is made for a request.
    pub(super) fn made(&self, received: &Received) -> Reply {
        match &self.0 {
            Kind::Closure(reply) => reply(received),
            _ => Reply::done(),
        }
    }
}

impl By {
    fn key<'a>(&self, received: &'a Received) -> &'a str {
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

impl Default for Source {
    fn default() -> Self {
        Self::script(Script::default())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Kind::One(_) => "Source::script",
            Kind::Keyed {
                by: By::FirstUser, ..
            } => "Source::by_first_user",
            Kind::Keyed { .. } => "Source::by_header",
            Kind::Closure(_) => "Source::with",
        })
    }
}
