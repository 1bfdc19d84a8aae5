//! Request bodies of the three dialects, spelled in as many ways as JSON allows.
//!
//! The writers here share no code with the library: they are what it is held against.

mod json;
mod write;

use proptest::collection::vec;
use proptest::prelude::*;
use trimtab_model::Dialect;

use crate::history::hostile_text;
pub use json::{GeneratedJson, JsonStyle};

/// One message of a generated conversation that every provider accepts.
#[derive(Clone, Debug)]
pub enum GeneratedMessage {
    /// The user speaks.
    User {
        /// The texts, at least one of them not blank.
        texts: Vec<String>,
        /// True if an image comes with them.
        image: bool,
        /// True if the last text carries a cache marker.
        marked: bool,
    },
    /// The model answers.
    Model {
        /// The thought: whether it is sealed.
        thought: Option<bool>,
        /// What it says.
        text: Option<String>,
        /// What its calls are answered with.
        outputs: Vec<GeneratedOutput>,
        /// What the user says together with the outputs.
        aside: Option<String>,
    },
}

/// What a call is answered with.
#[derive(Clone, Debug)]
pub struct GeneratedOutput {
    /// The text.
    pub text: String,
    /// True if it is spelled as a list of parts.
    pub list: bool,
    /// True if the tool failed.
    pub error: bool,
    /// True if it carries a cache marker.
    pub marked: bool,
}

/// A generated conversation.
#[derive(Clone, Debug)]
pub struct GeneratedConversation {
    /// What the system says.
    pub system: Option<String>,
    /// True if the system speaks in a list of parts where the dialect has that.
    pub system_list: bool,
    /// The messages.
    pub said: Vec<GeneratedMessage>,
}

/// A conversation that every provider accepts, of up to `max` messages.
pub fn talk(max: usize) -> impl Strategy<Value = GeneratedConversation> {
    let said = prop_oneof![2 => user(), 3 => model()];
    (
        proptest::option::of(text()),
        any::<bool>(),
        user(),
        vec(said, 0..max),
    )
        .prop_map(|(system, system_list, first, mut said)| {
            said.insert(0, first);
            let mut markers = 4;
            for said in &mut said {
                said.keep_markers(&mut markers);
            }
            GeneratedConversation {
                system,
                system_list,
                said,
            }
        })
}

impl GeneratedMessage {
    /// Takes markers away once there are too many for a provider.
    fn keep_markers(&mut self, left: &mut usize) {
        let mut keep = |marked: &mut bool| {
            *marked &= *left > 0;
            *left -= usize::from(*marked);
        };
        match self {
            Self::User { marked, .. } => keep(marked),
            Self::Model { outputs, .. } => {
                for output in outputs {
                    keep(&mut output.marked);
                }
            }
        }
    }
}

fn text() -> impl Strategy<Value = String> {
    hostile_text().prop_map(|text| {
        if text.trim().is_empty() {
            "said".to_owned()
        } else {
            text
        }
    })
}

fn user() -> impl Strategy<Value = GeneratedMessage> {
    (
        vec(text(), 1..3),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(texts, image, marked)| GeneratedMessage::User {
            texts,
            image,
            marked,
        })
}

fn model() -> impl Strategy<Value = GeneratedMessage> {
    let thought = proptest::option::of(any::<bool>());
    let aside = proptest::option::weighted(0.2, text());
    (
        thought,
        proptest::option::of(text()),
        vec(answer(), 0..4),
        aside,
    )
        .prop_map(|(thought, said, outputs, aside)| GeneratedMessage::Model {
            thought,
            text: if outputs.is_empty() {
                said.or_else(|| Some("answer".to_owned()))
            } else {
                said
            },
            aside: aside.filter(|_| !outputs.is_empty()),
            outputs,
        })
}

fn answer() -> impl Strategy<Value = GeneratedOutput> {
    let seldom = || prop::bool::weighted(0.2);
    (text(), any::<bool>(), seldom(), seldom()).prop_map(|(text, list, error, marked)| {
        GeneratedOutput {
            text,
            list,
            error,
            marked,
        }
    })
}

impl GeneratedConversation {
    /// The body of a request of `dialect`, spelled in `style`.
    pub fn body(&self, dialect: Dialect, style: JsonStyle) -> String {
        let node = match dialect {
            Dialect::Chat => write::chat(self),
            Dialect::Messages => write::messages(self),
            Dialect::Responses => write::responses(self),
        };
        style.spell(&node)
    }
}
