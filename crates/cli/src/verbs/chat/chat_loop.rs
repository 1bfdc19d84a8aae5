//! The interactive conversation: reads lines and executes them until the user quits.

use std::io::{self, IsTerminal};

use rustyline::error::ReadlineError;
use tokio::runtime::{Builder, Runtime};
use trimtab::session::ManualCompaction;
use trimtab_agent::tools::{Confirm, end_all_commands};
use trimtab_agent::{Agent, AgentError, TurnEnd, TurnResult};
use trimtab_model::Role;

use super::attach::attach;
use super::command::{self, ChatCommand, TypedLine};
use super::context::{self, WindowFill};
use super::cost::ChatSpending;
use super::editor::{InputPrompt, TypedInput};
use super::open_chat::{OpenChat, agent_failure};
use super::screen::Screen;
use super::terminal_user::TerminalUser;
use super::text::on_one_line;
use super::watched_work::{self, IncomingEvents};
use super::{ChatArgs, change_settings, event_text, output};
use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::ui::clipped::clipped;
use crate::ui::columns::{Align, lined_up};
use crate::ui::number::counted;
use crate::ui::visible::visible;
use crate::ui::{Terminal, style};

/// The prompt of the line editor.
const PROMPT: &str = "> ";

/// Runs the conversation.
pub(super) fn run(
    args: &ChatArgs,
    common: &CommonArgs,
    terminal: &mut Terminal,
) -> Result<(), Failure> {
    // The agent asks questions through a channel, because it runs on another thread than the
    // terminal.
    let (ask, questions) = Confirm::channel();
    let runtime = runtime()?;
    let mut prompt = InputPrompt::new().map_err(unreadable)?;
    let (chat, events) = OpenChat::open(args, common, &ask)?;
    prompt.complete_in(&chat.agent.settings().workspace);
    warn_of(&chat, args, terminal);
    // Signal handlers can only be registered inside a runtime.
    let guard = runtime.enter();
    watched_work::end_commands_with_us()?;
    let incoming = IncomingEvents::new(events, Some(questions))?;
    drop(guard);
    let mut chat_loop = ChatLoop {
        chat,
        incoming,
        runtime,
        user: TerminalUser {
            prompt,
            screen: Screen::new(terminal),
            usage: None,
            spent: ChatSpending::default(),
            prices: None,
            // Piped input goes to the model, so there is nobody to ask.
            is_interactive: io::stdin().is_terminal(),
            allowed: Vec::new(),
        },
        can_retry: false,
    };
    chat_loop.greet();
    // Say how to resume even if the conversation ended with an error.
    let ended = chat_loop.read_lines();
    chat_loop.leave()?;
    ended
}

/// The runtime on which the agent works while the user types.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    let mut builder = Builder::new_multi_thread();
    Ok(builder.worker_threads(2).enable_all().build()?)
}

/// Warns about an unknown window and similar surprises.
pub(super) fn warn_of(chat: &OpenChat, args: &ChatArgs, terminal: &mut Terminal) {
    let settings = chat.agent.settings();
    if settings.limits.window.is_none() {
        terminal.warn(&format!(
            "the window of '{}' is unknown until the provider rejects a prompt as too long\n\
             hint: set it with --window TOKENS",
            on_one_line(&settings.model.name)
        ));
    }
    if chat.resumed && args.system.is_some() {
        terminal.warn("--system applies to new sessions only: this one keeps its system prompt");
    }
}

fn unreadable(error: ReadlineError) -> Failure {
    match error {
        ReadlineError::Io(error) => error.into(),
        error => io::Error::other(error).into(),
    }
}

/// The state of the conversation.
struct ChatLoop<'t> {
    chat: OpenChat,
    incoming: IncomingEvents,
    runtime: Runtime,
    user: TerminalUser<'t>,
    /// True if the last turn did not complete.
    can_retry: bool,
}

