//! Outputs to be stored, and their metadata.

use std::fmt;
use std::io::Read;

use trimtab_model::Ref;

use crate::SessionId;

/// The default media type.
const PLAIN_TEXT: &str = "text/plain";

/// An output to be stored.
///
/// ```
/// # use trimtab_store::Put;
/// let text = Put::new("call_1", b"a.txt\nb.txt").tool("list");
/// let image = Put::new("call_2", &[0x89, 0x50])
///     .media_type("image/png")
///     .text("a red square");
/// ```
pub struct Put<'a> {
    pub(crate) call: &'a str,
    pub(crate) bytes: PutInput<'a>,
    pub(crate) tool: &'a str,
    pub(crate) media_type: &'a str,
    pub(crate) text: Option<&'a str>,
}

/// The source of an output's bytes.
pub(crate) enum PutInput<'a> {
    Slice(&'a [u8]),
    Reader(&'a mut dyn Read),
}

impl<'a> Put<'a> {
    /// The output of `call`, from memory.
    pub fn new(call: &'a str, bytes: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self::from_input(call, PutInput::Slice(bytes.as_ref()))
    }

    /// The output of `call`, streamed from `reader`.
    pub fn from_reader(call: &'a str, reader: &'a mut dyn Read) -> Self {
        Self::from_input(call, PutInput::Reader(reader))
    }

    fn from_input(call: &'a str, bytes: PutInput<'a>) -> Self {
        Self {
            call,
            bytes,
            tool: "",
            media_type: PLAIN_TEXT,
            text: None,
        }
    }

    /// Sets the name of the tool.
    #[must_use]
    pub fn tool(mut self, tool: &'a str) -> Self {
        self.tool = tool;
        self
    }

    /// Sets the media type; the default is `text/plain`.
    #[must_use]
    pub fn media_type(mut self, media_type: &'a str) -> Self {
        self.media_type = media_type;
        self
    }

    /// Adds a text projection of an image or a document, which can be read by lines and searched.
    #[must_use]
    pub fn text(mut self, text: &'a str) -> Self {
        self.text = Some(text);
        self
    }

    pub(crate) fn labels(&self) -> OutputLabels {
        OutputLabels {
            call: self.call.to_owned(),
            tool: self.tool.to_owned(),
            media_type: self.media_type.to_owned(),
        }
    }
}

impl fmt::Debug for Put<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Put")
            .field("call", &self.call)
            .field("tool", &self.tool)
            .field("media_type", &self.media_type)
            .finish_non_exhaustive()
    }
}

/// The caller's labels of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLabels {
    /// The call that it answers.
    pub call: String,
    /// The name of the tool; may be empty.
    pub tool: String,
    /// The media type.
    pub media_type: String,
}

/// The metadata of a stored output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputMetadata {
    /// Its ref.
    pub reference: Ref,
    /// The session that holds it: the requested one, or a parent.
    pub session: SessionId,
    /// The labels that the caller gave it.
    pub labels: OutputLabels,
    /// The original size.
    pub byte_size: u64,
    /// Size as stored.
    pub stored_size: u64,
    /// The number of lines of its text projection, if it has one, else of its bytes.
    pub line_count: u64,
    /// True if it has a text projection.
    pub has_text: bool,
    /// The time of storage, in milliseconds since 1970.
    pub created: u64,
}

/// The form in which to read an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputForm {
    /// The original bytes.
    Whole,
    /// The text projection if there is one, else the bytes.
    Text,
}

/// A plain file with an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpilledFile {
    /// Its path, inside the store's folder.
    pub path: std::path::PathBuf,
    /// SHA-256 of its bytes in hexadecimal.
    pub sha256: String,
}
