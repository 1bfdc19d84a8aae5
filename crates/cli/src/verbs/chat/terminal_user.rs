//! The user at the terminal: sees events and answers questions.

use trimtab::session::SessionEventKind;
use trimtab::wire::catalogue::Prices;
use trimtab_agent::AgentEvent;
use trimtab_agent::tools::{FileChange, Question, QuestionKind};
use trimtab_model::Usage;

use super::cost::ChatSpending;
use super::diff::{DiffLine, diff};
use super::editor::{InputPrompt, TypedInput};
use super::screen::Screen;
use super::watched_work::AgentWatcher;
use crate::ui::clipped::clipped;
use crate::ui::number::counted;
use crate::ui::style;
use crate::ui::visible::{visible, visible_lines};

/// The number of lines of a change that are shown at first.
const SHOWN_LINES: usize = 40;

/// The user at the terminal.
pub(super) struct TerminalUser<'t> {
    pub(super) screen: Screen<'t>,
    pub(super) prompt: InputPrompt,
    /// The last reported usage, until an edit makes it stale.
    pub(super) usage: Option<Usage>,
    /// The usage since the chat was opened.
    pub(super) spent: ChatSpending,
    /// The prices of the model, if known.
    pub(super) prices: Option<Prices>,
    /// False if there is nobody to ask.
    pub(super) is_interactive: bool,
    /// Kinds of actions that the user allowed for the rest of the conversation.
    pub(super) allowed: Vec<QuestionKind>,
}

impl AgentWatcher for TerminalUser<'_> {
    fn event(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Usage(usage) => self.usage = Some(*usage),
            // The session changed the window, so the reported usage no longer describes it.
            AgentEvent::Session(event) if event.kind != SessionEventKind::Warning => {
                self.usage = None;
            }
            _ => {}
        }
        self.spent.event(event, self.prices.as_ref());
        self.screen.event(event);
    }

    fn question(&mut self, question: Question) -> bool {
        if self.allowed.contains(&question.kind) {
            question.answer(true);
            return true;
        }
        if !self.is_interactive {
            self.screen.line(style::WARN, &refused_question(&question));
            question.answer(false);
            return true;
        }
        self.screen.line(style::WARN, &request_text(&question));
        let cut = match &question.change {
            Some(change) => self.show(change, SHOWN_LINES),
            None => false,
        };
        let Some(answer) = self.answer(&question, cut) else {
            question.answer(false);
            return false;
        };
        let kind = question.kind;
        // A protected file is asked about every time.
        let always = can_be_always(kind) && matches!(answer.as_str(), "a" | "always");
        if always {
            self.allowed.push(kind);
        }
        question.answer(always || matches!(answer.as_str(), "y" | "yes"));
        self.screen.wait("working, Ctrl-C interrupts");
        true
    }

    fn interrupted(&mut self) {
        self.screen
            .wait("interrupting; press Ctrl-C again to stop at once");
    }
}

impl TerminalUser<'_> {
    /// Asks the user; returns nothing for Ctrl-C. If the change was `cut`, the user can see all of
    /// it first.
    fn answer(&mut self, question: &Question, mut cut: bool) -> Option<String> {
        loop {
            let always = if can_be_always(question.kind) {
                ", [a]lways"
            } else {
                ""
            };
            let whole = if cut { ", [d]iff in full" } else { "" };
            let prompt = format!("allow it? [y]es, [n]o{always}{whole}: ");
            // Reading a line blocks. Tell the runtime, so that it moves other tasks to another
            // thread.
            let read = tokio::task::block_in_place(|| self.prompt.ask(&prompt));
            let answer = match read {
                Ok(TypedInput::Line(line)) => line.trim().to_ascii_lowercase(),
                Ok(TypedInput::Interrupted) => return None,
                // Without an answer, the action is refused.
                Ok(TypedInput::End) | Err(_) => String::new(),
            };
            match &question.change {
                Some(change) if cut && matches!(answer.as_str(), "d" | "diff") => {
                    cut = self.show(change, usize::MAX);
                }
                _ => return Some(answer),
            }
        }
    }

    /// Shows at most `most` lines of a change. Returns true if there are more.
    fn show(&mut self, change: &FileChange, most: usize) -> bool {
        let before = change.before.as_deref().unwrap_or_default();
        let lines = diff(before, &change.after);
        let width = Screen::width().saturating_sub(4);
        for line in lines.iter().take(most) {
            let (look, mark, text) = match line {
                DiffLine::Same(text) => (style::DIM, ' ', *text),
                DiffLine::Removed(text) => (style::BAD, '-', *text),
                DiffLine::Added(text) => (style::GOOD, '+', *text),
                DiffLine::Gap => (style::DIM, ' ', "..."),
            };
            // A clipped line counts as cut too, so that the user can see all of it before
            // answering.
            let text = visible(&text.replace('\t', "    ")).into_owned();
            let text = if most == usize::MAX {
                text
            } else {
                clipped(&text, width).into_owned()
            };
            self.screen
                .text(&format!("{look}  {mark} {text}{look:#}\n"));
        }
        let is_long = |line: &DiffLine<'_>| match line {
            DiffLine::Removed(text) | DiffLine::Added(text) => text.chars().count() > width,
            _ => false,
        };
        let more = lines.len().saturating_sub(most);
        if more > 0 {
            let text = format!("  and {} more", counted(more, "line"));
            self.screen.line(style::DIM, &text);
        }
        most < usize::MAX && (more > 0 || lines.iter().any(is_long))
    }
}

fn can_be_always(kind: QuestionKind) -> bool {
    kind != QuestionKind::ProtectedFile
}

/// Describes what a tool wants to do.
fn request_text(question: &Question) -> String {
    let does = match question.kind {
        QuestionKind::Command => "run:",
        QuestionKind::ProtectedFile | QuestionKind::WriteFile => "write",
    };
    // Indent further lines of a command, so that they cannot imitate our own lines.
    let what = visible_lines(&question.what).replace('\n', "\n  | ");
    format!("{} wants to {does} {what}", visible(&question.tool))
}

/// The message for a question that nobody can answer.
pub(super) fn refused_question(question: &Question) -> String {
    let flag = match question.kind {
        QuestionKind::Command => "--allow-shell",
        QuestionKind::ProtectedFile => "--allow-protected-files",
        QuestionKind::WriteFile => "--allow-writes",
    };
    format!(
        "{}: refused because there is nobody to ask; {flag} allows it",
        request_text(question)
    )
}
