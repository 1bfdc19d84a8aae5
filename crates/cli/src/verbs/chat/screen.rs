//! Shows the conversation on the terminal.

use std::io::{self, Write};

use terminal_size::{Height, Width, terminal_size};
use trimtab::session::SessionEventKind;
use trimtab_agent::AgentEvent;
use trimtab_model::Output;

use super::event_text;
use super::text::{on_one_line, wrapped};
use super::word_wrap::WordWrap;
use crate::exit::{Failure, with_hint};
use crate::ui::clipped::clipped;
use crate::ui::number::counted;
use crate::ui::progress::Progress;
use crate::ui::style::{self, TextStyle};
use crate::ui::{self, Terminal};

/// The width if the terminal does not report one.
const USUAL: usize = 80;
/// Below this width, the terminal breaks lines itself.
const NARROWEST: usize = 20;

/// Longer typed or pasted text is abbreviated after it is sent.
const MOST_TYPED_ROWS: usize = 10;

/// The text of the spinner while the model works.
const MODEL: &str = "waiting for the model, Ctrl-C interrupts";

/// The kind of text at the cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScreenCursor {
    /// The start of a line.
    Start,
    /// The answer.
    Answer,
    /// The model's reasoning.
    Thought,
}

/// The conversation on the terminal.
pub(super) struct Screen<'t> {
    terminal: &'t mut Terminal,
    cursor: ScreenCursor,
    /// The kind of text that is streaming; its empty lines belong to it.
    streams: Option<ScreenCursor>,
    waiting: Option<Progress>,
    /// The running calls: their ids, and how they were shown.
    calls: Vec<(String, String)>,
    /// True if several calls run in parallel; their outputs then name the call.
    several: bool,
    /// Breaks lines between words, if the output is a terminal.
    wrap: WordWrap,
    /// The first error of the output stream.
    failed: Option<io::Error>,
}

impl<'t> Screen<'t> {
    /// An empty screen.
    pub(super) fn new(terminal: &'t mut Terminal) -> Self {
        Self {
            terminal,
            cursor: ScreenCursor::Start,
            streams: None,
            waiting: None,
            calls: Vec::new(),
            several: false,
            wrap: WordWrap::default(),
            failed: None,
        }
    }

    /// The width of a line.
    pub(super) fn width() -> usize {
        let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
        let seen = terminal_size().map(|(Width(width), _)| usize::from(width));
        seen.or_else(columns).unwrap_or(USUAL).max(NARROWEST)
    }

    /// True if there is colour.
    pub(super) fn has_colour(&self) -> bool {
        self.terminal.has_colour()
    }

