//! Renders a report as text.

use std::fmt::Write;

use super::report::InspectReport;
use crate::ui::bar::{self, BarSegment};
use crate::ui::clipped::clipped;
use crate::ui::number::{counted, grouped, percent, short};
use crate::ui::style;
use crate::ui::visible::visible;
use crate::verbs::chat::text::{on_one_line, wrapped};

/// How many faults are listed before the rest is only counted.
const FAULTS: usize = 20;

/// The report as text, in lines of `width` columns if possible. `colour` also selects the style of
/// the bar.
pub fn render(report: &InspectReport, colour: bool, width: usize) -> String {
    let mut text = String::new();
    heading(&mut text, report, width);
    window(&mut text, report, (colour, width));
    regions(&mut text, report);
    largest(&mut text, report, width);
    repeats(&mut text, report, width);
    faults(&mut text, report, width);
    text
}

fn heading(text: &mut String, report: &InspectReport, width: usize) {
    let (strong, dim) = (style::STRONG, style::DIM);
    let _ = write!(text, "{strong}{}{strong:#}", visible(&report.file));
    let more = [
        report.id.as_deref(),
        Some(report.form),
        report.model.as_deref(),
    ];
    let more: Vec<_> = more.into_iter().flatten().map(visible).collect();
    let lengths = more.iter().map(|more| more.chars().count() + 3);
    let fits = report.file.chars().count() + lengths.sum::<usize>() <= width;
    for more in &more {
        let between = if fits { " " } else { "\n  " };
        let _ = write!(text, "{between}{dim}|{dim:#} {more}");
    }
    let counts = &report.counts;
    let figures = [
        counted(counts.turns, "turn"),
        counted(counts.rounds, "round"),
        counted(counts.messages, "message"),
        counted(counts.calls, "call"),
        counted(counts.outputs, "output"),
    ];
    let _ = writeln!(text, "\n{}", wrapped(&figures.join(", "), width, 0));
    if counts.compactions > 0 {
        let _ = writeln!(
            text,
            "compacted {}: {} no longer in the window",
            counted(counts.compactions, "time"),
            counted(counts.compacted_messages, "message"),
        );
    }
}

fn window(text: &mut String, report: &InspectReport, (colour, width): (bool, usize)) {
    let (tokens, filled) = (report.window.tokens, report.filled());
    let bar_width = bar::WIDTH.min(width.saturating_sub(2));
    match report.window.size {
        Some(size) => gauge(text, filled, size, (colour, bar_width)),
        None => {
            let _ = writeln!(text, "\nwindow: {} tokens", grouped(filled));
        }
    }
    let dim = style::DIM;
    if let Some(reported) = report.window.reported {
        let (prompt, share) = (grouped(reported), report.window.size);
        let share = share.map_or_else(String::new, |size| {
            format!(" of {} ({})", grouped(size), percent(reported, size))
        });
        let line = format!(
            "the provider last reported {prompt} tokens{share}; the transcript has an estimated {}",
            grouped(tokens)
        );
        let _ = writeln!(text, "{dim}{}{dim:#}", wrapped(&line, width, 0));
    }
    if tokens == 0 {
        return;
    }
    let segments = segments(report);
    let bar = bar::render_in(&segments, colour, bar_width);
    let _ = writeln!(text, "\nfilled with\n{bar}");
    legend(text, &segments, (colour, width));
}

/// The legend of the bar, in lines of `width` columns.
fn legend(text: &mut String, segments: &[BarSegment], (colour, width): (bool, usize)) {
    let mut length = 0;
    for segment in segments.iter().filter(|segment| segment.amount > 0) {
        let more = segment.name.len() + short(segment.amount).len() + 3;
        if length > 0 {
            let is_full = length + 2 + more > width;
            text.push_str(if is_full { "\n" } else { "  " });
            length = if is_full { 0 } else { length + 2 };
        }
        text.push_str(&key(segment, colour));
        length += more;
    }
    text.push('\n');
}

/// The fill level of the window.
fn gauge(text: &mut String, tokens: u64, size: u64, (colour, width): (bool, usize)) {
    let (used, whole, share) = (grouped(tokens), grouped(size), percent(tokens, size));
    let over = match tokens.saturating_sub(size) {
        0 => String::new(),
        over => format!(", {bad}{} too many{bad:#}", grouped(over), bad = style::BAD),
    };
    let _ = writeln!(text, "\nwindow: {used} of {whole} tokens ({share}){over}");
    let segments = [
        ("taken", '#', style::STRONG, tokens),
        ("free", '.', style::FREE, size.saturating_sub(tokens)),
    ];
    let bar = bar::render_in(&segments.map(BarSegment::from), colour, width);
    let _ = writeln!(text, "{bar}");
}

fn key(segment: &BarSegment, colour: bool) -> String {
    let style = segment.style;
    let mark = if colour { '\u{25A0}' } else { segment.letter };
    format!(
        "{style}{mark}{style:#} {} {}",
        segment.name,
        short(segment.amount)
    )
}

