//! Cuts texts for summaries.

/// Marks the gap between head and tail of a cut text.
const GAP: &str = "\n... (truncated) ...\n";

/// At most `max` characters of `text`: two thirds from its head and the rest from its tail. The gap
/// between them is not counted.
pub(crate) fn head_and_tail(text: &str, max: usize) -> String {
    let length = text.chars().count();
    if length <= max {
        return text.to_owned();
    }
    let head = max * 2 / 3;
    let tail = max - head;
    let mut cut: String = text.chars().take(head).collect();
    cut.push_str(GAP);
    cut.extend(text.chars().skip(length - tail));
    cut
}

/// The text of an output without surrounding white space, or a note that it is empty.
pub(super) fn said_by(text: &str) -> &str {
    match text.trim() {
        "" => "(empty output)",
        text => text,
    }
}

/// `text` on one line, at most `max` characters of it.
pub(super) fn one_line(text: &str, max: usize) -> String {
    let line = text.trim().replace("\r\n", " ").replace(['\n', '\r'], " ");
    line.chars().take(max).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_thirds_come_from_the_head() {
        let cut = head_and_tail(&"a".repeat(5_000), 1_800);
        assert_eq!(cut.chars().count(), 1_821);
        assert!(cut.starts_with(&"a".repeat(1_200)));
        assert_eq!(head_and_tail("short", 1_800), "short");
    }

    #[test]
    fn lines_are_joined() {
        assert_eq!(one_line(" a\nb \n", 200), "a b");
        assert_eq!(one_line("ééé", 2), "éé");
    }
}
