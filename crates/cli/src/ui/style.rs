//! The few colours we use.

use anstyle::{AnsiColor, Color, Style};

const fn colour(colour: AnsiColor) -> Style {
    Style::new().fg_color(Some(Color::Ansi(colour)))
}

/// Headings and names.
pub const STRONG: Style = Style::new().bold();
/// What is said in passing.
pub const DIM: Style = Style::new().dimmed();
/// Faults.
pub const BAD: Style = colour(AnsiColor::Red).bold();
/// What deserves a look.
pub const WARN: Style = colour(AnsiColor::Yellow);
/// All is well.
pub const GOOD: Style = colour(AnsiColor::Green);

/// The system prompt.
pub const SYSTEM: Style = colour(AnsiColor::Magenta);
/// Tool definitions.
pub const TOOLS: Style = colour(AnsiColor::BrightMagenta);
/// Summaries.
pub const SUMMARY: Style = colour(AnsiColor::Yellow);
/// The user.
pub const USER: Style = colour(AnsiColor::Green);
/// The model.
pub const ASSISTANT: Style = colour(AnsiColor::Blue);
/// Tool outputs.
pub const OUTPUT: Style = colour(AnsiColor::Cyan);
/// Room that is left.
pub const FREE: Style = Style::new().dimmed();
