//! Faults between a provider and its client.

use serde::{Deserialize, Serialize};

/// A fault of one answer.
///
/// `after` is the number of stream events that arrive before the fault; an answer that is not
/// streamed arrives in eight pieces. The fault always happens, at the latest before the last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ScriptedFault {
    /// The connection is reset before the answer starts.
    ResetBeforeHeaders,
    /// The connection is reset in the middle of the answer.
    ResetInBody {
        /// Events before the fault.
        after: usize,
    },
    /// The headers arrive late.
    LateHeaders {
        /// The delay.
        ms: u64,
    },
    /// The answer pauses, then continues.
    Stall {
        /// Events before the fault.
        after: usize,
        /// The duration.
        ms: u64,
    },
    /// The answer ends early, as if it were complete.
    Cut {
        /// Events before the fault.
        after: usize,
    },
    /// An error status instead of an answer.
    Status {
        /// The status, such as 429 or 529.
        code: u16,
        /// The `retry-after` header, in seconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u64>,
    },
    /// The prompt is rejected as too long, whatever its length.
    Overflow {
        /// The window in the error, in tokens.
        window: u64,
    },
    /// An error event, then the end of the stream. Status 500 if not streamed.
    ErrorEvent {
        /// Events before the fault.
        after: usize,
    },
    /// Status 200 with an HTML page.
    Html,
    /// A wrong `content-length`.
    ContentLength {
        /// The number added to the true length.
        off_by: i64,
    },
    /// The answer is compressed although the client did not accept it.
    Encoding {
        /// The coding.
        coding: ContentCoding,
    },
    /// The answer arrives in small pieces that do not align with events.
    Drip {
        /// Bytes per piece.
        bytes: usize,
        /// The delay between two pieces.
        ms: u64,
    },
    /// The usage is sent twice.
    DuplicateUsage,
    /// Unknown events and fields, and comments between the events.
    Unknown,
    /// Lines of the stream end with CR LF.
    Crlf,
}

/// The encoding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentCoding {
    /// `gzip`.
    Gzip,
    /// `gzip` under its old name.
    XGzip,
    /// `deflate`, with the zlib header of the standard.
    Deflate,
    /// The header says `gzip`, but the body is plain.
    FalseGzip,
}

/// The positions of catalogue faults in an answer: at once, early, late.
const PLACES: [usize; 3] = [0, 2, 5];

impl ScriptedFault {
    /// True if the answer does not arrive completely, so that the request must be repeated.
    pub fn is_fatal(self) -> bool {
        !matches!(
            self,
            Self::LateHeaders { .. }
                | Self::Stall { .. }
                | Self::Drip { .. }
                | Self::Encoding {
                    coding: ContentCoding::Gzip | ContentCoding::XGzip | ContentCoding::Deflate
                }
                | Self::DuplicateUsage
                | Self::Unknown
                | Self::Crlf
        )
    }

    /// One fault of each relevant kind, with delays short enough for tests.
    pub fn catalogue() -> Vec<Self> {
        let mut all = vec![
            Self::ResetBeforeHeaders,
            Self::LateHeaders { ms: 30 },
            Self::Html,
            Self::DuplicateUsage,
            Self::Unknown,
            Self::Crlf,
        ];
        for after in PLACES {
            all.push(Self::ResetInBody { after });
            all.push(Self::Stall { after, ms: 30 });
            all.push(Self::Cut { after });
            all.push(Self::ErrorEvent { after });
        }
        for code in [401, 403, 404, 408, 413, 429, 500, 502, 503, 504, 529] {
            let retry_after = None;
            all.push(Self::Status { code, retry_after });
        }
        for code in [429, 503, 529] {
            let retry_after = Some(0);
            all.push(Self::Status { code, retry_after });
        }
        for off_by in [-40, -1, 1, 1000] {
            all.push(Self::ContentLength { off_by });
        }
        for coding in [
            ContentCoding::Gzip,
            ContentCoding::XGzip,
            ContentCoding::Deflate,
            ContentCoding::FalseGzip,
        ] {
            all.push(Self::Encoding { coding });
        }
        for (bytes, ms) in [(1, 0), (7, 0), (64, 1), (1000, 2)] {
            all.push(Self::Drip { bytes, ms });
        }
        all
    }
}
