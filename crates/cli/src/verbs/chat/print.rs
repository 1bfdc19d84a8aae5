//! `trimtab chat --print`: one turn for scripts.

use std::io::{self, Read};

use serde_json::Value;
use trimtab::session::SessionEventKind;
use trimtab_agent::tools::{Confirm, Question, end_all_commands};
use trimtab_agent::{AgentEvent, TurnEnd, TurnResult};
use trimtab_model::Message;

use super::attach::attach;
use super::open_chat::{OpenChat, agent_failure};
use super::terminal_user::refused_question;
use super::watched_work::{self, AgentWatcher, IncomingEvents};
use super::{ChatArgs, chat_loop, event_text, json};
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::Terminal;

/// Runs one turn.
pub(super) fn run(
    args: &ChatArgs,
    prompt: &str,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    let from_pipe = prompt == "-";
    let prompt = read_prompt(prompt)?;
    let runtime = chat_loop::runtime()?;
    // Nobody can answer questions, but refused actions are reported.
    let (ask, questions) = Confirm::channel();
    let (mut chat, events) = OpenChat::open(args, common, &ask)?;
    // Piped text was not typed by the user, so `@file` in it attaches nothing.
    let message = if from_pipe {
        Message::user(prompt)
    } else {
        let attached = attach(&prompt, &chat.agent.settings().workspace);
        for note in &attached.notes {
            terminal.note(note);
        }
        attached.message
    };
    chat_loop::warn_of(&chat, args, terminal);
    let mut printer = ChatPrinter {
        json: common.json,
        terminal,
        failed: None,
    };
    if common.json {
        printer.line(&json::start(&chat));
    }
    let ended = runtime.block_on(async {
        // Commands must end if the script is terminated.
        watched_work::end_commands_with_us()?;
        let mut incoming = IncomingEvents::new(events, Some(questions))?;
        let interrupt = chat.agent.interrupt();
        let turn = incoming
            .drive(chat.agent.turn_with(message), &interrupt, &mut printer)
            .await;
        if let Some(Ok(_)) = &turn {
            // Wait for a summary in the background, which would be lost with the process.
            let _ = incoming
                .drive(chat.agent.settle(), &interrupt, &mut printer)
                .await;
        }
        Ok::<_, io::Error>(turn)
    });
    end_all_commands();
    runtime.shutdown_background();
    chat.keep_learned_window()?;
    let result = match ended? {
        Some(Ok(turn)) => printer.end(&turn, chat.agent.settings().limits.max_output),
        Some(Err(error)) => Err(agent_failure(&error)),
        None => Err(failure("interrupted", None)),
    };
    // A closed pipe is more important than the result of the turn.
    if let Some(error) = printer.failed.take() {
        return Err(error.into());
    }
    // Scripts expect the last line to explain a failure.
    if let (true, Err(Failure::WithHint { message, hint })) = (common.json, &result) {
        printer.line(&json::error(message, hint.as_deref()));
    }
    result
}

/// The prompt: the given text, or standard input.
fn read_prompt(given: &str) -> Result<String, Failure> {
    let mut prompt = given.to_owned();
    if given == "-" {
        prompt.clear();
        io::stdin().read_to_string(&mut prompt).map_err(|error| {
            Failure::input(
                format!("cannot read standard input: {error}"),
                "give text in UTF-8",
            )
        })?;
    }
    if prompt.trim().is_empty() {
        return Err(Failure::input(
            "the prompt is empty",
            "trimtab chat --print 'what does this project do?'",
        ));
    }
    Ok(prompt)
}

fn failure(message: &str, hint: Option<&str>) -> Failure {
    Failure::WithHint {
        message: message.to_owned(),
        hint: hint.map(str::to_owned),
    }
}

/// Prints the answer to standard output and everything else to standard error, or all of it as
/// JSON.
struct ChatPrinter<'t> {
    json: bool,
    terminal: &'t mut Terminal,
    failed: Option<io::Error>,
}

impl ChatPrinter<'_> {
    fn line(&mut self, value: &Value) {
        let written = self.terminal.json(value);
        self.done(written);
    }

    /// Prints the answer, escaped only on a terminal.
    fn answer(&mut self, text: &str) {
        let written = self.terminal.data().write_all(text.as_bytes());
        self.done(written);
    }

    fn done(&mut self, written: io::Result<()>) {
        let out = self.terminal.data();
        if let Err(error) = written.and_then(|()| out.flush()) {
            self.failed.get_or_insert(error);
        }
    }

    fn end(&mut self, turn: &TurnResult, most: Option<u64>) -> Result<(), Failure> {
        if self.json {
            self.line(&json::end(turn));
        } else if !turn.text.is_empty() {
            // End the output with a newline, as other command line tools do.
            let end = if turn.text.ends_with('\n') { "" } else { "\n" };
            self.answer(&format!("{}{end}", turn.text));
        }
        let most = most
            .map(|most| format!(" at {most} tokens"))
            .unwrap_or_default();
        match turn.end {
            TurnEnd::Answered => Ok(()),
            TurnEnd::CutOff => Err(failure(
                &format!("the answer was cut off{most}"),
                Some("allow a longer one with --max-output TOKENS"),
            )),
            TurnEnd::Interrupted => Err(failure("interrupted", None)),
            TurnEnd::OutOfRounds => Err(failure(
                &format!("no answer after {} rounds of calls", turn.rounds),
                Some("continue with --resume, or give the model a smaller task"),
            )),
        }
    }
}

impl AgentWatcher for ChatPrinter<'_> {
    fn event(&mut self, event: &AgentEvent) {
        if self.json {
            if let Some(line) = json::event(event) {
                self.line(&line);
            }
            // The diagnostic line of a design goes to standard error in every mode.
            if let AgentEvent::Session(event) = event
                && event.kind == SessionEventKind::Trimmed
                && let Some(note) = &event.note
            {
                self.terminal.note(note);
            }
            return;
        }
        match event {
            AgentEvent::Call(call) => self
                .terminal
                .note(&event_text::call(call, event_text::WIDE)),
            AgentEvent::Session(event) => {
                if let Some(text) = event_text::session(event) {
                    self.terminal.note(&text);
                }
            }
            AgentEvent::Retry { .. } | AgentEvent::BrokeOff { .. } => {
                if let Some(text) = event_text::model_trouble(event) {
                    self.terminal.warn(&text);
                }
            }
            _ => {}
        }
    }

    fn question(&mut self, question: Question) -> bool {
        self.terminal.warn(&refused_question(&question));
        question.answer(false);
        true
    }

    fn interrupted(&mut self) {}
}
