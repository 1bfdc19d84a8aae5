//! Renders streamed Markdown on a terminal.
//!
//! Headings, bullets, bold text, code and tables are formatted; everything else is printed
//! unchanged. A mark is held back only until its meaning is clear, so that text appears as it
//! streams; a table appears when it is complete.

use std::fmt::Write as _;

use super::table::MarkdownTable;
use super::word_wrap::WordWrap;
use crate::ui::style::{self, TextStyle};

/// A line start is held back only up to this many characters of white space or marks.
const MOST_INDENT: usize = 80;

/// The kind of the current line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    /// Unknown yet: the start of the line is held back.
    Begins,
    Text,
    Heading,
    /// Inside a code fence.
    Code,
}

/// An inline span that has started and not ended.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OpenSpan {
    None,
    /// One `*`, which may be the first of two.
    Star,
    Bold(String),
    Code(String),
}

/// The meaning of the start of a line.
enum LineStart {
    Undecided,
    Text,
    Heading(usize),
    Bullet(String),
}

/// A streaming Markdown renderer.
#[derive(Debug)]
pub(super) struct Markdown {
    line: LineKind,
    span: OpenSpan,
    /// The start of the line that is held back.
    held: String,
    /// The previous character.
    before: char,
    /// The marks that close the open fence.
    fence: Option<String>,
    table: MarkdownTable,
    /// Breaks text between words. Code and tables keep their lines.
    wrap: WordWrap,
    /// The width of a row.
    width: usize,
    /// The rendered output, and its current run of one style.
    out: String,
    run: (TextStyle, String),
}

impl Default for Markdown {
    fn default() -> Self {
        Self {
            line: LineKind::Begins,
            span: OpenSpan::None,
            held: String::new(),
            before: ' ',
            fence: None,
            table: MarkdownTable::default(),
            wrap: WordWrap::default(),
            width: 0,
            out: String::new(),
            run: (TextStyle::Plain, String::new()),
        }
    }
}

impl Markdown {
    /// Adds a piece of text. Returns what can be shown, for lines of `width` characters.
    pub(super) fn push(&mut self, text: &str, width: usize) -> String {
        self.width = width;
        for c in text.chars() {
            self.read(c);
        }
        self.take()
    }

    /// Returns everything that was held back, and resets the renderer.
    pub(super) fn finish(&mut self, width: usize) -> String {
        self.width = width;
        let held = std::mem::take(&mut self.held);
        if held.trim_start().starts_with('|') && self.fence.is_none() {
            self.table.push(&held);
        } else if self.fence.is_some() {
            // Inside a fence, only the marks that may close it are held back.
            self.emit(style::DIM, &held);
        } else if !held.is_empty() {
            self.end_table();
            self.begin_text(&held);
        }
        self.end_text();
        self.end_table();
        let rest = self.take();
        *self = Self::default();
        rest
    }

    fn read(&mut self, c: char) {
        match (self.line, c) {
            (LineKind::Begins, '\n') => {
                let held = std::mem::take(&mut self.held);
                self.whole_line(&held);
            }
            (LineKind::Begins, c) => {
                self.held.push(c);
                self.decide();
            }
            (_, '\n') => {
                self.end_text();
                self.emit(TextStyle::Plain, "\n");
                self.line = LineKind::Begins;
            }
            (LineKind::Heading, c) => self.flow_char(style::STRONG, c),
            (LineKind::Code, c) => self.emit(style::OUTPUT, c.encode_utf8(&mut [0; 4])),
            (LineKind::Text, c) => self.inline(c),
        }
    }

    /// Renders a line that ended before its kind was clear.
    fn whole_line(&mut self, line: &str) {
        let bare = line.trim();
        if let Some(fence) = &self.fence {
            let is_end =
                bare.starts_with(fence.as_str()) && bare.trim_start_matches(['`', '~']).is_empty();
            let look = if is_end { style::DIM } else { style::OUTPUT };
            if is_end {
                self.fence = None;
            }
            self.emit(look, line);
        } else if bare.starts_with('|') {
            self.table.push(line);
            return;
        } else {
            self.end_table();
            match fence_of(bare) {
                Some(fence) => {
                    self.fence = Some(fence);
                    self.emit(style::DIM, line);
                }
                None => self.begin_text(line),
            }
            self.end_text();
        }
        self.emit(TextStyle::Plain, "\n");
        self.line = LineKind::Begins;
    }

