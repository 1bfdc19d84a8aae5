//! What can go wrong between a provider and its client.

use serde::{Deserialize, Serialize};

/// Something that goes wrong with one answer.
///
/// `after` counts the events of a stream that get through before it happens; an answer that is
/// not streamed comes in eight pieces. It always happens, before the last of them at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Fault {
    /// The connection is reset before a byte of the answer.
    ResetBeforeHeaders,
    /// The connection is reset in the middle of the answer.
    ResetInBody {
        /// Events before it.
        after: usize,
    },
    /// The headers come late.
    LateHeaders {
        /// How late.
        ms: u64,
    },
    /// Nothing comes for a while in the middle of the answer, then the rest.
    Stall {
        /// Events before it.
        after: usize,
        /// How long.
        ms: u64,
    },
    /// The answer ends too early, as if it were whole.
    Cut {
        /// Events before it.
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
    /// The prompt is refused as too long, whatever its length.
    Overflow {
        /// The window that the error names, in tokens.
        window: u64,
    },
    /// An error as an event of the stream, which then ends. A plain 500 when not streamed.
    ErrorEvent {
        /// Events before it.
        after: usize,
    },
    /// Status 200, and a page for people.
    Html,
    /// A `content-length` that is wrong by so many bytes.
    ContentLength {
        /// What is added to the true length.
        off_by: i64,
    },
    /// The answer is compressed although nobody asked for it.
    Encoding {
        /// How.
        coding: Coding,
    },
    /// The answer comes in small pieces that ignore where events end.
    Drip {
        /// Bytes in each.
        bytes: usize,
        /// The wait between two.
        ms: u64,
    },
    /// The figures of the usage come twice.
    DuplicateUsage,
    /// Events and fields that nobody knows, and comments between the events.
    Unknown,
    /// Lines of the stream end with a carriage return and a line feed.
    Crlf,
}

/// How an answer is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Coding {
    /// `gzip`.
    Gzip,
    /// `gzip` under its old name.
    XGzip,
    /// `deflate`, with the zlib header as the standard has it.
    Deflate,
    /// The header says `gzip`, and the body is plain.
    FalseGzip,
}

/// Where in an answer the faults of the catalogue happen: at once, early, late.
const PLACES: [usize; 3] = [0, 2, 5];

impl Fault {
    /// True if the answer does not get through whole: the model has to be asked again.
    pub fn is_fatal(self) -> bool {
        !matches!(
            self,
            Self::LateHeaders { .. }
                | Self::Stall { .. }
                | Self::Drip { .. }
                | Self::Encoding {
                    coding: Coding::Gzip | Coding::XGzip | Coding::Deflate
                }
                | Self::DuplicateUsage
                | Self::Unknown
                | Self::Crlf
        )
    }

    /// One of each kind that is worth telling apart, with waits short enough for tests.
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
            Coding::Gzip,
            Coding::XGzip,
            Coding::Deflate,
            Coding::FalseGzip,
        ] {
            all.push(Self::Encoding { coding });
        }
        for (bytes, ms) in [(1, 0), (7, 0), (64, 1), (1000, 2)] {
            all.push(Self::Drip { bytes, ms });
        }
        all
    }
}
