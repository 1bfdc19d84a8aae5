//! Limits the answers of the two retrieval tools.

/// The limits of an answer. Answers of the retrieval tools are never cut afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerLimits {
    /// An answer stops before the line that would exceed this many bytes, but has at least one
    /// line.
    pub max_bytes: usize,
    /// A longer line is shown up to this many bytes, with the call that returns its next part.
    pub max_line_bytes: usize,
}

/// The minimum room for an answer in bytes, because less is of no use.
const LEAST_BYTES: usize = 1_024;

/// The maximum length of the line after an answer that stopped early: what is shown, and the call
/// that returns the rest.
pub(crate) const LONGEST_REST_LINE: usize = 256;

impl AnswerLimits {
    /// The limits of each of `calls` answers to one request, in a window with room for `tokens`.
    /// That many bytes take about a third of the room.
    ///
    /// ```
    /// # use trimtab_engine::view::retrieval::AnswerLimits;
    /// assert_eq!(AnswerLimits::for_room(200_000, 1), AnswerLimits::default());
    /// assert_eq!(AnswerLimits::for_room(24_000, 3).max_bytes, 8_000);
    /// ```
    pub fn for_room(tokens: u64, calls: usize) -> Self {
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
        Self::of_bytes(tokens / calls.max(1))
    }

    /// The limits of an answer of at most `bytes`, within the usual limits.
    pub fn of_bytes(bytes: usize) -> Self {
        let usual = Self::default();
        let max_bytes = bytes.clamp(LEAST_BYTES, usual.max_bytes);
        Self {
            max_bytes,
            // At least two lines must fit an answer.
            max_line_bytes: usual.max_line_bytes.min(max_bytes / 2),
        }
    }
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self {
            max_bytes: 51_200,
            max_line_bytes: 8_192,
        }
    }
}
