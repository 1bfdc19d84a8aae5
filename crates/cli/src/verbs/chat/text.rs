//! Wraps text to the width of a terminal.

use trimtab::config::nearest_name;

use crate::ui::visible::visible;

/// Joins `text` to one line.
pub(crate) fn on_one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    visible(&words.join(" ")).into_owned()
}

/// The name that a user probably meant by `typed`: one with that prefix, or a similar one.
pub(super) fn nearest<'n>(
    typed: &str,
    names: impl Iterator<Item = &'n str> + Clone,
) -> Option<&'n str> {
    let mut begins = names.clone().filter(|name| name.starts_with(typed));
    begins.next().or_else(|| nearest_name(typed, names))
}

/// Wraps `text` at words to at most `width` characters. Further lines are indented by `indent`
/// spaces.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let mut lines = String::new();
    let mut length = 0;
    for word in text.split(' ') {
        let more = word.chars().count();
        // A word that is longer than a line gets its own line and is not cut.
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
    fn lines_are_joined_and_wrapped() {
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
    fn most_similar_name_is_found() {
        let names = ["compact", "context", "output", "undo", "quit"];
        for (typed, meant) in [("compcat", "compact"), ("con", "context"), ("udo", "undo")] {
            assert_eq!(nearest(typed, names.into_iter()), Some(meant), "{typed}");
        }
        assert_eq!(nearest("bogus", names.into_iter()), None);
    }
}
