//! The command `/context`: draws how the window is filled, by region, with the thresholds.

use std::fmt::Write;

use trimtab::engine::policy::Policy;
use trimtab::engine::trigger::{Metric, Trigger, TriggerInputs, TriggerRule};
use trimtab::session::{Session, SessionError};
use trimtab_model::estimate::Measure;
use trimtab_model::{Message, MessageKind, Role, Usage};

use super::text::wrapped;
use crate::exit::Failure;
use crate::ui::bar::{self, BarSegment};
use crate::ui::clipped::clipped;
use crate::ui::number::{counted, grouped, percent};
use crate::ui::style;

/// The tokens in a window, by region.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowFill {
    system: u64,
    tools: u64,
    summary: u64,
    user: u64,
    assistant: u64,
    outputs: u64,
    /// The room reserved for the answer.
    answer: u64,
    window: Option<u64>,
    messages: usize,
    output_count: usize,
    thresholds: Vec<FillThreshold>,
}

/// A size at which something happens.
#[derive(Clone, Debug)]
struct FillThreshold {
    /// What happens, and when.
    text: String,
    /// Its position on the bar in tokens, unless it does not depend on tokens.
    at: Option<u64>,
}

impl WindowFill {
    /// Measures the window that the session would send now.
    pub(super) fn of(session: &mut Session) -> Result<Self, Failure> {
        let mut filled = Self::default();
        let mut measures = [Measure::default(); 5];
        let failure = |error: SessionError| Failure::WithHint {
            message: error.to_string(),
            hint: None,
        };
        let inputs = session.trigger_inputs().map_err(failure)?;
        let window = session.window().map_err(failure)?;
        for message in window.messages() {
            filled.messages += 1;
            filled.output_count += message.outputs().count();
            if let Some(measure) = measures.get_mut(region(message)) {
                *measure += Measure::of(message);
            }
        }
        let setup = session.setup();
        let tokens = |measure: &Measure| setup.calibration.tokens(measure);
        let figures = measures.map(|measure| tokens(&measure));
        [
            filled.system,
            filled.summary,
            filled.user,
            filled.assistant,
            filled.outputs,
        ] = figures;
        filled.tools = tokens(&setup.tools);
        filled.window = setup.limits.window;
        filled.answer = setup.limits.max_output.unwrap_or_default();
        filled.thresholds = filled.thresholds(&setup.policy, &inputs);
        Ok(filled)
    }

    /// The tokens in the window.
    fn used_tokens(&self) -> u64 {
        self.system + self.tools + self.summary + self.user + self.assistant + self.outputs
    }

    fn thresholds(&self, policy: &Policy, inputs: &TriggerInputs) -> Vec<FillThreshold> {
        let compaction = &policy.compaction;
        let mut found = Vec::new();
        if compaction.enabled && compaction.auto {
            let triggers = compaction.when.iter();
            let has_figure = |trigger: &&Trigger| trigger.value.figure(self.window).is_some();
            if compaction.rule == TriggerRule::FirstKnown {
                // Only the first trigger whose figure is known decides.
                let decides = triggers
                    .clone()
                    .find(has_figure)
                    .or(triggers.clone().next());
                found.extend(decides.map(|trigger| self.compaction_threshold(trigger, inputs)));
            } else {
                found.extend(triggers.map(|trigger| self.compaction_threshold(trigger, inputs)));
            }
        } else {
            let text = if compaction.enabled {
                "compacts only on request"
            } else {
                "never compacts"
            };
            found.push(FillThreshold {
                text: text.to_owned(),
                at: None,
            });
        }
        found.extend(self.ageing_thresholds(policy));
        if let Some(window) = self.window {
            found.push(FillThreshold {
                text: "full: the rest is reserved for the answer".to_owned(),
                at: Some(window.saturating_sub(self.answer)),
            });
        }
        found
    }

    /// The threshold of a compaction trigger: as far from here as the decision has to go.
    fn compaction_threshold(&self, trigger: &Trigger, inputs: &TriggerInputs) -> FillThreshold {
        let figure = trigger.value.figure(self.window);
        let is_of_tokens = trigger.metric != Metric::Messages;
        let at = figure.filter(|_| is_of_tokens).map(|figure| {
            // Before the first answer, no usage is known, and the bar is the best guess.
            let used = self.used_tokens();
            let measured = trigger.metric.of(inputs).unwrap_or(used);
            used.saturating_add(figure).saturating_sub(measured)
        });
        let text = match (figure, at) {
            (None, _) => {
                format!("compacts when {trigger}: unknown, because the window is unknown")
            }
            (Some(figure), None) => {
                format!("compacts when {trigger}: {} of {figure}", inputs.messages)
            }
            (Some(_), Some(_)) => format!("compacts when {trigger}"),
        };
        FillThreshold { text, at }
    }

