//! Short descriptions of calls, outputs and events.

use std::fmt::Write;

use serde_json::Value;
use trimtab::session;
use trimtab::session::SessionEventKind;
use trimtab::wire::catalogue::Prices;
use trimtab_agent::{AgentEvent, TurnResult};
use trimtab_model::{Call, Output};

use super::text::on_one_line;
use crate::ui::clipped::clipped;
use crate::ui::number::{counted, grouped};
use crate::ui::visible::{visible, visible_lines};

/// The maximum length of a line whose width does not matter.
pub(super) const WIDE: usize = 160;
/// How many lines of an output are shown.
const LINES: usize = 5;

/// A call on one line: the tool and its arguments.
pub(super) fn call(call: &Call, width: usize) -> String {
    let arguments = match serde_json::from_str::<Value>(&call.arguments) {
        Ok(Value::Object(arguments)) => {
            let alone = arguments.len() == 1;
            let pairs = arguments.iter().map(|(name, value)| match value {
                // A single argument needs no name.
                Value::String(text) if alone => text.clone(),
                Value::String(text) => format!("{name}={text}"),
                value => format!("{name}={value}"),
            });
            pairs.collect::<Vec<_>>().join(" ")
        }
        _ => call.arguments.clone(),
    };
    let line = format!("{} {arguments}", call.name);
    clipped(&on_one_line(&line), width).into_owned()
}

/// The first lines of an output, and how much more there is.
pub(super) fn output(output: &Output, width: usize) -> Vec<String> {
    let text = output.text();
    let mut lines: Vec<String> = text
        .lines()
        .take(LINES)
        .map(|line| clipped(&visible(&line.replace('\t', "    ")), width).into_owned())
        .collect();
    let stored = output.stored.as_ref();
    let seen = text.lines().count();
    let whole = stored.and_then(trimtab_model::Ref::line_count);
    // If the view omits nothing, count the lines of the view.
    let whole = match whole.filter(|_| output.trimmed) {
        Some(whole) => usize::try_from(whole).unwrap_or(usize::MAX),
        None => seen,
    };
    if whole > lines.len() {
        let of = format!("{} of {}", lines.len(), counted(whole, "line"));
        let how = stored.map(|stored| format!("/output {}", stored.id()));
        match how {
            Some(how) if of.len() + how.len() + 4 <= width => lines.push(format!("({of}: {how})")),
            // The ref gets its own line, because a wrapped ref cannot be copied.
            how => lines.extend([Some(format!("({of})")), how].into_iter().flatten()),
        }
    }
    if lines.is_empty() {
        lines.push("(no output)".to_owned());
    }
    lines
}

/// An event of the session in a line or two.
pub(super) fn session(event: &session::SessionEvent) -> Option<String> {
    let saved = || {
        format!(
            "saved {} ({} to {})",
            counted(
                usize::try_from(event.tokens_saved()).unwrap_or(usize::MAX),
                "token"
            ),
            grouped(event.tokens_before),
            grouped(event.tokens_after)
        )
    };
    let messages = || {
        let before = counted(event.messages_before, "message");
        format!("{before} became {}", grouped(event.messages_after as u64))
    };
    let text = match event.kind {
        SessionEventKind::Compacted => {
            format!(
                "compacted: {}; {}{}",
                saved(),
                messages(),
                author_and_cost(event)
            )
        }
        SessionEventKind::Trimmed => format!("trimmed: {}", saved()),
        SessionEventKind::Dropped => format!(
            "dropped, with a note to the model: {}; {}",
            saved(),
            messages()
        ),
        SessionEventKind::Undone => format!(
            "reverted: {} tokens ({} before); {}",
            grouped(event.tokens_after),
            grouped(event.tokens_before),
            messages()
        ),
        SessionEventKind::NoOp if event.note.is_some() => "nothing was done".to_owned(),
        SessionEventKind::NoOp => "no change: the window would not get smaller".to_owned(),
        SessionEventKind::Stale => "a summary came too late and was not used".to_owned(),
        SessionEventKind::AnswerLowered => "room is short".to_owned(),
        SessionEventKind::Suspended | SessionEventKind::Warning => String::new(),
        _ => return None,
    };
    let note = event.note.as_deref().map(visible_lines);
    // The actions of a plan are already a list; the note is one more entry.
    let separator = match event.kind {
        SessionEventKind::Compacted | SessionEventKind::Dropped => "; ",
        // The diagnostic line of a design is on its own line, as the design requires.
        SessionEventKind::Trimmed => "\n",
        _ => ": ",
    };
    Some(match (text.is_empty(), note) {
        (_, None) => text,
        (true, Some(note)) => note.into_owned(),
        (false, Some(note)) => format!("{text}{separator}{note}"),
    })
}

