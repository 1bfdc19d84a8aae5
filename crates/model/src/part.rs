//! The pieces of a message.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{Extra, RawJson, Ref, work};

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(Text),
    /// What the model thought before it answered.
    Reasoning(Reasoning),
    /// An image, a document, a sound.
    Media(Media),
    /// The model asks for a tool.
    Call(Call),
    /// What the tool gave back.
    Output(Output),
    /// A part of a type that we do not know; carried along untouched.
    Opaque(Opaque),
}

/// Plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Fields we do not know, such as cache markers and annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Extra,
}

/// What the model thought. Never edited: a provider may have signed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The readable thought; may be empty when the provider keeps it to itself.
    pub text: String,
    /// The provider's signature, or its encrypted form of the thought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// Fields we do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Extra,
}

impl Reasoning {
    /// True if the provider signed or encrypted it, so that it is only valid unchanged.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }
}

/// What a [`Media`] part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MediaKind {
    /// A picture.
    Image,
    /// A document, such as a PDF.
    Document,
    /// Sound.
    Audio,
}

impl MediaKind {
    /// What it is, in a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Document => "document",
            Self::Audio => "audio",
        }
    }
}

/// An image, a document or a sound, as the client wrote it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// What it is.
    pub kind: MediaKind,
    /// The whole part as it came.
    pub raw: RawJson,
}

/// The model asks for a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Names the call; its output carries the same id. Unique within a round only.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them: usually JSON, but a model may write anything.
    pub arguments: String,
    /// Fields we do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Extra,
}

impl Call {
    /// A call of tool `name`.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
            extra: Extra::new(),
        }
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The id of the call it answers.
    pub call_id: String,
    /// The tool's name, where the client says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Text, media and opaque parts.
    pub content: Vec<Part>,
    /// True if the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// Where the whole output is stored, once it is.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub stored: Option<Ref>,
    /// True if `content` is a view that leaves something out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trimmed: bool,
    /// Fields we do not know.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Extra,
}

impl Output {
    /// An output that is plain text.
    pub fn new(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            call_id: call_id.into(),
            tool: None,
            content: vec![Part::text(text)],
            is_error: false,
            stored: None,
            trimmed: false,
            extra: Extra::new(),
        }
    }

    /// The output as text: text parts word for word, everything else as a short tag.
    ///
    /// ```
    /// # use trimtab_model::Output;
    /// assert_eq!(Output::new("c1", "done").text(), "done");
    /// ```
    pub fn text(&self) -> Cow<'_, str> {
        project(&self.content)
    }
}

/// A part whose type we do not know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// The type it gives itself; empty if it has none.
    pub type_name: String,
    /// The whole part as it came.
    pub raw: RawJson,
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            extra: Extra::new(),
        })
    }

    /// An unsigned thought.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning(Reasoning {
            text: text.into(),
            seal: None,
            extra: Extra::new(),
        })
    }

    /// The call, if it is one.
    pub fn as_call(&self) -> Option<&Call> {
        if let Self::Call(call) = self {
            Some(call)
        } else {
            None
        }
    }

    /// The output, if it is one.
    pub fn as_output(&self) -> Option<&Output> {
        if let Self::Output(output) = self {
            Some(output)
        } else {
            None
        }
    }

    /// The text, if it is a text part.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self {
            Some(&text.text)
        } else {
            None
        }
    }

    /// True for a text part with nothing in it, which providers refuse or ignore.
    pub fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text) if text.text.trim().is_empty())
    }
}

/// The text projection of some parts: what search, views and byte-counting estimates see.
///
/// Text word for word, outputs by their own projection, media and unknown parts as a short
/// tag. Calls and reasoning are not text of the message and give nothing.
pub(crate) fn project(parts: &[Part]) -> Cow<'_, str> {
    work::step(parts.len());
    match parts {
        [] => Cow::Borrowed(""),
        [only] => projected(only),
        many => Cow::Owned(many.iter().map(projected).collect()),
    }
}

fn projected(part: &Part) -> Cow<'_, str> {
    match part {
        Part::Text(text) => {
            work::step_text(&text.text);
            Cow::Borrowed(&text.text)
        }
        Part::Reasoning(_) | Part::Call(_) => Cow::Borrowed(""),
        Part::Media(media) => Cow::Borrowed(match media.kind {
            MediaKind::Image => "[image]",
            MediaKind::Document => "[document]",
            MediaKind::Audio => "[audio]",
        }),
        Part::Output(output) => output.text(),
        Part::Opaque(opaque) if opaque.type_name.is_empty() => Cow::Borrowed("[content]"),
        Part::Opaque(opaque) => Cow::Owned(format!("[other:{}]", opaque.type_name)),
    }
}
