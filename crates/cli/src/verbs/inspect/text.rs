//! A report for people.

use std::fmt::Write;

use super::report::Report;
use crate::ui::bar::{self, Segment};
use crate::ui::number::{counted, grouped, percent, short};
use crate::ui::style::{self, TextStyle};
use crate::ui::visible::visible;

/// How many faults are told before the rest is only counted.
const FAULTS: usize = 20;

/// The report as text; `colour` also chooses the look of the bar.
pub fn render(report: &Report, colour: bool) -> String {
    let mut text = String::new();
    heading(&mut text, report);
    window(&mut text, report, colour);
    regions(&mut text, report);
    largest(&mut text, report);
    repeats(&mut text, report);
    faults(&mut text, report);
    text
}

fn heading(text: &mut String, report: &Report) {
    let (strong, dim) = (style::STRONG, style::DIM);
    let _ = write!(text, "{strong}{}{strong:#}", visible(&report.file));
    let more = [
        report.id.as_deref(),
        Some(report.form),
        report.model.as_deref(),
    ];
    for more in more.into_iter().flatten() {
        let _ = write!(text, " {dim}|{dim:#} {}", visible(more));
    }
    let counts = &report.counts;
    let figures = [
        counted(counts.turns, "turn"),
        counted(counts.rounds, "round"),
        counted(counts.messages, "message"),
        counted(counts.calls, "call"),
        counted(counts.outputs, "output"),
    ];
    let _ = writeln!(text, "\n{}", figures.join(", "));
    if counts.compactions > 0 {
        let _ = writeln!(
            text,
            "compacted {}: {} no longer in the window",
            counted(counts.compactions, "time"),
            counted(counts.compacted_messages, "message"),
        );
    }
}

fn window(text: &mut String, report: &Report, colour: bool) {
    let tokens = report.window.tokens;
    match report.window.size {
        Some(size) => gauge(text, tokens, size, colour),
        None => {
            let _ = writeln!(text, "\nwindow: {} tokens", grouped(tokens));
        }
    }
    if let Some(usage) = report.usage {
        let (dim, prompt) = (style::DIM, grouped(usage.prompt()));
        let _ = writeln!(
            text,
            "{dim}the provider last reported {prompt} tokens{dim:#}"
        );
    }
    if tokens == 0 {
        return;
    }
    let segments = segments(report);
    let _ = writeln!(text, "\nfilled with\n{}", bar::render(&segments, colour));
    let shown = segments.iter().filter(|segment| segment.amount > 0);
    let legend: Vec<String> = shown.map(|segment| key(segment, colour)).collect();
    let _ = writeln!(text, "{}", legend.join("  "));
}

/// How much of the window is taken.
fn gauge(text: &mut String, tokens: u64, size: u64, colour: bool) {
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
    let _ = writeln!(text, "{}", bar::render(&segments.map(segment), colour));
}

fn key(segment: &Segment, colour: bool) -> String {
    let style = segment.style;
    let mark = if colour { '\u{25A0}' } else { segment.letter };
    format!(
        "{style}{mark}{style:#} {} {}",
        segment.name,
        short(segment.amount)
    )
}

fn segments(report: &Report) -> [Segment; 6] {
    let roles = &report.roles;
    [
        ("system", 'S', style::SYSTEM, roles.system),
        ("tools", 'T', style::TOOLS, report.regions.tools),
        ("summary", 'Z', style::SUMMARY, roles.summary),
        ("user", 'U', style::USER, roles.user),
        ("assistant", 'A', style::ASSISTANT, roles.assistant),
        ("outputs", 'O', style::OUTPUT, roles.tool),
    ]
    .map(segment)
}

fn segment((name, letter, style, amount): (&'static str, char, TextStyle, u64)) -> Segment {
    Segment {
        name,
        letter,
        style,
        amount,
    }
}

fn regions(text: &mut String, report: &Report) {
    let (regions, roles) = (&report.regions, &report.roles);
    let total = report.window.tokens;
    let rows = [
        ("system", regions.system, "system", roles.system),
        ("tools", regions.tools, "user", roles.user),
        ("summary", regions.summary, "assistant", roles.assistant),
        ("log", regions.log, "  thoughts", roles.reasoning),
        ("", 0, "  calls", roles.calls),
        ("", 0, "tool", roles.tool),
    ];
    let strong = style::STRONG;
    let _ = writeln!(
        text,
        "\n{strong}{:<10} {:>10} {:>6}    {:<12} {:>10} {:>6}{strong:#}",
        "region", "tokens", "share", "role", "tokens", "share"
    );
    for (region, tokens, role, of_role) in rows {
        let left = if region.is_empty() {
            " ".repeat(28)
        } else {
            let share = percent(tokens, total);
            format!("{region:<10} {:>10} {share:>6}", grouped(tokens))
        };
        let share = percent(of_role, total);
        let _ = writeln!(
            text,
            "{left}    {role:<12} {:>10} {share:>6}",
            grouped(of_role)
        );
    }
}

fn largest(text: &mut String, report: &Report) {
    if report.outputs.largest.is_empty() {
        return;
    }
    let strong = style::STRONG;
    let _ = writeln!(
        text,
        "\n{strong}{:<16} {:>8} {:<28} {:>8} {:>8} {:>6}{strong:#}",
        "largest outputs", "message", "tool", "bytes", "tokens", "share"
    );
    for (rank, output) in report.outputs.largest.iter().enumerate() {
        let share = percent(output.tokens, report.window.tokens);
        let tool: String = visible(&output.tool).chars().take(28).collect();
        let _ = writeln!(
            text,
            "{:>15}  {:>8} {tool:<28} {:>8} {:>8} {share:>6}",
            rank + 1,
            output.message,
            grouped(output.bytes as u64),
            grouped(output.tokens),
        );
    }
}

fn repeats(text: &mut String, report: &Report) {
    let outputs = &report.outputs;
    if outputs.repeated == 0 {
        return;
    }
    let strong = style::STRONG;
    let _ = writeln!(
        text,
        "\n{strong}repeated outputs{strong:#}: {} of {} say what an earlier one says, {} tokens ({})",
        outputs.repeated,
        report.counts.outputs,
        grouped(outputs.repeated_tokens),
        percent(outputs.repeated_tokens, report.window.tokens),
    );
    for repeat in &outputs.repeats {
        let _ = writeln!(
            text,
            "  message {} repeats message {} ({}, {} tokens)",
            repeat.message,
            repeat.first,
            visible(&repeat.tool),
            grouped(repeat.tokens),
        );
    }
}

fn faults(text: &mut String, report: &Report) {
    if report.faults.is_empty() {
        let good = style::GOOD;
        let _ = writeln!(
            text,
            "\n{good}no faults{good:#}: a provider would accept it"
        );
        return;
    }
    let bad = style::BAD;
    let number = counted(report.faults.len(), "fault");
    let _ = writeln!(text, "\n{bad}{number}{bad:#}: a provider would refuse it");
    for fault in report.faults.iter().take(FAULTS) {
        let _ = writeln!(
            text,
            "  message {}: {}",
            fault.message,
            visible(&fault.text)
        );
    }
    let rest = report.faults.len().saturating_sub(FAULTS);
    if rest > 0 {
        let _ = writeln!(text, "  and {rest} more; --json gives them all");
    }
}
