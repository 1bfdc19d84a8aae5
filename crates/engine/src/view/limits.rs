//! Cuts by lines, then chars, then bytes; a larger output is replaced by a notice that names its
//! file (design `archive`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::figures::{first_bytes, first_chars, human_size};

/// The lines that a cut by lines keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptLines {
    /// The first ones.
    Head,
    /// The first and the last ones, with a line in between that counts the missing ones.
    #[default]
    HeadTail,
}

/// Settings of the cut by limits; zero disables a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsCut {
    /// The maximum of lines, without the line that counts the missing ones.
    pub max_lines: usize,
    /// The most bytes.
    pub max_bytes: usize,
    /// The most chars.
    pub max_chars: usize,
    /// An output with more chars is written to a file and replaced by a notice.
    pub spill_chars: usize,
    /// Which lines are kept.
    pub keep: KeptLines,
}

impl Default for LimitsCut {
    fn default() -> Self {
        Self {
            max_lines: 2_000,
            max_bytes: 51_200,
            max_chars: 204_800,
            spill_chars: 204_800,
            keep: KeptLines::HeadTail,
        }
    }
}

/// The result of writing a large output to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spill {
    /// It was written.
    Saved {
        /// The path.
        path: String,
        /// The SHA-256 of its bytes, in lower-case hex.
        sha256: String,
    },
    /// It could not be written, and why.
    Failed(String),
}

/// Fewer lines are not enough to show both ends.
const HEAD_TAIL_MIN: usize = 4;

impl LimitsCut {
    /// True if an output is so large that it must be written to a file first.
    pub fn spills(&self, text: &str) -> bool {
        // A text never has more chars than bytes, so most outputs are not walked.
        is_over(self.spill_chars, text.len()) && is_over(self.spill_chars, text.chars().count())
    }

    /// The view of `text`: the same bytes if it is within every limit. `line` names the retrieval
    /// call; it ends the notice of a spill, and stands before the notice of a cut.
    pub(super) fn view<'a>(
        &self,
        text: &'a str,
        spill: Option<&Spill>,
        line: Option<&str>,
    ) -> Cow<'a, str> {
        // A caller may pass the result of a spill that this text does not need.
        match spill.filter(|_| self.spills(text)) {
            Some(Spill::Saved { path, sha256 }) => {
                let chars = text.chars().count();
                let line = line.map_or_else(String::new, |line| format!("\n{line}"));
                Cow::Owned(format!(
                    "[tool output too large: {chars} chars]\nSaved to: {path}\nSHA256: {sha256}{line}"
                ))
            }
            Some(Spill::Failed(reason)) => {
                let shown = self.cut_to_limits(text, line);
                Cow::Owned(format!("[tool output spill failed: {reason}]\n\n{shown}"))
            }
            None => self.cut_to_limits(text, line),
        }
    }

    fn cut_to_limits<'a>(&self, text: &'a str, line: Option<&str>) -> Cow<'a, str> {
        let [lines, bytes, chars] = counted(text);
        let fits = !is_over(self.max_lines, lines)
            && !is_over(self.max_chars, chars)
            && !is_over(self.max_bytes, bytes);
        if fits {
            return Cow::Borrowed(text);
        }
        // Each limit applies to the result of the one before, in the order of the design. So the
        // byte limit can remove the last lines that the line limit kept.
        let by_lines = self.by_lines(text, lines);
        let by_chars = first_chars(&by_lines, limit_or_max(self.max_chars));
        let by_bytes = first_bytes(by_chars, limit_or_max(self.max_bytes));
        let [shown_lines, shown_bytes, shown_chars] = counted(by_bytes);
        // The design writes sizes without a blank.
        let compact = |bytes: usize| human_size(bytes).replace(' ', "");
        let (shown_bytes, bytes) = (compact(shown_bytes), compact(bytes));
        let line = line.map_or_else(String::new, |line| format!("\n{line}"));
        Cow::Owned(format!(
            "{by_bytes}{line}\n\n[tool output truncated: showing {shown_lines}/{lines} lines, \
             {shown_bytes}/{bytes} bytes, {shown_chars}/{chars} chars]"
        ))
    }

    fn by_lines<'a>(&self, text: &'a str, total: usize) -> Cow<'a, str> {
        let limit = self.max_lines;
        if !is_over(limit, total) {
            return Cow::Borrowed(text);
        }
        let joined = |from: usize, count: usize| {
            let lines: Vec<&str> = text.split('\n').skip(from).take(count).collect();
            lines.join("\n")
        };
        if self.keep == KeptLines::Head || limit < HEAD_TAIL_MIN {
            return Cow::Owned(joined(0, limit));
        }
        let head = limit / 2;
        let tail = limit - head;
        let missing = total - limit;
        let (first, last) = (joined(0, head), joined(total - tail, tail));
        Cow::Owned(format!(
            "{first}\n... [truncated {missing} lines] ...\n{last}"
        ))
    }
}

fn is_over(limit: usize, measured: usize) -> bool {
    limit > 0 && measured > limit
}

fn limit_or_max(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

/// The lines, bytes and chars of a text. In this design, a final newline starts one more line.
fn counted(text: &str) -> [usize; 3] {
    let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    [newlines + 1, text.len(), text.chars().count()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_spill_is_told_and_the_limits_still_hold() {
        let limits = LimitsCut {
            spill_chars: 3,
            max_chars: 2,
            ..LimitsCut::default()
        };
        let failed = Spill::Failed("disk full".to_owned());
        let view = limits.view("abcd", Some(&failed), None);
        assert_eq!(
            view,
            "[tool output spill failed: disk full]\n\nab\n\n\
             [tool output truncated: showing 1/1 lines, 2B/4B bytes, 2/4 chars]"
        );
    }
}
