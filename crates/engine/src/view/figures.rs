//! Counting text, and writing the counts down.

use serde::{Deserialize, Serialize};

/// How much text there is, in three units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Size {
    /// Lines. A newline ends a line; text behind the last one is a line too.
    pub lines: usize,
    /// Bytes of UTF-8.
    pub bytes: usize,
    /// Unicode scalar values.
    pub chars: usize,
}

impl Size {
    /// The size of `text`.
    ///
    /// ```
    /// # use trimtab_engine::view::Size;
    /// assert_eq!(Size::of("a\nä\n"), Size { lines: 2, bytes: 5, chars: 4 });
    /// ```
    pub fn of(text: &str) -> Self {
        let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
        let open = usize::from(!text.is_empty() && !text.ends_with('\n'));
        Self {
            lines: newlines + open,
            bytes: text.len(),
            chars: text.chars().count(),
        }
    }
}

/// `n` with a comma every three digits.
///
/// ```
/// assert_eq!(trimtab_engine::view::grouped(1_234_567_u64), "1,234,567");
/// ```
pub fn grouped(n: impl TryInto<u64>) -> String {
    let digits = n.try_into().unwrap_or(u64::MAX).to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A size for people: `512 B`, `5.9 KB`, `1.2 MB`; a kilobyte is 1,024 bytes.
pub(super) fn human(bytes: usize) -> String {
    scaled(bytes, " ")
}

/// The same without the space, as the archive design writes it.
pub(super) fn compact(bytes: usize) -> String {
    scaled(bytes, "")
}

fn scaled(bytes: usize, space: &str) -> String {
    const KB: usize = 1024;
    const MB: usize = 1024 * KB;
    if bytes < KB {
        format!("{bytes}{space}B")
    } else if bytes < MB {
        format!("{:.1}{space}KB", bytes as f64 / KB as f64)
    } else {
        format!("{:.1}{space}MB", bytes as f64 / MB as f64)
    }
}

/// The first `n` chars of `text`.
pub(super) fn first_chars(text: &str, n: usize) -> &str {
    // No char is longer than its bytes, so short text need not be walked.
    if text.len() <= n {
        return text;
    }
    text.char_indices()
        .nth(n)
        .and_then(|(at, _)| text.get(..at))
        .unwrap_or(text)
}

/// The last place at or before byte `at` that lies between two chars.
pub(super) fn char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// The longest start of `text` that is no longer than `bytes` and ends between two chars.
pub(crate) fn first_bytes(text: &str, bytes: usize) -> &str {
    text.get(..char_boundary(text, bytes)).unwrap_or(text)
}

/// The longest end of `text` that is no longer than `bytes` and starts between two chars.
pub(crate) fn last_bytes(text: &str, bytes: usize) -> &str {
    let from = text.len().saturating_sub(bytes);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at));
    from.and_then(|from| text.get(from..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        let all = [0_u64, 12, 123, 1_234, 45_231, 1_000_000].map(grouped);
        assert_eq!(all, ["0", "12", "123", "1,234", "45,231", "1,000,000"]);
    }

    #[test]
    fn sizes_are_scaled() {
        assert_eq!(
            [0, 1023, 1024, 6042].map(human),
            ["0 B", "1023 B", "1.0 KB", "5.9 KB"]
        );
        assert_eq!(compact(3_000_000), "2.9MB");
    }

    #[test]
    fn ends_of_text_stay_between_chars() {
        assert_eq!(first_bytes("aéa", 2), "a");
        assert_eq!(last_bytes("aéa", 2), "a");
        assert_eq!(first_chars("ééé", 2), "éé");
        assert_eq!(last_bytes("ab", 9), "ab");
    }
}
