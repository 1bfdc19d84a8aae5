//! The windows as a picture in the terminal, and what was saved.

use std::fmt::Write as _;

use super::report::Report;
use crate::proxy::savings::dollars;
use crate::ui::bar::{Segment, render_in};
use crate::ui::number::{counted, grouped, percent, short};
use crate::ui::style::{self, TextStyle};

/// How many characters a window takes.
const WIDTH: usize = 40;

/// The picture: a line for each call.
pub(super) fn calls(report: &Report, colour: bool) -> String {
    let window = report.window;
    let head = format!("window of {} tokens, call by call", grouped(window));
    let frame = if colour { WIDTH } else { WIDTH + 2 };
    let mut text = format!("call  {:<12}  {head:<frame$}   with  without\n", "does");
    let (dim, bad) = (style::DIM, style::BAD);
    for (at, call) in report.calls.iter().enumerate() {
        let cached = call.cached.min(call.with);
        let segments = [
            segment('#', style::OUTPUT, cached),
            segment('+', style::USER, call.with - cached),
            segment('.', style::FREE, window.saturating_sub(call.with)),
        ];
        let bar = render_in(&segments, colour, WIDTH);
        let without = short(call.without);
        let over = if call.without > window {
            format!("{bad}{without:>7}{bad:#} too large")
        } else {
            format!("{dim}{without:>7}{dim:#}")
        };
        let (number, what, with) = (at + 1, &call.what, short(call.with));
        // Writing into a String cannot fail.
        let _ = writeln!(text, "{number:>4}  {what:<12}  {bar} {with:>6}  {over}");
    }
    let key = "read from the provider's cache, new, free";
    let (cached, fresh, free) = if colour {
        ("\u{2588}", "\u{2588}", "\u{2591}")
    } else {
        ("#", "+", ".")
    };
    let (one, two) = (style::OUTPUT, style::USER);
    let _ = writeln!(
        text,
        "      {one}{cached}{one:#}{two}{fresh}{two:#}{dim}{free}{dim:#} {key}"
    );
    text
}

fn segment(letter: char, style: TextStyle, amount: u64) -> Segment {
    Segment {
        name: "",
        letter,
        style,
        amount,
    }
}

/// What was saved, in a few lines.
pub(super) fn summary(report: &Report) -> String {
    let (without, with) = (&report.without, &report.with);
    let count = report.calls.len();
    let (good, strong) = (style::GOOD, style::STRONG);
    let mut text = String::new();
    let ends = match report.overflows_at {
        Some(at) => format!("overflows at call {at} of {count}; "),
        None => String::new(),
    };
    let _ = writeln!(
        text,
        "{strong}without{strong:#}  {ends}with a window large enough {} tokens are sent, {}",
        short(without.tokens),
        dollars(without.dollars)
    );
    let _ = writeln!(
        text,
        "{strong}with{strong:#}     {count} of {count} calls, largest window {}; {} tokens are sent, {} read from the cache, {}",
        short(with.largest),
        short(with.tokens),
        percent(with.cached, with.tokens),
        dollars(with.dollars)
    );
    let saved = report.tokens_saved();
    let cheaper = without.dollars - with.dollars;
    let share = if without.dollars > 0.0 {
        cheaper / without.dollars * 100.0
    } else {
        0.0
    };
    let _ = writeln!(
        text,
        "{good}saved{good:#}    {} tokens ({}) and {} ({share:.0} %) at the prices of {}, cached prefix counted",
        short(saved),
        percent(saved, without.tokens),
        dollars(cheaper),
        report.model,
    );
    let _ = writeln!(
        text,
        "         nothing is lost: every output is stored whole, and the model looked {} up in the store; overflows: {}",
        counted(times(report.retrievals), "thing"),
        report.recovered
    );
    text
}

fn times(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
