//! Draws the windows of the demo in the terminal, with the savings.

use std::fmt::Write as _;

use super::report::DemoReport;
use crate::proxy::savings::{dollars, tokens_line};
use crate::ui::bar::{BarSegment, render_in};
use crate::ui::line_width;
use crate::ui::number::{counted, grouped, percent, short};
use crate::ui::style::{self, TextStyle};
use crate::verbs::chat::text::wrapped;

/// The width if the terminal does not report one.
const USUAL: usize = 80;
/// The largest and the smallest width of a window's bar.
const BAR: (usize, usize) = (40, 10);
/// The width of a row without its bar.
const AROUND: usize = 35;
/// The indentation of the summary's text.
const LEAD: usize = 9;

fn width() -> usize {
    line_width().unwrap_or(USUAL)
}

/// The introduction.
pub(super) fn opening(window: u64) -> String {
    let window = grouped(window);
    let text = format!(
        "An agent looks for a bug. The session runs twice: directly against a model, then \
         through trimtab against the same model with a window of {window} tokens. The model is \
         scripted, so the demo shows that every request is valid and what it costs, not how well \
         a real model works."
    );
    wrapped(&text, width(), 0) + "\n"
}

/// The picture: one line per call.
pub(super) fn calls(report: &DemoReport, colour: bool) -> String {
    let window = report.window;
    let bar_width = width().saturating_sub(AROUND).clamp(BAR.1, BAR.0);
    let frame = if colour { bar_width } else { bar_width + 2 };
    let head = format!("window of {}", grouped(window));
    let mut text = format!(
        "{:>4}  {:<10}  {head:<frame$}  {:>4}  {:>7}\n",
        "call", "does", "with", "without"
    );
    let (dim, bad) = (style::DIM, style::BAD);
    for (at, call) in report.calls.iter().enumerate() {
        let cached = call.cached.min(call.with);
        let segments = [
            segment('#', style::OUTPUT, cached),
            segment('+', style::USER, call.with - cached),
            segment('.', style::FREE, window.saturating_sub(call.with)),
        ];
        let bar = render_in(&segments, colour, bar_width);
        let without = short(call.without);
        let without = if call.without > window {
            let marked = without + "!";
            format!("{bad}{marked:>7}{bad:#}")
        } else {
            format!("{dim}{without:>6}{dim:#}")
        };
        let (number, what, with) = (at + 1, &call.what, short(call.with));
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{number:>4}  {what:<10}  {bar}  {with:>4}  {without}");
    }
    text + &key(colour)
}

/// The legend of the picture.
fn key(colour: bool) -> String {
    let (cached, fresh, free) = if colour {
        ("\u{2588}", "\u{2588}", "\u{2591}")
    } else {
        ("#", "+", ".")
    };
    let (one, two, dim, bad) = (style::OUTPUT, style::USER, style::DIM, style::BAD);
    format!(
        "      {one}{cached}{one:#} from the provider's cache  {two}{fresh}{two:#} new  \
         {dim}{free}{dim:#} free\n      {bad}!{bad:#} larger than the window: rejected\n"
    )
}

fn segment(letter: char, style: TextStyle, amount: u64) -> BarSegment {
    BarSegment {
        name: "",
        letter,
        style,
        amount,
    }
}

/// The savings in a few lines.
pub(super) fn summary(report: &DemoReport) -> String {
    let (without, with) = (&report.without, &report.with);
    let count = report.calls.len();
    let ends = match report.overflows_at {
        Some(at) => format!("overflows at call {at} of {count}; "),
        None => String::new(),
    };
    let direct = format!(
        "{ends}with a large enough window, {} tokens sent, {}",
        short(without.tokens),
        dollars(without.dollars)
    );
    let managed = format!(
        "{count} of {count} calls answered, largest window {}; {} tokens sent, {} of them read \
         from the cache, {}",
        short(with.largest),
        short(with.tokens),
        percent(with.cached, with.tokens),
        dollars(with.dollars)
    );
    let saved = format!(
        "{}, {} at the prices of {}, cache included",
        tokens_line(&report.tokens()),
        money(without.dollars, with.dollars),
        report.model,
    );
    let fitting = fitting(report);
    let kept = format!(
        "every output is stored in full; the model looked up {}; {} recovered",
        counted(times(report.retrievals), "thing"),
        counted(times(report.recovered), "overflow"),
    );
    let lines = [
        ("without", direct, style::STRONG),
        ("with", managed, style::STRONG),
        ("result", saved + &fitting, style::GOOD),
        ("kept", kept, style::STRONG),
    ];
    lines
        .map(|(name, text, style)| line(name, &text, style))
        .concat()
}

/// The savings as the dashboard counts them: a call that does not fit is billed as one full window.
fn fitting(report: &DemoReport) -> String {
    let counted = &report.counted;
    if counted.tokens.over_window == 0 {
        return String::new();
    }
    format!(
        "; if a call that does not fit counts as one full window, as on the dashboard: {}, {}",
        tokens_line(&counted.tokens),
        money(counted.spent + counted.saved, counted.spent),
    )
}

fn line(name: &str, text: &str, style: TextStyle) -> String {
    let text = wrapped(text, width().saturating_sub(LEAD), 0);
    let text = text.replace('\n', &format!("\n{}", " ".repeat(LEAD)));
    let gap = " ".repeat(LEAD - name.len());
    format!("{style}{name}{style:#}{gap}{text}\n")
}

/// The saved part of `without` dollars.
fn money(without: f64, with: f64) -> String {
    let saved = without - with;
    let word = if saved < 0.0 { "more" } else { "saved" };
    let share = if without > 0.0 {
        saved.abs() / without * 100.0
    } else {
        0.0
    };
    format!("{} {word} ({share:.0} %)", dollars(saved.abs()))
}

fn times(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