fn segments(report: &InspectReport) -> [BarSegment; 6] {
    let roles = &report.roles;
    [
        ("system", 'S', style::SYSTEM, roles.system),
        (
            "tools",
            'T',
            style::TOOLS,
            report.regions.tools.unwrap_or(0),
        ),
        ("summary", 'Z', style::SUMMARY, roles.summary),
        ("user", 'U', style::USER, roles.user),
        ("assistant", 'A', style::ASSISTANT, roles.assistant),
        ("outputs", 'O', style::OUTPUT, roles.tool),
    ]
    .map(BarSegment::from)
}

fn regions(text: &mut String, report: &InspectReport) {
    let (regions, roles) = (&report.regions, &report.roles);
    let total = report.window.tokens;
    let system = regions.system.map(|_| roles.system);
    let rows = [
        (Some(("system", regions.system)), "system", system),
        (Some(("tools", regions.tools)), "user", Some(roles.user)),
        (
            Some(("summary", Some(regions.summary))),
            "assistant",
            Some(roles.assistant),
        ),
        (
            Some(("log", Some(regions.log))),
            "  thoughts",
            Some(roles.reasoning),
        ),
        (None, "  calls", Some(roles.calls)),
        (None, "tool", Some(roles.tool)),
    ];
    let strong = style::STRONG;
    let _ = writeln!(
        text,
        "\n{strong}{:<8} {:>9} {:>6}  {:<11} {:>9} {:>6}{strong:#}",
        "region", "tokens", "share", "role", "tokens", "share"
    );
    for (region, role, of_role) in rows {
        let left = match region {
            Some((name, tokens)) => format!("{name:<8} {}", figure(tokens, total)),
            None => " ".repeat(25),
        };
        let _ = writeln!(text, "{left}  {role:<11} {}", figure(of_role, total));
    }
}

/// Tokens and their share of `total`, in sixteen columns.
fn figure(tokens: Option<u64>, total: u64) -> String {
    match tokens {
        Some(tokens) => format!("{:>9} {:>6}", grouped(tokens), percent(tokens, total)),
        None => format!("{:>16}", "not in the log"),
    }
}

/// The width of the figures before a call.
const FIGURES: usize = 25;

fn largest(text: &mut String, report: &InspectReport, width: usize) {
    if report.outputs.largest.is_empty() {
        return;
    }
    let strong = style::STRONG;
    let _ = writeln!(
        text,
        "\n{strong}{:>7} {:>8} {:>6}  largest outputs and their calls{strong:#}",
        "message", "tokens", "share"
    );
    for output in &report.outputs.largest {
        let share = percent(output.tokens, report.window.tokens);
        let call = call(&output.tool, &output.call, width.saturating_sub(FIGURES));
        let _ = writeln!(
            text,
            "{:>7} {:>8} {share:>6}  {call}",
            output.message,
            grouped(output.tokens),
        );
    }
    let dim = style::DIM;
    let _ = writeln!(text, "{dim}--message N shows one of them{dim:#}");
}

/// A call in at most `width` columns.
fn call(tool: &str, gist: &str, width: usize) -> String {
    let call = on_one_line(&format!("{tool} {gist}"));
    let is_path = gist.contains('/') && !gist.contains(char::is_whitespace);
    let room = width.saturating_sub(tool.chars().count() + 2);
    let cut = gist.chars().count().saturating_sub(room);
    if is_path && cut > 0 && room > 0 {
        // The end of a path says more than its beginning.
        let end: String = gist.chars().skip(cut).collect();
        return on_one_line(&format!("{tool} \u{2026}{end}"));
    }
    clipped(&call, width).into_owned()
}

fn repeats(text: &mut String, report: &InspectReport, width: usize) {
    let outputs = &report.outputs;
    if outputs.repeated == 0 {
        return;
    }
    let strong = style::STRONG;
    let line = format!(
        "{} of {} repeat an earlier output, {} tokens ({})",
        outputs.repeated,
        report.counts.outputs,
        grouped(outputs.repeated_tokens),
        percent(outputs.repeated_tokens, report.window.tokens),
    );
    let _ = writeln!(text, "\n{strong}repeated outputs{strong:#}\n{line}");
    for repeat in &outputs.repeats {
        let front = format!(
            "{:>7} repeats {}, {} tokens: ",
            repeat.message,
            repeat.first,
            grouped(repeat.tokens)
        );
        let room = width.saturating_sub(front.chars().count());
        let call = call(&repeat.tool, &repeat.call, room);
        let _ = writeln!(text, "{front}{call}");
    }
}

fn faults(text: &mut String, report: &InspectReport, width: usize) {
    if report.faults.is_empty() {
        let good = style::GOOD;
        let _ = writeln!(
            text,
            "\n{good}no faults{good:#}: a provider would accept this conversation"
        );
        return;
    }
    let bad = style::BAD;
    let number = counted(report.faults.len(), "fault");
    let _ = writeln!(
        text,
        "\n{bad}{number}{bad:#}: a provider would reject this conversation"
    );
    for fault in report.faults.iter().take(FAULTS) {
        let line = format!("message {}: {}", fault.message, visible(&fault.text));
        let _ = writeln!(text, "  {}", wrapped(&line, width.saturating_sub(2), 4));
    }
    let rest = report.faults.len().saturating_sub(FAULTS);
    if rest > 0 {
        let _ = writeln!(text, "  and {rest} more; --json gives them all");
    }
}
