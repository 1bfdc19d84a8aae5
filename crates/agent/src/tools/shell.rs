//! The tool `shell`: runs a command.
//!
//! The user must allow each command. It runs in its own process group with a clean environment, and
//! `processes` ends everything that it leaves behind.

use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout, timeout_at};

use super::arguments::parse_as;
use super::confirm::QuestionKind;
use super::processes::{CommandProcesses, adopt_orphans};
use super::text::readable;
use super::{CommandEnvironment, Tool, ToolDefinition, ToolFuture, ToolOutcome, Workspace};

/// How long to wait for remaining output after a command has ended.
const AFTER_END: Duration = Duration::from_secs(1);

/// Limits of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShellLimits {
    /// The default time limit.
    pub time: Duration,
    /// The longest time limit that the model may request.
    pub most_time: Duration,
    /// The maximum output in bytes. A command that writes more is ended.
    pub bytes: usize,
}

impl Default for ShellLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_mins(2),
            most_time: Duration::from_mins(10),
            bytes: 32 << 20,
        }
    }
}

/// Runs a command in the workspace with the user's permission.
#[derive(Clone, Debug, Default)]
pub struct Shell {
    limits: ShellLimits,
    environment: CommandEnvironment,
    ends_orphans: bool,
}

impl Shell {
    /// A shell with other limits.
    pub fn new(limits: ShellLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Sets the environment of commands.
    #[must_use]
    pub fn environment(mut self, environment: CommandEnvironment) -> Self {
        self.environment = environment;
        self
    }

    /// Also ends processes that have left both the group and the descendants of their command. Use
    /// it only in a process that starts no other children while a command runs, because it adopts
    /// all orphans.
    #[must_use]
    pub fn ends_orphans(mut self) -> Self {
        adopt_orphans();
        self.ends_orphans = true;
        self
    }
}

#[derive(Deserialize)]
struct ShellCommandArgs {
    command: String,
    timeout_seconds: Option<u64>,
}

impl Tool for Shell {
    fn definition(&self) -> ToolDefinition {
        let most = self.limits.most_time.as_secs();
        ToolDefinition::new(
            "shell",
            "Runs a command with sh in the workspace and gives what it prints, errors included. \
             It has no terminal and no input. When it ends, so does everything that it left \
             running in the background.",
            json!({
                "type": "object",
                "properties": {
                    "command": { "type": "string", "description": "The command." },
                    "timeout_seconds": {
                        "type": "integer", "minimum": 1, "maximum": most,
                        "description": format!("How long it may run. Default {}.", self.limits.time.as_secs()),
                    },
                },
                "required": ["command"],
            }),
        )
    }

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move {
            match self.run(arguments, workspace).await {
                Ok(ran) => ran.outcome(),
                Err(why) => ToolOutcome::error(format!("error: {why}")),
            }
        })
    }
}

impl Shell {
    async fn run(&self, arguments: &Value, workspace: &Workspace) -> Result<CommandResult, String> {
        let args: ShellCommandArgs = parse_as(arguments)?;
        if args.command.trim().is_empty() {
            return Err("the command is empty".to_owned());
        }
        let confirm = workspace.confirm();
        let kind = QuestionKind::Command;
        if !confirm.allows(kind, "shell", &args.command).await {
            return Err("the user did not allow this command".to_owned());
        }
        let time = args.timeout_seconds.map(Duration::from_secs);
        let time = time.unwrap_or(self.limits.time).min(self.limits.most_time);
        let started = self.start(&args.command, workspace);
        let running = started.map_err(|error| format!("cannot run the command: {error}"))?;
        let ran = running.wait(time, self.limits.bytes).await;
        ran.map_err(|error| format!("the command was lost: {error}"))
    }

    fn start(&self, command: &str, workspace: &Workspace) -> io::Result<RunningCommand> {
        // One pipe for both streams, so that errors appear where they happened.
        let (reader, writer) = io::pipe()?;
        let mut shell = command_for(command, workspace, &self.environment);
        shell.stdout(writer.try_clone()?).stderr(writer);
        let child = shell.spawn()?;
        // Drop our writing ends of the pipe, otherwise its end is never seen.
        drop(shell);
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.and_then(Pid::from_raw);
        Ok(RunningCommand {
            child,
            processes: id.map(|id| CommandProcesses::new(id, self.ends_orphans)),
            output: Receiver::from_owned_fd(reader.into())?,
        })
    }
}

/// A running command with its processes. Dropping it ends them.
struct RunningCommand {
    child: Child,
    processes: Option<CommandProcesses>,
    output: Receiver,
}

impl RunningCommand {
    async fn wait(mut self, time: Duration, most: usize) -> io::Result<CommandResult> {
        let until = Instant::now() + time;
        let mut written = Vec::new();
        let mut end = CommandEnd::TimedOut(time);
        let work = async {
            loop {
                tokio::select! {
                    read = self.output.read_buf(&mut written) => match read? {
                        // All writers have closed the pipe, but the command itself may continue.
                        0 => return self.child.wait().await.map(CommandEnd::Exited),
                        _ if written.len() > most => return Ok(CommandEnd::TooMuch(most)),
                        _ => {}
                    },
                    // A background process may keep the pipe open after the command itself has
                    // ended.
                    ended = self.child.wait() => return ended.map(CommandEnd::Exited),
                }
            }
        };
        if let Ok(ended) = timeout_at(until, work).await {
            end = ended?;
        }
        // Ends all processes of the command.
        drop(self.processes.take());
        // Output written just before the end may still be in the pipe.
        let rest = async {
            while written.len() <= most && self.output.read_buf(&mut written).await? > 0 {}
            io::Result::Ok(())
        };
        let _ = timeout(AFTER_END, rest).await;
        Ok(CommandResult { written, end })
    }
}

fn command_for(command: &str, workspace: &Workspace, environment: &CommandEnvironment) -> Command {
    let mut shell = Command::new("sh");
    shell
        .arg("-c")
        .arg(command)
        .current_dir(workspace.root())
        .stdin(Stdio::null())
        // Start from an empty environment: the parent's may contain keys.
        .env_clear()
        .envs(environment.variables())
        .env("TERM", "dumb")
        .env("PAGER", "cat")
        .env("GIT_PAGER", "cat")
        .env("GIT_TERMINAL_PROMPT", "0")
        // A group of its own, so that the whole command can be killed, and so that Ctrl-C in the
        // terminal reaches only the agent.
        .process_group(0);
    shell
}

/// How a command ended.
enum CommandEnd {
    Exited(ExitStatus),
    TimedOut(Duration),
    TooMuch(usize),
}

/// The result of a command.
struct CommandResult {
    written: Vec<u8>,
    end: CommandEnd,
}

impl CommandResult {
    fn outcome(self) -> ToolOutcome {
        let text = readable(self.written);
        let (is_error, note) = match self.end {
            CommandEnd::Exited(status) if status.success() => (false, None),
            CommandEnd::Exited(status) => (true, Some(ended(status))),
            CommandEnd::TimedOut(time) => (
                true,
                Some(format!("ended after {} s, its time limit", time.as_secs())),
            ),
            CommandEnd::TooMuch(most) => (
                true,
                Some(format!("ended because it wrote more than {most} bytes")),
            ),
        };
        let text = match note {
            Some(note) if text.is_empty() || text.ends_with('\n') => format!("{text}[{note}]"),
            Some(note) => format!("{text}\n[{note}]"),
            None if text.is_empty() => "[no output]".to_owned(),
            None => text,
        };
        ToolOutcome { text, is_error }
    }
}

fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}
