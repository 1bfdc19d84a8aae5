//! Clips text to the width of a terminal.

use std::borrow::Cow;

/// The first `width` characters of a line. An ellipsis marks a cut.
pub fn clipped(line: &str, width: usize) -> Cow<'_, str> {
    if line.chars().count() <= width {
        return Cow::Borrowed(line);
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    Cow::Owned(kept + "\u{2026}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_line_ends_with_an_ellipsis() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "abcde\u{2026}");
    }
}