    /// Decides the kind of a line from its start, if possible.
    fn decide(&mut self) {
        if self.fence.is_some() {
            let bare = self.held.trim_start();
            let is_end = bare.trim_start_matches(['`', '~']).is_empty();
            if !is_end || self.held.len() > MOST_INDENT {
                let held = std::mem::take(&mut self.held);
                self.line = LineKind::Code;
                self.emit(style::OUTPUT, &held);
            }
            return;
        }
        let start = line_start(&self.held);
        if matches!(start, LineStart::Undecided) {
            return;
        }
        self.end_table();
        let held = std::mem::take(&mut self.held);
        match start {
            LineStart::Heading(marks) => {
                self.line = LineKind::Heading;
                let text = held.trim_start().chars().skip(marks + 1);
                self.flow(style::STRONG, &text.collect::<String>());
            }
            LineStart::Bullet(bullet) => {
                self.line = LineKind::Text;
                self.before = ' ';
                self.flow(TextStyle::Plain, &bullet);
                self.wrap.indent_here();
            }
            _ => self.begin_text(&held),
        }
    }

    fn begin_text(&mut self, text: &str) {
        self.line = LineKind::Text;
        self.before = ' ';
        for c in text.chars() {
            self.inline(c);
        }
    }

    /// Handles a character that may start or end a span.
    fn inline(&mut self, c: char) {
        match std::mem::replace(&mut self.span, OpenSpan::None) {
            OpenSpan::Code(code) if c == '`' && !code.is_empty() => self.flow(style::OUTPUT, &code),
            OpenSpan::Code(code) if c == '`' => self.flow(TextStyle::Plain, &format!("`{code}`")),
            OpenSpan::Code(mut code) => {
                code.push(c);
                self.span = OpenSpan::Code(code);
            }
            // In Markdown, white space after the marks means that they are text.
            OpenSpan::Bold(text) if text.is_empty() && c.is_whitespace() => {
                self.flow(TextStyle::Plain, &format!("**{c}"));
            }
            OpenSpan::Bold(mut text) => {
                text.push(c);
                match text.strip_suffix("**") {
                    Some(bold) if !bold.is_empty() && !bold.ends_with(char::is_whitespace) => {
                        self.flow(style::STRONG, bold);
                    }
                    _ => self.span = OpenSpan::Bold(text),
                }
            }
            OpenSpan::Star if c == '*' => self.span = OpenSpan::Bold(String::new()),
            OpenSpan::Star => {
                self.flow(TextStyle::Plain, "*");
                self.plain(c);
            }
            OpenSpan::None => self.plain(c),
        }
        self.before = c;
    }

    fn plain(&mut self, c: char) {
        match c {
            // `2*3` and `a*b` do not start bold text.
            '*' if !self.before.is_alphanumeric() => self.span = OpenSpan::Star,
            '`' => self.span = OpenSpan::Code(String::new()),
            c => self.flow_char(TextStyle::Plain, c),
        }
    }

    /// Prints an unclosed span verbatim.
    fn end_span(&mut self) {
        let raw = match std::mem::replace(&mut self.span, OpenSpan::None) {
            OpenSpan::None => return,
            OpenSpan::Star => "*".to_owned(),
            OpenSpan::Bold(text) => format!("**{text}"),
            OpenSpan::Code(text) => format!("`{text}"),
        };
        self.flow(TextStyle::Plain, &raw);
    }

    /// Prints everything of the text of a line that was held back.
    fn end_text(&mut self) {
        self.end_span();
        for (look, text) in self.wrap.end_line(self.width) {
            self.emit(look, &text);
        }
    }

    fn end_table(&mut self) {
        for (look, text) in self.table.take(self.width) {
            self.emit(look, &text);
        }
    }

    fn flow_char(&mut self, look: TextStyle, c: char) {
        self.flow(look, c.encode_utf8(&mut [0; 4]));
    }

    /// Adds text that is broken between words.
    fn flow(&mut self, look: TextStyle, text: &str) {
        for (look, text) in self.wrap.push(look, text, self.width) {
            self.emit(look, &text);
        }
    }

    fn emit(&mut self, look: TextStyle, text: &str) {
        if self.run.0 != look {
            self.end_run();
            self.run.0 = look;
        }
        self.run.1.push_str(text);
    }

    fn end_run(&mut self) {
        let (look, text) = (self.run.0, std::mem::take(&mut self.run.1));
        if !text.is_empty() {
            let _ = write!(self.out, "{look}{text}{look:#}");
        }
    }

    fn take(&mut self) -> String {
        self.end_run();
        std::mem::take(&mut self.out)
    }
}

