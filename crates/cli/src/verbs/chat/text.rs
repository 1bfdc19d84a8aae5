//! Text in the width of a terminal.

use std::borrow::Cow;

use crate::ui::visible::visible;

/// The first `width` characters of a line; the last one shows that there are more.
pub(crate) fn clipped(line: &str, width: usize) -> Cow<'_, str> {
    if line.chars().count() <= width {
        return Cow::Borrowed(line);
    }
    let kept: String = line.chars().take(width.saturating_sub(1)).collect();
    Cow::Owned(kept + "\u{2026}")
}

/// `text` on one line.
pub(crate) fn on_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" ")).into_owned()
}

/// Which of `names` somebody meant who typed `typed`.
pub(super) fn nearest<'n>(typed: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let far = |name: &str| {
        let begins = name.starts_with(typed) || typed.starts_with(name);
        if begins { 0 } else { distance(typed, name) }
    };
    names.min_by_key(|name| far(name))
}

/// How many letters have to be put in, taken out or changed to make one of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut next = vec![at + 1];
        for (there, pair) in other.chars().zip(row.windows(2)) {
            let [skipped, above] = [0, 1].map(|side| pair.get(side).copied().unwrap_or_default());
            let changed = skipped + usize::from(letter != there);
            let left = next.last().copied().unwrap_or_default();
            next.push(changed.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// `text` in lines of at most `width` characters, broken between words; further lines begin
/// with `indent` spaces.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let more = word.chars().count();
        if length > indent && length + 1 + more > width {
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            length = indent;
        } else if !lines.is_empty() {
            lines.push(' ');
            length += 1;
        }
        lines.push_str(word);
        length += more;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_clipped_and_wrapped() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "abcde\u{2026}");
        assert_eq!(on_one_line(" a\n  b\t"), "a b");
        assert_eq!(
            wrapped("one two three four", 9, 2),
            "one two\n  three\n  four"
        );
        assert_eq!(
            wrapped("incomprehensibilities", 9, 2),
            "incomprehensibilities"
        );
    }

    #[test]
    fn the_nearest_is_found() {
        let names = ["compact", "context", "output", "undo", "quit"];
        for (typed, meant) in [("compcat", "compact"), ("con", "context"), ("udo", "undo")] {
            assert_eq!(nearest(typed, names.into_iter()), Some(meant), "{typed}");
        }
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
    }
}
