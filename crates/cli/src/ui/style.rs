//! The text styles, and their encoding inside strings.
//!
//! A style in a string is a mark, not an escape sequence: [`Terminal`](super::Terminal) escapes
//! every escape sequence and turns our marks into styles. A mark contains a number that each
//! process draws at random, so foreign text cannot contain a valid mark.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Color, Style};

/// The first character of a mark: a Unicode noncharacter, reserved for internal use.
pub(super) const MARK: char = '\u{fdd0}';
/// Ends a style, in place of its letter.
const END: char = '.';

/// The style of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextStyle {
    /// The default style.
    Plain,
    /// Bold.
    Bold,
    /// Dimmed.
    Dimmed,
    /// Bold and red.
    BoldRed,
    /// One of the terminal's colours.
    Coloured(AnsiColor),
}

impl TextStyle {
    /// The style for the letter of a mark.
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

/// The colours of text and their letters.
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
        // Written in one piece, because the writer does not recognise a mark that arrives in
        // pieces.
        f.write_str(&format!("{MARK}{}{letter}", number()))
    }
}

/// Sixteen digits that are unknown outside this process.
fn number() -> &'static str {
    // The standard library seeds its hasher from the randomness of the system.
    static NUMBER: OnceLock<String> = OnceLock::new();
    NUMBER.get_or_init(|| format!("{:016x}", RandomState::new().build_hasher().finish()))
}

/// Parses the rest of a mark after [`MARK`]. Returns its escape sequence and the remaining text, or
/// nothing if the mark is not ours.
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
/// Secondary text.
pub const DIM: TextStyle = TextStyle::Dimmed;
/// Faults.
pub const BAD: TextStyle = TextStyle::BoldRed;
/// Warnings.
pub const WARN: TextStyle = TextStyle::Coloured(AnsiColor::Yellow);
/// Success.
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
/// Free room.
pub const FREE: TextStyle = TextStyle::Dimmed;
