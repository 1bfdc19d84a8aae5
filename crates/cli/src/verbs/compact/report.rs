//! The report of a compaction.

use std::cmp::Ordering;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use serde::Serialize;
use trimtab_model::Ref;
use trimtab_wire::transcript::Conversation;

use super::compact_conversation::CompactedConversation;
use super::{CompactArgs, target};
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::number::{counted, grouped, percent};
use crate::ui::visible::{visible, visible_json};
use crate::ui::{Terminal, style};

/// How many refs are listed before the rest is only counted.
const REFS: usize = 5;

/// The report for one conversation.
#[derive(Debug, Serialize)]
pub(super) struct CompactReport {
    file: String,
    output: String,
    id: Option<String>,
    form: &'static str,
    tokens_before: u64,
    tokens_after: u64,
    messages_before: usize,
    messages_after: usize,
    messages_replaced: usize,
    outputs_shortened: usize,
    /// `model`, `deterministic`, or none.
    summary: Option<&'static str>,
    originals: Originals,
    notes: Vec<String>,
    /// Commands that continue the session.
    next_steps: Vec<String>,
    #[serde(skip)]
    read_command: String,
}

/// The refs of everything that left the transcript.
#[derive(Debug, Serialize)]
struct Originals {
    store: String,
    session: String,
    /// The original transcript.
    transcript: Option<String>,
    /// The replaced messages.
    replaced: Vec<String>,
    /// The outputs that are shown shorter.
    outputs: Vec<String>,
}

impl CompactReport {
    pub(super) fn new(
        file: &str,
        output: &Path,
        store: &Path,
        conversation: &Conversation,
        compacted: CompactedConversation,
    ) -> Self {
        let ids = |refs: &[Ref]| refs.iter().map(|found| found.id().to_owned()).collect();
        Self {
            file: file.to_owned(),
            output: output.display().to_string(),
            id: conversation.id.clone(),
            form: conversation.form.as_str(),
            tokens_before: compacted.tokens_before,
            tokens_after: compacted.tokens_after,
            messages_before: compacted.messages_before,
            messages_after: compacted.sent.len(),
            messages_replaced: compacted.replaced,
            outputs_shortened: compacted.shortened.len(),
            summary: compacted
                .summary_by_model
                .map(|by_model| if by_model { "model" } else { "deterministic" }),
            originals: Originals {
                store: store.display().to_string(),
                session: compacted.session.to_string(),
                transcript: compacted.original.map(|found| found.id().to_owned()),
                replaced: ids(&compacted.refs),
                outputs: ids(&compacted.shortened),
            },
            notes: compacted.notes,
            next_steps: Vec::new(),
            read_command: compacted.read_command,
        }
    }

    /// The report with its next steps.
    pub(super) fn with_steps(mut self, steps: Vec<String>) -> Self {
        self.next_steps = steps;
        self
    }

    fn text(&self) -> String {
        let (strong, dim) = (style::STRONG, style::DIM);
        let mut text = String::new();
        let name = visible(self.id.as_deref().unwrap_or(&self.file));
        let _ = writeln!(text, "{strong}{name}{strong:#} {dim}|{dim:#} {}", self.form);
        let mut line = |what: &str, value: &str| {
            let _ = writeln!(text, "{dim}{what:<10}{dim:#} {}", visible(value));
        };
        line("tokens", &change(self.tokens_before, self.tokens_after));
        let (before, after) = (self.messages_before, self.messages_after);
        let left_out = match self.summary {
            Some(_) => "replaced",
            // Without a summary, only messages that repeat others are missing.
            None => "left out",
        };
        let replaced = format!("{} {left_out}", self.messages_replaced);
        let shorter = counted(self.outputs_shortened, "output");
        line(
            "messages",
            &format!("{before} -> {after}: {replaced}, {shorter} shown shorter"),
        );
        line(
            "summary",
            match self.summary {
                None => "none: no round was replaced",
                Some("model") => "written by the model",
                Some(_) => "written without a model",
            },
        );
        let originals = &self.originals;
        line(
            "originals",
            &format!("{}, session {}", originals.store, originals.session),
        );
        if let Some(transcript) = &originals.transcript {
            line("", &format!("{transcript}  the original transcript"));
        }
        list(&mut line, &originals.replaced, "replaced messages");
        list(&mut line, &originals.outputs, "an output shown shorter");
        for note in &self.notes {
            line("note", note);
        }
        for (at, step) in self.next_steps.iter().enumerate() {
            line(if at == 0 { "next" } else { "" }, step);
        }
        text
    }
}

/// The tokens before and after, and their difference.
fn change(before: u64, after: u64) -> String {
    let tokens = format!("{} -> {}", grouped(before), grouped(after));
    let share = percent(before.abs_diff(after), before);
    match after.cmp(&before) {
        // There is no share of nothing.
        _ if before == 0 => tokens,
        Ordering::Less => format!("{tokens} ({share} less)"),
        Ordering::Equal => format!("{tokens} (unchanged)"),
        // What Trimtab adds may be longer than what it replaces.
        Ordering::Greater => format!("{tokens} ({share} more)"),
    }
}

fn list(line: &mut impl FnMut(&str, &str), refs: &[String], what: &str) {
    for found in refs.iter().take(REFS) {
        line("", &format!("{found}  {what}"));
    }
    if refs.len() > REFS {
        line("", &format!("and {} more", refs.len() - REFS));
    }
}

/// Prints the reports to standard output, or to standard error if the transcript goes to standard
/// output.
pub(super) fn print(
    reports: &[CompactReport],
    args: &CompactArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    for (at, report) in reports.iter().enumerate() {
        let text = if common.json {
            visible_json(report) + "\n"
        } else {
            let gap = if at > 0 { "\n" } else { "" };
            format!("{gap}{}", report.text())
        };
        if target::is_stdout(&args.output) {
            terminal.note(text.trim_end());
        } else {
            terminal.out().write_all(text.as_bytes())?;
        }
    }
    if let Some(report) = reports.first().filter(|_| !common.json) {
        terminal.note(&visible(&format!("read one: {} REF", report.read_command)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::change;

    #[test]
    fn change_of_tokens_says_more_or_less() {
        assert_eq!(change(2_000, 500), "2,000 -> 500 (75 % less)");
        assert_eq!(change(3_282, 3_292), "3,282 -> 3,292 (<1 % more)");
        assert_eq!(change(7, 7), "7 -> 7 (unchanged)");
        assert_eq!(change(0, 12), "0 -> 12");
    }
}