    /// The thresholds at which old outputs are shortened.
    fn ageing_thresholds(&self, policy: &Policy) -> Vec<FillThreshold> {
        let ageing = &policy.ageing;
        let mut found = Vec::new();
        if ageing.placeholder.enabled {
            let budget = ageing.placeholder.budget.resolve(self.window);
            found.push(format!(
                "trims the oldest outputs above {} tokens of outputs: {} now",
                grouped(budget),
                grouped(self.outputs)
            ));
        }
        if ageing.prefix.enabled && ageing.prefix.input_budget > 0 {
            let budget = grouped(ageing.prefix.input_budget);
            found.push(format!("trims old outputs above {budget} tokens of input"));
        }
        if ageing.archive.enabled {
            let cutoff = counted(ageing.archive.cutoff, "output");
            found.push(format!(
                "archives outputs above {cutoff}: {} now",
                self.output_count
            ));
        }
        let lines = found.into_iter();
        let lines = lines.map(|text| FillThreshold { text, at: None });
        lines.chain(self.rewrite_threshold(policy)).collect()
    }

    /// The threshold at which old text is shortened regardless of cost.
    fn rewrite_threshold(&self, policy: &Policy) -> Option<FillThreshold> {
        let rewrite = &policy.ageing.rewrite;
        let around = self.tools + self.answer;
        let room = self
            .window
            .filter(|_| rewrite.enabled)?
            .saturating_sub(around);
        Some(FillThreshold {
            text: "old text is shortened in any case".to_owned(),
            // The mark counts messages only, and the bar begins with the tools.
            at: Some(self.tools + rewrite.high_mark(room)),
        })
    }

    fn segments(&self) -> [BarSegment; 8] {
        let free = self
            .window
            .unwrap_or(0)
            .saturating_sub(self.used_tokens() + self.answer);
        [
            ("system", 'S', style::SYSTEM, self.system),
            ("tools", 'T', style::TOOLS, self.tools),
            ("summary", 'Z', style::SUMMARY, self.summary),
            ("user", 'U', style::USER, self.user),
            ("assistant", 'A', style::ASSISTANT, self.assistant),
            ("outputs", 'O', style::OUTPUT, self.outputs),
            ("free", '.', style::FREE, free),
            (
                "answer",
                'R',
                style::STRONG,
                self.window.map_or(0, |_| self.answer),
            ),
        ]
        .map(BarSegment::from)
    }
}

/// The index of the region of a message: system, summary, user, assistant, outputs.
fn region(message: &Message) -> usize {
    if matches!(
        message.meta.kind,
        Some(MessageKind::Summary | MessageKind::Retain | MessageKind::ToolSummary)
    ) {
        return 1;
    }
    match message.role {
        Role::System => 0,
        Role::User => 2,
        Role::Assistant => 3,
        Role::Tool => 4,
    }
}

/// Draws the window in `width` characters.
pub(super) fn render(
    fill: &WindowFill,
    (model, preset): (&str, &str),
    usage: Option<&Usage>,
    (width, colour): (usize, bool),
) -> String {
    let mut text = String::new();
    let used = fill.used_tokens();
    let of_window = match fill.window {
        Some(window) => format!(
            "{} of {} tokens ({})",
            grouped(used),
            grouped(window),
            percent(used, window)
        ),
        None => format!("{} tokens, unknown window", grouped(used)),
    };
    let messages = counted(fill.messages, "message");
    let heading = format!(
        "{}, {preset}: {of_window}, {messages}",
        clipped(model, width)
    );
    let _ = writeln!(text, "{}", wrapped(&heading, width, 2));
    let segments = fill.segments();
    let whole = bar::WIDTH.min(width.saturating_sub(2)).max(1);
    let _ = writeln!(text, "{}", bar::render_in(&segments, colour, whole));
    marks(&mut text, fill, whole, colour);
    regions(&mut text, fill, &segments, colour);
    thresholds(&mut text, fill, width);
    if let Some(usage) = usage {
        let reported = format!(
            "the provider last reported {} tokens",
            grouped(usage.prompt())
        );
        let dim = style::DIM;
        let _ = writeln!(text, "{dim}{}{dim:#}", wrapped(&reported, width, 2));
    }
    text
}

