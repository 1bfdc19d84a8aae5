//! Counts, cuts and formats text.

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

/// A size in readable form: `512 B`, `5.9 KB`, `1.2 MB`; a kilobyte is 1,024 bytes.
pub(crate) fn human_size(bytes: usize) -> String {
    const KB: usize = 1024;
    const MB: usize = 1024 * KB;
    if bytes < KB {
        format!("{bytes} B")
    } else if bytes < MB {
        format!("{:.1} KB", bytes as f64 / KB as f64)
    } else {
        format!("{:.1} MB", bytes as f64 / MB as f64)
    }
}

/// The first `n` chars of `text`.
pub(super) fn first_chars(text: &str, n: usize) -> &str {
    // A text never has more chars than bytes, so short text need not be walked.
    if text.len() <= n {
        return text;
    }
    text.char_indices()
        .nth(n)
        .and_then(|(at, _)| text.get(..at))
        .unwrap_or(text)
}

/// The longest prefix of `text` that has at most `bytes` bytes and ends at a character boundary.
pub(crate) fn first_bytes(text: &str, bytes: usize) -> &str {
    let end = text.floor_char_boundary(bytes);
    text.get(..end).unwrap_or(text)
}

/// The length of the longest prefix of `text` that `fits` and has at most `most` bytes.
///
/// `fits` gets the length of a prefix. It must be monotonic: if a prefix does not fit, no longer
/// one does.
pub(crate) fn longest_start(text: &str, most: usize, fits: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, text.floor_char_boundary(most));
    if fits(high) {
        return high;
    }
    loop {
        let mut middle = text.floor_char_boundary(usize::midpoint(low, high));
        // The midpoint rounds down to `low` inside a long character. Step to the next boundary, or
        // the loop would not end.
        if middle == low {
            middle = text.ceil_char_boundary(low + 1);
        }
        if middle >= high {
            return low;
        }
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The longest suffix of `text` that has at most `bytes` bytes and starts at a character boundary.
pub(crate) fn last_bytes(text: &str, bytes: usize) -> &str {
    let from = text.ceil_char_boundary(text.len().saturating_sub(bytes));
    text.get(from..).unwrap_or_default()
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
            [0, 1023, 1024, 6042].map(human_size),
            ["0 B", "1023 B", "1.0 KB", "5.9 KB"]
        );
        assert_eq!(human_size(3_000_000), "2.9 MB");
    }

    #[test]
    fn ends_of_text_stay_between_chars() {
        assert_eq!(first_bytes("aéa", 2), "a");
        assert_eq!(last_bytes("aéa", 2), "a");
        assert_eq!(first_chars("ééé", 2), "éé");
        assert_eq!(last_bytes("ab", 9), "ab");
        assert_eq!(longest_start("漢a漢", 7, |bytes| bytes < 7), 4);
        assert_eq!(longest_start("漢a", 4, |bytes| bytes < 4), 3);
        assert_eq!(longest_start("漢", 2, |_| true), 0);
    }
}
