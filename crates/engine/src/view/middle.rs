//! Keeps a share from the start and the rest from the end, with a mark in between that says how
//! much is missing (design `checkpoint`).

use std::borrow::Cow;
use std::num::NonZeroUsize;

use serde::{Deserialize, Serialize};

use super::figures::{first_bytes, first_chars, last_bytes};

/// The unit of the cap of a [`MiddleCut`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CapUnit {
    /// Bytes of UTF-8; the marker counts the missing chars.
    Bytes,
    /// Tokens, estimated from the chars, rounded up.
    TokensByChars,
    /// Tokens, estimated from the bytes, rounded up.
    TokensByBytes,
}

/// Whether the view starts with `Total output lines: N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LineCountHeader {
    /// Never.
    Never,
    /// If the output has more than one line, where a final newline starts one more line.
    Several,
    /// Always; a final newline starts no further line.
    Always,
}

/// Settings of the middle cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MiddleCut {
    /// The maximum size of an output; none to never cut.
    pub max: Option<u64>,
    /// The unit of `max`.
    pub unit: CapUnit,
    /// The cap in percent of `max`, with a margin for what serialising adds.
    pub buffer_percent: u64,
    /// The chars or bytes per token.
    pub per_token: NonZeroUsize,
    /// The share of the start in the kept text, in percent.
    pub head_percent: u8,
    /// Whether the view starts with the number of lines.
    pub header: LineCountHeader,
}

impl Default for MiddleCut {
    fn default() -> Self {
        Self {
            max: Some(5_000),
            unit: CapUnit::TokensByChars,
            buffer_percent: 120,
            per_token: PER_TOKEN,
            head_percent: HALF,
            header: LineCountHeader::Several,
        }
    }
}

/// The default share of the start, in percent.
const HALF: u8 = 50;
/// The default of chars or bytes per token.
const PER_TOKEN: NonZeroUsize = match NonZeroUsize::new(4) {
    Some(four) => four,
    None => NonZeroUsize::MIN,
};

impl MiddleCut {
    /// The cut by tokens with which Codex records an output: no buffer, no header.
    pub fn codex_tokens(max: u64) -> Self {
        Self {
            max: Some(max),
            unit: CapUnit::TokensByBytes,
            buffer_percent: 100,
            per_token: PER_TOKEN,
            head_percent: HALF,
            header: LineCountHeader::Never,
        }
    }

    /// The size of `text` in the unit of this cut.
    ///
    /// ```
    /// # use trimtab_engine::view::MiddleCut;
    /// assert_eq!(MiddleCut::default().measure("ééééé"), 2);
    /// assert_eq!(MiddleCut::codex_tokens(5).measure("ééééé"), 3);
    /// ```
    pub fn measure(&self, text: &str) -> u64 {
        let measured = match self.unit {
            CapUnit::Bytes => text.len(),
            CapUnit::TokensByChars => text.chars().count().div_ceil(self.per_token.get()),
            CapUnit::TokensByBytes => text.len().div_ceil(self.per_token.get()),
        };
        measured as u64
    }

    /// The cap: `max` with its buffer, rounded up.
    pub fn cap(&self) -> Option<u64> {
        let max = self.max?;
        Some(max.saturating_mul(self.buffer_percent).div_ceil(100))
    }

    /// The view of `text`: the same bytes if it does not exceed the cap. `line` follows the marker.
    pub(super) fn view<'a>(&self, text: &'a str, line: Option<&str>) -> Cow<'a, str> {
        let measured = self.measure(text);
        let Some(cap) = self.cap().filter(|cap| measured > *cap) else {
            return Cow::Borrowed(text);
        };
        let (left, right) = self.halves(text, usize::try_from(cap).unwrap_or(usize::MAX));
        let missing = self.missing(text, left, right, cap);
        let header = self.header(text);
        let line = line.map_or_else(String::new, |line| format!("\n{line}\n"));
        Cow::Owned(format!("{header}{left}…{missing} truncated…{line}{right}"))
    }

    fn halves<'a>(&self, text: &'a str, cap: usize) -> (&'a str, &'a str) {
        let budget = match self.unit {
            CapUnit::Bytes => cap,
            CapUnit::TokensByChars | CapUnit::TokensByBytes => {
                cap.saturating_mul(self.per_token.get())
            }
        };
        let share = usize::from(self.head_percent.min(100));
        // `budget * share / 100` without overflow for a huge budget.
        let left = budget / 100 * share + budget % 100 * share / 100;
        let right = budget - left;
        if self.unit == CapUnit::TokensByChars {
            return (first_chars(text, left), last_chars(text, right));
        }
        (first_bytes(text, left), last_bytes(text, right))
    }

    fn missing(&self, text: &str, left: &str, right: &str, cap: u64) -> String {
        match self.unit {
            CapUnit::Bytes => {
                let kept = left.chars().count() + right.chars().count();
                format!("{} chars", text.chars().count().saturating_sub(kept))
            }
            // The design counts the tokens above the cap, Codex the bytes above it. Their texts
            // differ by that.
            CapUnit::TokensByChars => format!("{} tokens", self.measure(text).saturating_sub(cap)),
            CapUnit::TokensByBytes => {
                let per_token = self.per_token.get() as u64;
                let over = (text.len() as u64).saturating_sub(cap.saturating_mul(per_token));
                format!("{} tokens", over.div_ceil(per_token))
            }
        }
    }

    fn header(&self, text: &str) -> Cow<'static, str> {
        let lines = match self.header {
            LineCountHeader::Never => return Cow::Borrowed(""),
            LineCountHeader::Several => memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1,
            LineCountHeader::Always => text.lines().count(),
        };
        if self.header == LineCountHeader::Several && lines < 2 {
            return Cow::Borrowed("");
        }
        Cow::Owned(format!("Total output lines: {lines}\n\n"))
    }
}

fn last_chars(text: &str, n: usize) -> &str {
    let Some(last) = n.checked_sub(1) else {
        return "";
    };
    // From the end, so that only the kept part is walked.
    text.char_indices()
        .nth_back(last)
        .and_then(|(at, _)| text.get(at..))
        .unwrap_or(text)
}