/// The line below the bar with the numbers of the thresholds.
fn marks(text: &mut String, fill: &WindowFill, whole: usize, colour: bool) {
    let Some(window) = fill.window.filter(|window| *window > 0) else {
        return;
    };
    let mut line = vec![' '; whole + 1];
    for (number, threshold) in numbered(fill) {
        let Some(at) = threshold.at else { continue };
        // The product may exceed 64 bits for a huge window.
        let column = u128::from(at.min(window)) * whole as u128 / u128::from(window);
        let column = usize::try_from(column)
            .unwrap_or(whole)
            .min(whole.saturating_sub(1));
        let digit = char::from_digit(number % 10, 10).unwrap_or('^');
        // If two thresholds share a column, the second moves right to a free one.
        let free = line.iter().skip(column).position(|c| *c == ' ');
        if let Some(place) = line.get_mut(column + free.unwrap_or(0)) {
            *place = digit;
        }
    }
    let line: String = line.into_iter().collect();
    let line = line.trim_end();
    if !line.is_empty() {
        let edge = if colour { "" } else { " " };
        let _ = writeln!(text, "{edge}{line}");
    }
}

fn numbered(fill: &WindowFill) -> impl Iterator<Item = (u32, &FillThreshold)> {
    (1..).zip(&fill.thresholds)
}

fn regions(text: &mut String, fill: &WindowFill, segments: &[BarSegment], colour: bool) {
    let whole = fill.window.unwrap_or_else(|| fill.used_tokens());
    for segment in segments.iter().filter(|segment| segment.amount > 0) {
        let style = segment.style;
        let mark = match (colour, segment.letter) {
            (true, '.') => '\u{2591}',
            (true, _) => '\u{2588}',
            (false, letter) => letter,
        };
        let _ = writeln!(
            text,
            "{style}{mark}{style:#} {:<10} {:>10} {:>6}",
            segment.name,
            grouped(segment.amount),
            percent(segment.amount, whole),
        );
    }
}

fn thresholds(text: &mut String, fill: &WindowFill, width: usize) {
    let used = fill.used_tokens();
    for (number, threshold) in numbered(fill) {
        let left = match threshold.at {
            Some(at) if at > used => {
                format!(", at {}: {} to go", grouped(at), grouped(at - used))
            }
            Some(at) => format!(", at {}: now", grouped(at)),
            None => String::new(),
        };
        let line = format!("{number} {}{left}", threshold.text);
        let _ = writeln!(text, "{}", wrapped(&line, width, 2));
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::ui::visible::VisibleWriter;

    fn filled(preset: &str, window: Option<u64>) -> WindowFill {
        let mut fill = WindowFill {
            system: 100,
            tools: 900,
            user: 500,
            assistant: 1_500,
            outputs: 7_000,
            answer: 4_000,
            window,
            messages: 12,
            ..WindowFill::default()
        };
        let mut policy = Policy::preset(preset).unwrap();
        if preset == "steady" {
            policy.compaction.when = vec!["call > 85 % of window".parse().unwrap()];
            policy.ageing.rewrite.high_percent = 90;
        }
        let inputs = TriggerInputs {
            window,
            call_tokens: 14_000,
            log_tokens: 9_900,
            ..TriggerInputs::default()
        };
        fill.thresholds = fill.thresholds(&policy, &inputs);
        fill
    }

    fn drawn(fill: &WindowFill, width: usize) -> String {
        let text = render(fill, ("gpt-4o", "steady"), None, (width, false));
        let mut shown = VisibleWriter::new(Vec::new(), false);
        shown.write_all(text.as_bytes()).unwrap();
        String::from_utf8(shown.raw().clone()).unwrap()
    }

    #[test]
    fn regions_and_thresholds_are_drawn_at_their_positions() {
        let text = drawn(&filled("steady", Some(20_000)), 80);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[0],
            "gpt-4o, steady: 10,000 of 20,000 tokens (50 %), 12 messages"
        );
        assert_eq!(lines[1].chars().count(), bar::WIDTH + 2);
        // 85 % of 20,000 less the answer: 13,000, which is 65 % of the bar.
        assert_eq!(lines[2].find('1'), Some(1 + bar::WIDTH * 65 / 100));
        // 90 % of the 15,100 that are left for messages, plus the tools: 14,490.
        assert_eq!(lines[2].find('2'), Some(1 + bar::WIDTH * 14_490 / 20_000));
        assert!(text.contains("2 old text is shortened in any case, at 14,490"));
        assert_eq!(lines[2].find('3'), Some(1 + bar::WIDTH * 80 / 100));
        assert!(text.contains("1 compacts when call > 85 % of window, at 13,000: 3,000 to go"));
        assert!(text.contains("O outputs         7,000   35 %"), "{text}");
    }

    #[test]
    fn picture_fits_the_terminal() {
        for preset in trimtab::engine::policy::PRESETS {
            for window in [None, Some(20_000), Some(9_000)] {
                for width in [20, 40, 80] {
                    let text = drawn(&filled(preset.name, window), width.max(31));
                    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
                    assert!(widest <= width.max(31), "{}\n{text}", preset.name);
                }
            }
        }
    }
}