/// The kind of a line with this start.
fn line_start(held: &str) -> LineStart {
    let bare = held.trim_start();
    let indent = held.len() - bare.len();
    let mut rest = bare.chars();
    match (rest.next(), rest.next()) {
        (None, _) if held.len() > MOST_INDENT => LineStart::Text,
        // White space, a table row (held back until complete), or possibly a bullet.
        (None | Some('|'), _) | (Some('-' | '*' | '+'), None) => LineStart::Undecided,
        (Some('#'), _) => {
            let marks = marks(bare, '#');
            match bare.chars().nth(marks) {
                None if marks <= 6 => LineStart::Undecided,
                Some(' ') if marks <= 6 && indent <= 3 => LineStart::Heading(marks),
                _ => LineStart::Text,
            }
        }
        (Some('-' | '*' | '+'), Some(' ')) => {
            LineStart::Bullet(format!("{}\u{2022} ", " ".repeat(indent)))
        }
        (Some(mark @ ('`' | '~')), _) => {
            let marks = marks(bare, mark);
            // The line of a fence is held back until complete.
            if marks >= 3 || marks == bare.len() {
                LineStart::Undecided
            } else {
                LineStart::Text
            }
        }
        _ => LineStart::Text,
    }
}

/// Counts the leading `mark`s of a text, up to the number that matters, because this runs for every
/// character of a held-back line.
fn marks(text: &str, mark: char) -> usize {
    text.chars().take(7).take_while(|c| *c == mark).count()
}

/// The closing marks of the fence that a line opens, if it opens one.
fn fence_of(bare: &str) -> Option<String> {
    let mark = bare.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let marks = bare.chars().take_while(|c| *c == mark).count();
    let rest = bare.chars().skip(marks);
    (marks >= 3 && !rest.clone().any(|c| c == '`')).then(|| mark.to_string().repeat(marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rendered text, with a letter for each style that is not plain: `B(bold)`, `O(code)`.
    fn shown(pieces: &[&str]) -> String {
        let mut markdown = Markdown::default();
        let mut all = String::new();
        for piece in pieces {
            all.push_str(&markdown.push(piece, 40));
        }
        all.push_str(&markdown.finish(40));
        for (look, letter) in [
            (style::STRONG, "B("),
            (style::OUTPUT, "O("),
            (style::DIM, "D("),
        ] {
            all = all.replace(&look.to_string(), letter);
        }
        all.replace(&format!("{:#}", style::STRONG), ")")
    }

    #[test]
    fn headings_bullets_bold_and_code_are_rendered() {
        for (text, expected) in [
            ("## A title\nand text", "B(A title)\nand text"),
            (
                "- one\n  * two\n1. three",
                "\u{2022} one\n  \u{2022} two\n1. three",
            ),
            ("a **bold** word and `code`.", "a B(bold) word and O(code)."),
            ("**All** of it", "B(All) of it"),
            (
                "```rust\nlet **x** = 1;\n```\nafter",
                "D(```rust)\nO(let **x** = 1;)\nD(```)\nafter",
            ),
            (
                "#hash, 2 ** 3, x**2, *p, a * b",
                "#hash, 2 ** 3, x**2, *p, a * b",
            ),
            ("never `closed\nnor **this\n", "never `closed\nnor **this\n"),
            ("---\n\n\n> quoted", "---\n\n\n> quoted"),
        ] {
            assert_eq!(shown(&[text]), expected, "{text}");
        }
    }

    #[test]
    fn pieces_may_end_anywhere() {
        let text = "# T\n\na **b** `c`\n- d\n```\ne\n```\n| x | y |\n|---|---|\n| 1 | 2 |\n\nend";
        let whole = shown(&[text]);
        let pieces: Vec<String> = text.chars().map(String::from).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let plain = |text: &str| {
            text.replace(")B(", "")
                .replace(")O(", "")
                .replace(")D(", "")
        };
        assert_eq!(plain(&shown(&pieces)), plain(&whole));
    }

    #[test]
    fn rows_end_between_words_except_in_code() {
        let text = "Some **bold text that is longer** than one row of forty columns.\n\
                    - a bullet that is also longer than one row\n\
                    ```\nlet code = that_is_longer(than, one, row, of_it);\n```\n";
        let expected = "Some B(bold text that is longer) than one\nrow of forty columns.\n\
                        \u{2022} a bullet that is also longer than one\n  row\n\
                        D(```)\nO(let code = that_is_longer(than, one, row, of_it);)\nD(```)\n";
        assert_eq!(shown(&[text]), expected);
    }

    #[test]
    fn plain_text_is_shown_word_by_word() {
        let mut markdown = Markdown::default();
        assert_eq!(markdown.push("one two", 80), "one");
        assert_eq!(markdown.push(" three\n\nfo", 80), " two three\n\n");
    }
}
