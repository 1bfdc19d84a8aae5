//! The log line of one request, for a terminal.

use std::fmt::Write as _;

use trimtab_proxy::{Record, RecordAction};

use super::savings::tokens_line;
use crate::ui::clipped::clipped;
use crate::ui::number::{counted, short};
use crate::ui::style::{self, TextStyle};
use crate::ui::visible::visible;

/// The maximum width of a line.
const WIDTH: usize = 100;
/// The widths of the session and the model.
const SESSION: usize = 8;
const MODEL: usize = 20;

/// The line of a request: time (UTC), session, model, prompt tokens before and after, savings, and
/// other events. At most 100 columns.
pub fn request_line(record: &Record) -> String {
    let (dim, tone) = (style::DIM, tone(record));
    let time = time_of_day(record.time_ms);
    // Session names of the proxy start with the tenant, which is the same on all lines.
    let session = record.session.rsplit('/').next().unwrap_or_default();
    let session = field(if session.is_empty() { "-" } else { session }, SESSION);
    let model = if record.model.is_empty() {
        &record.path
    } else {
        &record.model
    };
    let model = field(model, MODEL);
    let front = format!("{time} {session} {model} ");
    let room = WIDTH.saturating_sub(front.chars().count());
    let text = action_text(record);
    let text = visible(&text);
    // Escape first, then clip: an escaped character is longer than the original.
    let text = clipped(&text, room);
    format!("{dim}{time}{dim:#} {session} {model} {tone}{text}{tone:#}")
}

/// Describes what was done.
fn action_text(record: &Record) -> String {
    let mut text = String::new();
    // Status 0 means that no answer was sent.
    if record.status >= 400 || record.status == 0 {
        // Writing into a String cannot fail.
        let _ = write!(text, "status {}, ", record.status);
    }
    let tokens = record.saved;
    let (came, sent) = (short(tokens.without), short(tokens.with));
    match record.action {
        RecordAction::Edited if tokens.without > 0 => {
            let _ = write!(text, "{came} -> {sent}, {}", tokens_line(&tokens));
        }
        RecordAction::Observed => {
            let (came, would) = (short(record.tokens_before), short(record.tokens_after));
            let _ = write!(text, "{came}, would be {would}");
        }
        RecordAction::Asked => {
            let _ = write!(text, "{sent} for a summary");
        }
        _ if tokens.with > 0 => {
            let _ = write!(text, "{sent}, unchanged");
        }
        other => text.push_str(other.as_str()),
    }
    if !record.reason.is_empty() {
        let _ = write!(text, " ({})", record.reason);
    }
    let times = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    if record.recoveries > 0 {
        let recovered = counted(times(record.recoveries), "overflow");
        let _ = write!(text, ", {recovered} recovered");
    }
    if record.retrievals > 0 {
        let outputs = counted(times(record.retrievals), "output");
        let _ = write!(text, ", {outputs} retrieved");
    }
    if !record.repairs.is_empty() {
        let _ = write!(text, ", repaired {}", record.repairs);
    }
    if !record.assumed_model.is_empty() {
        let _ = write!(text, ", assumed to be like {}", record.assumed_model);
    }
    if record.cut {
        text.push_str(", cut off");
    }
    if !record.detail.is_empty() {
        let _ = write!(text, ": {}", record.detail);
    }
    text
}

fn tone(record: &Record) -> TextStyle {
    if record.status >= 400 || record.status == 0 {
        style::BAD
    } else if record.action == RecordAction::Edited {
        style::GOOD
    } else {
        TextStyle::Plain
    }
}

/// The time of day of a Unix time in milliseconds, as HH:MM:SS.
fn time_of_day(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let (hour, minute) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hour:02}:{minute:02}:{:02}Z", seconds % 60)
}

/// Pads or cuts `text` to exactly `width` columns.
fn field(text: &str, width: usize) -> String {
    let text = visible(text);
    let text = clipped(&text, width);
    format!("{text:<width$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use trimtab_model::{Dialect, SavedTokens, Usage};

    /// The line without its styles.
    fn plain(record: &Record) -> String {
        use std::io::Write as _;
        let mut out = crate::ui::visible::VisibleWriter::new(Vec::new(), false);
        write!(out, "{}", request_line(record)).unwrap();
        String::from_utf8(out.raw().clone()).unwrap()
    }

    fn edited() -> Record {
        Record {
            time_ms: 45_296_000,
            dialect: Some(Dialect::Messages),
            model: "claude-sonnet-4-5".to_owned(),
            session: "proxy/8e01aa/messages/4ee4a1b2c3d4".to_owned(),
            action: RecordAction::Edited,
            status: 200,
            saved: SavedTokens::of_changed(58_000, 31_000, Some(32_000), None),
            usage: Some(Usage {
                input: 32_000,
                ..Usage::default()
            }),
            ..Record::default()
        }
    }

    #[test]
    fn request_fits_one_line() {
        assert_eq!(
            plain(&edited()),
            "12:34:56Z 4ee4a1b\u{2026} claude-sonnet-4-5    59k -> 32k, 27k tokens saved (46 %)"
        );
    }

    #[test]
    fn request_line_has_at_most_100_columns() {
        let long = Record {
            detail: "\u{1b}[2J the upstream sent a long text\n".repeat(20),
            repairs: "a,b".repeat(40),
            ..edited()
        };
        let line = plain(&long);
        assert_eq!(line.chars().count(), 100, "{line}");
        assert!(!line.contains('\u{1b}') && !line.contains('\n'), "{line}");
    }

    #[test]
    fn failed_request_line_shows_the_status() {
        let failed = Record {
            status: 529,
            action: RecordAction::Unchanged,
            saved: SavedTokens::default(),
            ..edited()
        };
        assert!(plain(&failed).ends_with("status 529, unchanged"));
    }
}
