//! Breaks streamed text between words, so that the terminal breaks none.

use unicode_width::UnicodeWidthChar as _;

use crate::ui::style::TextStyle;

/// Pieces of text, each in one style.
type StyledText = Vec<(TextStyle, String)>;

/// A line that is wrapped while it streams. A word is held back until it is complete.
#[derive(Debug)]
pub(super) struct WordWrap {
    /// The used columns of the current row.
    column: usize,
    /// The spaces before the word, in the style of the text. They are dropped where a row ends.
    gap: String,
    gap_look: TextStyle,
    word: StyledText,
    /// The columns of the word.
    word_width: usize,
}

impl Default for WordWrap {
    fn default() -> Self {
        Self {
            column: 0,
            gap: String::new(),
            gap_look: TextStyle::Plain,
            word: Vec::new(),
            word_width: 0,
        }
    }
}

impl WordWrap {
    /// Adds text without line breaks. Returns what can be shown, in rows of `width` columns.
    pub(super) fn push(&mut self, look: TextStyle, text: &str, width: usize) -> StyledText {
        let mut shown = Vec::new();
        for c in text.chars() {
            if c.is_whitespace() {
                shown.extend(self.end_word(width));
                self.gap.push(c);
                self.gap_look = look;
                continue;
            }
            match self.word.last_mut() {
                Some((last, word)) if *last == look => word.push(c),
                _ => self.word.push((look, c.into())),
            }
            let columns = c.width().unwrap_or(0);
            self.word_width += columns;
            // Languages with wide characters have no spaces, and a word that fills a row is broken
            // in any case. Neither waits for its end.
            if columns > 1 || self.word_width >= width {
                shown.extend(self.end_word(width));
            }
        }
        shown
    }

    /// Ends the line. Returns what was held back.
    pub(super) fn end_line(&mut self, width: usize) -> StyledText {
        let shown = self.end_word(width);
        *self = Self::default();
        shown
    }

    /// The word with the spaces before it, or on a new row if it does not fit this one. Without
    /// spaces, the terminal breaks the row.
    fn end_word(&mut self, width: usize) -> StyledText {
        if self.word.is_empty() {
            return Vec::new();
        }
        let gap = std::mem::take(&mut self.gap);
        let word = std::mem::take(&mut self.word_width);
        let gap_width = gap.chars().count();
        let is_full = self.column + gap_width + word > width && self.column > 0;
        let before = if is_full && gap_width > 0 {
            self.column = 0;
            (TextStyle::Plain, "\n".to_owned())
        } else {
            self.column += gap_width;
            (self.gap_look, gap)
        };
        self.column += word;
        if self.column > width {
            self.column = (self.column - 1) % width.max(1) + 1;
        }
        let word = std::mem::take(&mut self.word);
        std::iter::once(before).chain(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text in rows of ten columns, streamed in pieces.
    fn rows(pieces: &[&str]) -> String {
        let mut wrap = WordWrap::default();
        let mut shown = Vec::new();
        for piece in pieces {
            shown.extend(wrap.push(TextStyle::Plain, piece, 10));
        }
        shown.extend(wrap.end_line(10));
        shown.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn rows_end_between_words() {
        for (text, expected) in [
            ("one two three", "one two\nthree"),
            ("exactly 10 columns", "exactly 10\ncolumns"),
            ("  indented line of text", "  indented\nline of\ntext"),
            ("a  b", "a  b"),
            (
                "see incomprehensibilities it is",
                "see\nincomprehensibilities it is",
            ),
            ("", ""),
        ] {
            assert_eq!(rows(&[text]), expected);
            let letters: Vec<String> = text.chars().map(String::from).collect();
            let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
            assert_eq!(rows(&letters), expected);
        }
    }

    #[test]
    fn text_without_spaces_is_shown_as_it_comes() {
        let mut wrap = WordWrap::default();
        let shown = wrap.push(TextStyle::Plain, "一二三四五六七", 10);
        let shown: String = shown.into_iter().map(|(_, text)| text).collect();
        assert_eq!(shown, "一二三四五六七");
    }

    #[test]
    fn only_the_last_word_is_held_back() {
        let mut wrap = WordWrap::default();
        let shown = wrap.push(TextStyle::Plain, "one two thr", 80);
        let shown: String = shown.into_iter().map(|(_, text)| text).collect();
        assert_eq!(shown, "one two");
    }
}