/// Who wrote a summary, if it was no model, and its cost.
fn author_and_cost(event: &session::SessionEvent) -> String {
    let mut text = String::new();
    if !event.by_model {
        text.push_str("; no model wrote the summary");
    }
    if let Some(cost) = event.cost {
        let _ = write!(text, "; ${cost:.4}");
    }
    text
}

/// A problem with the model that the agent handles itself.
pub(super) fn model_trouble(event: &AgentEvent) -> Option<String> {
    Some(match event {
        AgentEvent::Retry { attempt, wait, why } => format!(
            "attempt {attempt} failed ({}); retrying in {:.1} s",
            on_one_line(why),
            wait.as_secs_f64()
        ),
        AgentEvent::BrokeOff { why } => {
            format!(
                "the answer was cut off ({}); the model continues",
                on_one_line(why)
            )
        }
        _ => return None,
    })
}

/// The usage of a turn.
pub(super) fn usage_line(turn: &TurnResult, prices: Option<&Prices>) -> String {
    let usage = &turn.usage;
    let mut text = counted(turn.rounds as usize, "round");
    if usage.total() > 0 {
        let _ = write!(text, ", {} tokens in", grouped(usage.prompt()));
        if usage.cache_read > 0 {
            let _ = write!(text, " ({} cached)", grouped(usage.cache_read));
        }
        let _ = write!(text, ", {} out", grouped(usage.output));
        if let Some(prices) = prices {
            let _ = write!(text, ", ${:.4}", prices.cost(usage).dollars());
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_short() {
        let shown = |arguments: &str| call(&Call::new("1", "read", arguments), 30);
        assert_eq!(shown(r#"{"path": "a\nb"}"#), "read a b");
        assert_eq!(shown(r#"{"path": "a", "limit": 3}"#), "read limit=3 path=a");
        assert_eq!(shown("not json\u{1b}[1m"), "read not json\\u{1b}[1m");
        assert_eq!(
            shown(&format!("{{\"path\": \"{}\"}}", "x".repeat(99)))
                .chars()
                .count(),
            30
        );
    }

    #[test]
    fn outputs_are_short() {
        let long = (1..=9).fold(String::new(), |text, n| text + &format!("line {n}\n"));
        let lines = output(&Output::new("1", long), 20);
        assert_eq!(lines.len(), LINES + 1);
        assert_eq!(
            (lines[0].as_str(), lines[5].as_str()),
            ("line 1", "(5 of 9 lines)")
        );
        let stored = Output {
            stored: Some(trimtab_testkit::made_ref("abcdefgh", None, None)),
            ..Output::new("1", "1\n2\n3\n4\n5\n6\n")
        };
        assert_eq!(
            output(&stored, 80)[5..],
            ["(5 of 6 lines: /output abcdefgh)"]
        );
        assert_eq!(
            output(&stored, 20)[5..],
            ["(5 of 6 lines)", "/output abcdefgh"]
        );
        assert_eq!(output(&Output::new("1", ""), 20), ["(no output)"]);
        assert_eq!(output(&Output::new("1", "\u{1b}[2J"), 20), ["\\u{1b}[2J"]);
    }
}
