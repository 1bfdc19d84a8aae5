//! Bodies that cannot be scanned and are sent unchanged.

use std::fmt;

/// The body was not understood. The caller sends it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unscannable {
    /// The position in bytes from the start of the body.
    pub offset: usize,
    /// The reason.
    pub why: UnscannableReason,
}

/// The reasons why a body was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnscannableReason {
    /// It ends in the middle of a value.
    Truncated,
    /// A byte that is invalid at this position.
    UnexpectedByte,
    /// An unescaped control character in a string.
    ControlCharacter,
    /// An invalid escape.
    BadEscape,
    /// An invalid number.
    BadNumber,
    /// A field name that is not valid text, for example with a lone surrogate.
    BadKey,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// Values nested deeper than parsers go.
    TooDeep,
    /// More bytes than offsets can count.
    TooLong,
    /// So many tiny messages or parts that their spans would outweigh the body.
    TooManyParts,
    /// Something follows the body's value.
    TrailingBytes,
    /// The body is not an object.
    NotAnObject,
    /// The list of messages is missing or not a list.
    NoMessages,
    /// An element of the list of messages is not a message.
    NotAMessage,
}

impl UnscannableReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Truncated => "it ends in the middle of a value",
            Self::UnexpectedByte => "unexpected byte",
            Self::ControlCharacter => "control character in a string",
            Self::BadEscape => "unknown escape",
            Self::BadNumber => "malformed number",
            Self::BadKey => "a field name that is no text",
            Self::NotUtf8 => "not UTF-8",
            Self::TooDeep => "nested too deep",
            Self::TooLong => "too long",
            Self::TooManyParts => "too many tiny parts",
            Self::TrailingBytes => "something follows the value",
            Self::NotAnObject => "not an object",
            Self::NoMessages => "no list of messages",
            Self::NotAMessage => "not a message",
        }
    }
}

impl fmt::Display for Unscannable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { offset, why } = self;
        write!(f, "body not understood at byte {offset}: {}", why.as_str())
    }
}

impl std::error::Error for Unscannable {}