impl ChatLoop<'_> {
    fn greet(&mut self) {
        let settings = self.chat.agent.settings();
        let folder = settings.workspace.root().display().to_string();
        let model = on_one_line(&settings.model.name);
        let text = format!("{model}, {}, in {folder}", settings.policy.preset);
        self.user.screen.line(style::STRONG, &text);
        if self.chat.resumed {
            self.recall();
        }
        self.user
            .screen
            .line(style::DIM, "/help lists the commands, Ctrl-D quits");
    }

    /// Shows the last answer of a resumed session.
    fn recall(&mut self) {
        let log = self.chat.agent.session().projection().log().messages();
        let text = format!("{}: {}", self.chat.id(), counted(log.len(), "message"));
        let width = Screen::width();
        let user = log.iter().rev().find(|message| message.is_real_user());
        let user = user.map(|message| on_one_line(&message.text()));
        let last = log.last().filter(|message| message.role == Role::Assistant);
        let last = last.map(|message| message.text().trim().to_owned());
        self.user.screen.line(style::DIM, &text);
        if let Some(user) = user {
            self.user
                .screen
                .line(style::DIM, &clipped(&format!("{PROMPT}{user}"), width));
        }
        // Without a final answer, the last turn did not complete and can be retried.
        match last {
            Some(last) => self.user.screen.answer(&last),
            None => self.can_retry = true,
        }
    }

    /// Reads and executes lines until the user quits.
    fn read_lines(&mut self) -> Result<(), Failure> {
        let mut pressed = false;
        loop {
            self.user.screen.settle();
            // If the output is closed, nobody would see the answers.
            self.user.screen.check()?;
            match self.user.prompt.read(PROMPT).map_err(unreadable)? {
                TypedInput::End => return Ok(()),
                TypedInput::Interrupted if pressed => return Ok(()),
                TypedInput::Interrupted => {
                    pressed = true;
                    self.user
                        .screen
                        .line(style::DIM, "press Ctrl-C again to quit");
                }
                TypedInput::Line(line) => {
                    pressed = false;
                    self.user.screen.shorten_typed(PROMPT, &line);
                    if !self.line(&line) {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Executes a line. Returns false to quit.
    fn line(&mut self, line: &str) -> bool {
        match command::read(line) {
            TypedLine::Nothing => {}
            TypedLine::Message(typed) => self.turn(Some(typed)),
            TypedLine::Unknown(typed, near) => {
                let near = near.map(|near| format!("did you mean /{near}? "));
                let hint = format!("{}/help lists all commands", near.unwrap_or_default());
                self.user
                    .screen
                    .error(&format!("there is no /{typed}"), Some(&hint));
            }
            TypedLine::Command(ChatCommand::Quit, _) => return false,
            TypedLine::Command(command, argument) => {
                if let Err(failure) = self.command(command, argument) {
                    self.user.screen.failure(&failure);
                }
            }
        }
        true
    }

    fn command(&mut self, command: ChatCommand, argument: &str) -> Result<(), Failure> {
        match command {
            ChatCommand::Context => self.context()?,
            ChatCommand::Compact => self.compact(argument),
            ChatCommand::Undo => self.undo()?,
            ChatCommand::Output => output::run(&self.chat, argument, &mut self.user.screen)?,
            ChatCommand::Model => {
                change_settings::model(&mut self.chat, argument, &mut self.user.screen)?;
                // The reported usage belongs to the old model.
                self.user.usage = None;
            }
            ChatCommand::Preset => {
                change_settings::preset(&mut self.chat, argument, &mut self.user.screen)?;
            }
            ChatCommand::Retry if self.can_retry => self.turn(None),
            ChatCommand::Retry => self.user.screen.text("nothing to retry\n"),
            ChatCommand::Clear => self.clear()?,
            ChatCommand::Cost => self.user.screen.lines(&self.user.spent.text()),
            // `line` handles the command to quit.
            ChatCommand::Help | ChatCommand::Quit => {
                let help = lined_up(&command::help(), [Align::Left; 2]);
                self.user.screen.lines(&help);
                let more = "@FILE in a message attaches the file; a line that ends with \\ \
                continues on the next; Tab completes commands and files";
                self.user.screen.line(style::DIM, more);
            }
        }
        Ok(())
    }

    fn context(&mut self) -> Result<(), Failure> {
        let settings = self.chat.agent.settings().clone();
        let fill = WindowFill::of(self.chat.agent.session_mut())?;
        let model = on_one_line(&settings.model.name);
        let look = (Screen::width(), self.user.screen.has_colour());
        let about = (model.as_str(), settings.policy.preset.as_str());
        let picture = context::render(&fill, about, self.user.usage.as_ref(), look);
        self.user.screen.text(&picture);
        Ok(())
    }

    /// Starts a new session.
    fn clear(&mut self) -> Result<(), Failure> {
        let before = self.chat.has_begun().then(|| self.chat.id().to_string());
        self.incoming.events = self.chat.clear()?;
        self.user.usage = None;
        self.can_retry = false;
        self.user.screen.line(style::STRONG, "new session");
        if let Some(before) = before {
            let text = format!("the previous one: trimtab chat --resume {before}");
            self.user.screen.line(style::DIM, &text);
        }
        Ok(())
    }

    fn undo(&mut self) -> Result<(), Failure> {
        let undone = self
            .chat
            .agent
            .undo()
            .map_err(|error| agent_failure(&error))?;
        if !undone {
            self.user.screen.text("nothing to undo\n");
        }
        // The event of the undo is still in the channel.
        self.incoming.deliver_rest(&mut self.user);
        Ok(())
    }

    fn compact(&mut self, instructions: &str) {
        let by_hand = ManualCompaction {
            instructions: instructions.to_owned(),
            ..ManualCompaction::default()
        };
        let done = self.watched(async |agent| agent.compact(&by_hand).await);
        match done {
            // The event of the compaction has been shown.
            Some(Ok(_)) if !self.chat.agent.interrupt().is_set() => {}
            Some(Err(error)) => self.user.screen.failure(&agent_failure(&error)),
            _ => {
                let text = "interrupted; the window is unchanged";
                self.user.screen.line(style::WARN, text);
            }
        }
    }

    /// Runs a turn with the user's message, or continues the last turn.
    fn turn(&mut self, typed: Option<&str>) {
        let typed = typed.map(|typed| attach(typed, &self.chat.agent.settings().workspace));
        for note in typed.iter().flat_map(|typed| &typed.notes) {
            self.user.screen.line(style::DIM, &visible(note));
        }
        self.user.screen.begin();
        self.user.prices = self.chat.agent.settings().prices;
        let ended = self.watched(async |agent| match typed {
            Some(typed) => agent.turn_with(typed.message).await,
            None => agent.go_on().await,
        });
        self.user.screen.settle();
        self.show_end(ended);
    }

    /// Runs the agent while the user watches. Returns nothing if it was interrupted twice.
    fn watched<T>(&mut self, work: impl AsyncFnOnce(&mut Agent) -> T) -> Option<T> {
        let agent = &mut self.chat.agent;
        let interrupt = agent.interrupt();
        let work = self.incoming.drive(work(agent), &interrupt, &mut self.user);
        self.runtime.block_on(work)
    }

    fn show_end(&mut self, ended: Option<Result<TurnResult, AgentError>>) {
        // Assume failure: only a complete answer clears it.
        self.can_retry = true;
        let turn = match ended {
            Some(Ok(turn)) => turn,
            Some(Err(error)) => return self.user.screen.failure(&agent_failure(&error)),
            None => return self.user.screen.line(style::WARN, "stopped"),
        };
        let used = event_text::usage_line(&turn, self.chat.agent.settings().prices.as_ref());
        match turn.end {
            TurnEnd::Answered => {
                self.can_retry = false;
                self.user.screen.line(style::DIM, &format!("[{used}]"));
            }
            TurnEnd::Interrupted => {
                self.user
                    .screen
                    .line(style::WARN, "interrupted; the partial answer stays");
            }
            TurnEnd::CutOff => {
                let text = "the answer was cut off; --max-output allows longer ones";
                self.user.screen.line(style::WARN, text);
            }
            TurnEnd::OutOfRounds => {
                let rounds = turn.rounds;
                let text = format!("no answer after {rounds} rounds; /retry continues");
                self.user.screen.line(style::WARN, &text);
            }
        }
    }

    /// Prints how to resume. Waits for a summary in progress, because it is already paid for.
    fn leave(mut self) -> Result<(), Failure> {
        if self.chat.agent.is_summarising() {
            let text = "waiting for the summary; Ctrl-C quits without it";
            self.user.screen.line(style::DIM, text);
            let _ = self.watched(async |agent| agent.settle().await);
        }
        let Self {
            chat,
            user: TerminalUser { mut screen, .. },
            runtime,
            ..
        } = self;
        screen.settle();
        // An empty session is removed, so there is nothing to resume.
        if chat.has_begun() {
            let text = format!("to continue: trimtab chat --resume {}", chat.id());
            screen.line(style::DIM, &text);
        }
        chat.close()?;
        // Background commands must not survive the chat.
        end_all_commands();
        runtime.shutdown_background();
        Ok(())
    }
}
