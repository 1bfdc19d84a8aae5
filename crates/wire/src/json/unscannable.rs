//! Bodies that cannot be scanned and are sent unchanged.

use thiserror::Error;

/// The body was not understood. The caller sends it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("body not understood at byte {offset}: {why}")]
pub struct Unscannable {
    /// The position in bytes from the start of the body.
    pub offset: usize,
    /// The reason.
    pub why: UnscannableReason,
}

/// The reasons why a body was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UnscannableReason {
    /// It ends in the middle of a value.
    #[error("it ends in the middle of a value")]
    Truncated,
    /// A byte that is invalid at this position.
    #[error("unexpected byte")]
    UnexpectedByte,
    /// An unescaped control character in a string.
    #[error("control character in a string")]
    ControlCharacter,
    /// An invalid escape.
    #[error("unknown escape")]
    BadEscape,
    /// An invalid number.
    #[error("malformed number")]
    BadNumber,
    /// A field name that is not valid text, for example with a lone surrogate.
    #[error("a field name that is no text")]
    BadKey,
    /// Bytes that are not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// Values nested deeper than parsers go.
    #[error("nested too deep")]
    TooDeep,
    /// More bytes than offsets can count.
    #[error("too long")]
    TooLong,
    /// So many tiny messages or parts that their spans would outweigh the body.
    #[error("too many tiny parts")]
    TooManyParts,
    /// Something follows the body's value.
    #[error("something follows the value")]
    TrailingBytes,
    /// The body is not an object.
    #[error("not an object")]
    NotAnObject,
    /// The list of messages is missing or not a list.
    #[error("no list of messages")]
    NoMessages,
    /// An element of the list of messages is not a message.
    #[error("not a message")]
    NotAMessage,
}
