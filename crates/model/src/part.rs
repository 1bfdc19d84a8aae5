//! The parts of a message.
//!
//! A part keeps everything that its dialect wrote, including unknown fields, so that writing it
//! back loses nothing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::{ExtraFields, RawJson, Ref, Treatment, treatment, work};

/// One piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(Text),
    /// The model's reasoning before its answer.
    Reasoning(Reasoning),
    /// An image, a document or a sound.
    Media(Media),
    /// A tool call.
    Call(Call),
    /// The output of a tool.
    Output(Output),
    /// A part of unknown type, kept unchanged.
    Opaque(Opaque),
}

/// Plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// The text.
    pub text: String,
    /// Unknown fields, such as cache markers and annotations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: ExtraFields,
}

/// The model's reasoning. Never edited, because a provider may have signed it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reasoning {
    /// The readable reasoning; may be empty if the provider hides it.
    pub text: String,
    /// The provider's signature, or its encrypted form of the reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seal: Option<String>,
    /// Unknown fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: ExtraFields,
}

impl Reasoning {
    /// True if the provider signed or encrypted it, so that it is valid only unchanged.
    pub fn is_sealed(&self) -> bool {
        self.seal.is_some()
    }
}

/// The kind of a [`Media`] part.
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
    /// The name of the kind.
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
    /// Its kind.
    pub kind: MediaKind,
    /// The original part.
    pub raw: RawJson,
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The id of the call, which its output repeats. Unique within a round only.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them, usually but not always JSON.
    pub arguments: String,
    /// Unknown fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: ExtraFields,
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
            extra: ExtraFields::new(),
        }
    }
}

/// The output of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The id of the call that it answers.
    pub call_id: String,
    /// The name of the tool, if the client sends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Text, media and opaque parts.
    pub content: Vec<Part>,
    /// True if the tool failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The ref of the full output, once it is stored.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    pub stored: Option<Ref>,
    /// True if `content` is a view that omits something.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trimmed: bool,
    /// Unknown fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: ExtraFields,
}

impl Output {
    /// A plain-text output.
    pub fn new(call_id: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            call_id: call_id.into(),
            content: vec![Part::text(text)],
            ..Self::default()
        }
    }

    /// The same output with other content.
    #[must_use]
    pub fn with_content(&self, content: Vec<Part>) -> Self {
        Self {
            call_id: self.call_id.clone(),
            tool: self.tool.clone(),
            content,
            is_error: self.is_error,
            stored: self.stored.clone(),
            trimmed: self.trimmed,
            extra: self.extra.clone(),
        }
    }

    /// The output as text: text parts verbatim, everything else as a short tag.
    ///
    /// ```
    /// # use trimtab_model::Output;
    /// assert_eq!(Output::new("c1", "done").text(), "done");
    /// ```
    pub fn text(&self) -> Cow<'_, str> {
        project(&self.content)
    }
}

/// A part of unknown type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opaque {
    /// Its type name; may be empty.
    pub type_name: String,
    /// The original part.
    pub raw: RawJson,
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(Text {
            text: text.into(),
            extra: ExtraFields::new(),
        })
    }

    /// Unsigned reasoning.
    pub fn reasoning(text: impl Into<String>) -> Self {
        Self::Reasoning(Reasoning {
            text: text.into(),
            seal: None,
            extra: ExtraFields::new(),
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

    /// True if it has this treatment, or a part of its content if it is an output.
    pub fn has(&self, wanted: Treatment) -> bool {
        match self {
            Self::Opaque(opaque) => treatment(&opaque.type_name) == wanted,
            Self::Output(output) => output.content.iter().any(|part| part.has(wanted)),
            _ => false,
        }
    }

    /// True for an empty text part, which providers reject or ignore.
    pub fn is_blank(&self) -> bool {
        matches!(self, Self::Text(text) if text.text.trim().is_empty())
    }
}

/// The text projection of some parts, which search, views and byte-counting estimates use.
///
/// Text is verbatim, outputs use their own projection, and media and unknown parts become short
/// tags. Calls and reasoning are not text of the message and are omitted.
pub(crate) fn project(parts: &[Part]) -> Cow<'_, str> {
    work::step(parts.len());
    match parts {
        [] => Cow::Borrowed(""),
        // The usual message has one part. Borrowing it avoids a copy of what can be megabytes of
        // output.
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
