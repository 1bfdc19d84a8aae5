//! What goes into a store, and what is known of it afterwards.

use std::fmt;
use std::io::Read;

use trimtab_model::Ref;

use crate::SessionId;

/// Media type of an output that does not say what it is.
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
    pub(crate) bytes: Input<'a>,
    pub(crate) tool: &'a str,
    pub(crate) media_type: &'a str,
    pub(crate) text: Option<&'a str>,
}

/// Where the bytes of an output come from.
pub(crate) enum Input<'a> {
    Slice(&'a [u8]),
    Reader(&'a mut dyn Read),
}

impl<'a> Put<'a> {
    /// The output of `call`, all in memory.
    pub fn new(call: &'a str, bytes: &'a (impl AsRef<[u8]> + ?Sized)) -> Self {
        Self::from_input(call, Input::Slice(bytes.as_ref()))
    }

    /// The output of `call`, read from `reader` and never held in memory as a whole.
    pub fn from_reader(call: &'a str, reader: &'a mut dyn Read) -> Self {
        Self::from_input(call, Input::Reader(reader))
    }

    fn from_input(call: &'a str, bytes: Input<'a>) -> Self {
        Self {
            call,
            bytes,
            tool: "",
            media_type: PLAIN_TEXT,
            text: None,
        }
    }

    /// Names the tool that gave it.
    #[must_use]
    pub fn tool(mut self, tool: &'a str) -> Self {
        self.tool = tool;
        self
    }

    /// Says what it is; `text/plain` otherwise.
    #[must_use]
    pub fn media_type(mut self, media_type: &'a str) -> Self {
        self.media_type = media_type;
        self
    }

    /// Keeps `text` beside an image or a document: what is read by lines and searched.
    #[must_use]
    pub fn text(mut self, text: &'a str) -> Self {
        self.text = Some(text);
        self
    }

    pub(crate) fn labels(&self) -> Labels {
        Labels {
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

/// What a caller says of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labels {
    /// The call it answers.
    pub call: String,
    /// The tool that gave it; empty if nobody said.
    pub tool: String,
    /// What it is.
    pub media_type: String,
}

/// What is known of a stored output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Its ref, as `put` gave it.
    pub reference: Ref,
    /// The session that holds it: the one asked, or one above it.
    pub session: SessionId,
    /// What the caller said of it.
    pub labels: Labels,
    /// Size of the bytes as they came.
    pub byte_size: u64,
    /// Size as stored.
    pub stored_size: u64,
    /// Lines of its text: of the projection, if there is one.
    pub line_count: u64,
    /// True if a text projection is kept beside it.
    pub has_text: bool,
    /// When it was stored, in milliseconds since 1970.
    pub created: u64,
}

/// Which form of an output to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The bytes as they came.
    Whole,
    /// The text projection if there is one, else the bytes.
    Text,
}

/// A plain file that holds an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spilled {
    /// Where it is: inside the store's own folder.
    pub path: std::path::PathBuf,
    /// SHA-256 of its bytes in hexadecimal.
    pub sha256: String,
}