    /// Returns the first error of the output stream.
    pub(super) fn check(&mut self) -> Result<(), Failure> {
        match self.failed.take() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Starts a turn.
    pub(super) fn begin(&mut self) {
        self.calls.clear();
        self.wait(MODEL);
    }

    /// Shows a spinner until the next output.
    pub(super) fn wait(&mut self, what: &str) {
        self.settle();
        // A spinner would garble output that is not a terminal.
        if !self.terminal.shows_progress() || !ui::is_terminal() {
            return;
        }
        self.waiting = Some(Progress::waiting(what));
    }

    /// Prints our own text verbatim.
    pub(super) fn text(&mut self, text: &str) {
        self.settle();
        self.put(text);
    }

    /// Prints a line in a style, wrapped at words.
    pub(super) fn line(&mut self, style: TextStyle, line: &str) {
        self.settle();
        for line in line.lines() {
            let line = wrapped(line, Self::width(), 2);
            self.put(&format!("{style}{line}{style:#}\n"));
        }
    }

    /// Prints lines, each wrapped at words.
    pub(super) fn lines(&mut self, text: &str) {
        for line in text.lines() {
            self.line(TextStyle::Plain, line);
        }
    }

    /// Prints an error with its hint.
    pub(super) fn error(&mut self, message: &str, hint: Option<&str>) {
        self.settle();
        self.terminal.error(message, hint);
    }

    /// Prints a failure; the session continues.
    pub(super) fn failure(&mut self, failure: &Failure) {
        let hint = match failure {
            Failure::Input { hint, .. } | Failure::WithHint { hint, .. } => hint.as_deref(),
            _ => None,
        };
        self.error(&failure.to_string(), hint);
    }

    /// Prints a complete answer.
    pub(super) fn answer(&mut self, text: &str) {
        self.stream(ScreenCursor::Answer, TextStyle::Plain, text);
        self.settle();
    }

    /// Replaces long typed text by a short form.
    pub(super) fn shorten_typed(&mut self, prompt: &str, typed: &str) {
        let width = Self::width();
        let rows = |line: &str| line.chars().count().div_ceil(width).max(1);
        let rows: usize = format!("{prompt}{typed}").split('\n').map(rows).sum();
        if rows <= MOST_TYPED_ROWS || !ui::is_terminal() {
            return;
        }
        // Rows that have scrolled off the screen cannot be erased.
        let height = terminal_size().map_or(0, |(_, Height(rows))| usize::from(rows));
        if let Err(error) = ui::erase_rows(rows.min(height.saturating_sub(1))) {
            self.failed.get_or_insert(error);
        }
        let size = counted(typed.lines().count(), "line");
        let characters = counted(typed.chars().count(), "character");
        let note = format!(" [{size}, {characters}]");
        let room = width.saturating_sub(note.len() + 1);
        let first = on_one_line(typed.lines().next().unwrap_or_default());
        let first = clipped(&format!("{prompt}{first}"), room).into_owned();
        let dim = style::DIM;
        self.text(&format!("{first}{dim}{note}{dim:#}\n"));
    }

    /// Ends the line and removes the spinner.
    pub(super) fn settle(&mut self) {
        self.stop_waiting();
        // An unfinished word is held back.
        if self.streams.take().is_some() {
            let rest = self.wrap.end_line(Self::width());
            self.put_styled(rest);
        }
        // End an open line before anything else is printed.
        if std::mem::replace(&mut self.cursor, ScreenCursor::Start) != ScreenCursor::Start {
            self.put("\n");
        }
    }

    /// Shows an event.
    pub(super) fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Text(text) => self.stream(ScreenCursor::Answer, TextStyle::Plain, text),
            AgentEvent::Reasoning(text) => self.stream(ScreenCursor::Thought, style::DIM, text),
            AgentEvent::Call(call) => {
                let text = event_text::call(call, Self::width().saturating_sub(3));
                let out = style::OUTPUT;
                self.text(&format!("{out}* {text}{out:#}\n"));
                // With several calls, each output must name its call.
                self.several = !self.calls.is_empty();
                self.calls.push((call.id.clone(), text));
                self.wait("working, Ctrl-C interrupts");
            }
            AgentEvent::Output { output, .. } => {
                self.output(output);
                self.wait(MODEL);
            }
            AgentEvent::Summarising {
                background: true, ..
            } => {
                self.line(style::DIM, "a summary is being written in the background");
            }
            AgentEvent::Summarising {
                background: false, ..
            } => {
                self.wait("waiting for a summary, Ctrl-C interrupts");
            }
            AgentEvent::Session(event) => self.session(event),
            event => {
                if let Some(text) = event_text::model_trouble(event) {
                    self.line(style::WARN, &text);
                    self.wait(MODEL);
                }
            }
        }
    }

    /// Shows the start of an output, below its call, or with the name of the call if there are
    /// several.
    fn output(&mut self, output: &Output) {
        let place = self.calls.iter().position(|(id, _)| *id == output.call_id);
        let call = place.map(|place| self.calls.remove(place).1);
        if let Some(call) = call.filter(|_| self.several) {
            let dim = style::DIM;
            self.text(&format!("{dim}  {call}:{dim:#}\n"));
        }
        let style = if output.is_error {
            style::BAD
        } else {
            style::DIM
        };
        for line in event_text::output(output, Self::width().saturating_sub(4)) {
            self.text(&format!("{style}  | {line}{style:#}\n"));
        }
    }

    fn session(&mut self, event: &trimtab::session::SessionEvent) {
        let Some(text) = event_text::session(event) else {
            return;
        };
        let style = match event.kind {
            SessionEventKind::Compacted | SessionEventKind::Undone => style::GOOD,
            SessionEventKind::Warning | SessionEventKind::Suspended | SessionEventKind::Dropped => {
                style::WARN
            }
            _ => style::DIM,
        };
        let (text, hint) = with_hint(&text);
        self.line(style, &text);
        if let Some(hint) = hint {
            self.line(style::DIM, &format!("hint: {hint}"));
        }
        // The diagnostic line of a design goes to standard error in every mode. A person who reads
        // both streams on a terminal has just seen it.
        let is_seen = self.terminal.is_watched() && ui::is_terminal();
        if event.kind == SessionEventKind::Trimmed
            && !is_seen
            && let Some(note) = &event.note
        {
            self.terminal.note(note);
        }
    }

    /// Prints the next piece of streamed text.
    fn stream(&mut self, at: ScreenCursor, style: TextStyle, text: &str) {
        // The kind of text has changed, so end the previous block.
        if self.streams != Some(at) {
            self.settle();
            // Skip white space before the first word.
            if text.trim().is_empty() {
                return;
            }
        }
        self.stop_waiting();
        self.streams = Some(at);
        self.cursor = at;
        if ui::is_terminal() {
            self.put_wrapped(style, text);
        } else {
            self.put(&format!("{style}{text}{style:#}"));
        }
        if text.ends_with('\n') {
            self.cursor = ScreenCursor::Start;
        }
    }

    /// Prints a piece of streamed text, wrapped at words.
    fn put_wrapped(&mut self, style: TextStyle, text: &str) {
        for (at, line) in text.split('\n').enumerate() {
            if at > 0 {
                let rest = self.wrap.end_line(Self::width());
                self.put_styled(rest);
                self.put("\n");
            }
            let shown = self.wrap.push(style, line, Self::width());
            self.put_styled(shown);
        }
    }

    fn put_styled(&mut self, pieces: Vec<(TextStyle, String)>) {
        for (style, text) in pieces {
            self.put(&format!("{style}{text}{style:#}"));
        }
    }

    fn stop_waiting(&mut self) {
        if let Some(bar) = self.waiting.take() {
            bar.finish();
        }
    }

    fn put(&mut self, text: &str) {
        let out = self.terminal.out();
        let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        // Report the first error at the next prompt: events cannot return one.
        if let Err(error) = written {
            self.failed.get_or_insert(error);
        }
    }
}
