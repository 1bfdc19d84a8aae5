//! The few styles we use, and how they travel inside text.
//!
//! A style in a text is a mark, not an escape sequence: [`Terminal`](super::Terminal) makes
//! every escape sequence visible and turns our marks into styles. A mark contains a number that
//! is drawn anew by every process, so that no text from elsewhere can contain one.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Color, Style};

/// The first character of a mark: Unicode keeps it free for use inside programs.
pub(super) const MARK: char = '\u{fdd0}';
/// What ends a style, in place of its letter.
const END: char = '.';

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// As everything else.
    Plain,
    /// Bold.
    Bold,
    /// Dimmed.
    Dimmed,
    /// Bold and red.
    BoldRed,
    /// In one of the terminal's own colours.
    Coloured(AnsiColor),
}

impl TextStyle {
    /// The style that begins or goes on where a mark with this letter stands.
    fn of_letter(letter: char) -> Option<Self> {
        Some(match letter {
            'b' => Self::Bold,
            'd' => Self::Dimmed,
            'r' => Self::BoldRed,
            letter => {
                let found = COLOURS.iter().find(|(known, _)| *known == letter);
                Self::Coloured(found?.1)
            }
        })
    }

    fn letter(self) -> Option<char> {
        match self {
            Self::Plain => None,
            Self::Bold => Some('b'),
            Self::Dimmed => Some('d'),
            Self::BoldRed => Some('r'),
            Self::Coloured(colour) => {
                let found = COLOURS.iter().find(|(_, known)| *known == colour);
                found.map(|(letter, _)| *letter)
            }
        }
    }

    fn ansi(self) -> Style {
        let colour = |colour| Style::new().fg_color(Some(Color::Ansi(colour)));
        match self {
            Self::Plain => Style::new(),
            Self::Bold => Style::new().bold(),
            Self::Dimmed => Style::new().dimmed(),
            Self::BoldRed => colour(AnsiColor::Red).bold(),
            Self::Coloured(wanted) => colour(wanted),
        }
    }
}

/// The colours that text may have, and their letters.
const COLOURS: [(char, AnsiColor); 6] = [
    ('B', AnsiColor::Blue),
    ('C', AnsiColor::Cyan),
    ('G', AnsiColor::Green),
    ('M', AnsiColor::Magenta),
    ('P', AnsiColor::BrightMagenta),
    ('Y', AnsiColor::Yellow),
];

/// `{style}` begins the style, `{style:#}` ends it.
impl fmt::Display for TextStyle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(letter) = self.letter() else {
            return Ok(());
        };
        let letter = if f.alternate() { END } else { letter };
        // In one piece: a mark that reaches the writer in several is not recognised.
        f.write_str(&format!("{MARK}{}{letter}", number()))
    }
}

/// Sixteen digits that nobody outside this process knows.
fn number() -> &'static str {
    static NUMBER: OnceLock<String> = OnceLock::new();
    NUMBER.get_or_init(|| format!("{:016x}", RandomState::new().build_hasher().finish()))
}

/// If `text`, which follows a [`MARK`], goes on as a mark of ours does: the escape sequence that
/// the mark stands for, and the rest of the text.
pub(super) fn split_mark(text: &str) -> Option<(String, &str)> {
    let rest = text.strip_prefix(number())?;
    let mut letters = rest.chars();
    let sequence = match letters.next()? {
        END => anstyle::Reset.render().to_string(),
        letter => TextStyle::of_letter(letter)?.ansi().render().to_string(),
    };
    Some((sequence, letters.as_str()))
}

/// Headings and names.
pub const STRONG: TextStyle = TextStyle::Bold;
/// What is said in passing.
pub const DIM: TextStyle = TextStyle::Dimmed;
/// Faults.
pub const BAD: TextStyle = TextStyle::BoldRed;
/// What deserves a look.
pub const WARN: TextStyle = TextStyle::Coloured(AnsiColor::Yellow);
/// All is well.
pub const GOOD: TextStyle = TextStyle::Coloured(AnsiColor::Green);

/// The system prompt.
pub const SYSTEM: TextStyle = TextStyle::Coloured(AnsiColor::Magenta);
/// Tool definitions.
pub const TOOLS: TextStyle = TextStyle::Coloured(AnsiColor::BrightMagenta);
/// Summaries.
pub const SUMMARY: TextStyle = TextStyle::Coloured(AnsiColor::Yellow);
/// The user.
pub const USER: TextStyle = TextStyle::Coloured(AnsiColor::Green);
/// The model.
pub const ASSISTANT: TextStyle = TextStyle::Coloured(AnsiColor::Blue);
/// Tool outputs.
pub const OUTPUT: TextStyle = TextStyle::Coloured(AnsiColor::Cyan);
/// Room that is left.
pub const FREE: TextStyle = TextStyle::Dimmed;
