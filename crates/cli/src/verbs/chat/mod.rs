//! `trimtab chat`: an agent in the terminal.
//!
//! `open_chat` builds the agent from flags, saved options and settings. `chat_loop` is the
//! interactive loop and `print` a single turn for scripts; both run the agent through
//! `watched_work`, which delivers its events and questions to the user.

mod attach;
mod change_settings;
mod chat_loop;
mod choice;
mod command;
mod context;
mod cost;
pub(super) mod diff;
mod editor;
mod event_text;
mod json;
mod open_chat;
mod output;
mod print;
mod screen;
mod sessions;
mod terminal_user;
pub(crate) mod text;
mod watched_work;
mod word_wrap;

use std::path::PathBuf;

use crate::common::CommonArgs;
use crate::exit::Failure;
use crate::key_handover;
use crate::model::DialectName;
use crate::ui::{Terminal, number};

/// The arguments of `trimtab chat`.
#[derive(Debug, clap::Args)]
pub struct ChatArgs {
    /// The model: a name such as claude-sonnet-4-5, gpt-4o or responses:NAME, or scripted:FILE
    #[arg(long, short, value_name = "NAME")]
    pub model: Option<String>,
    /// The server of the model [default: its provider's address]
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// The API of the server [default: depends on the model]
    #[arg(long, value_name = "DIALECT")]
    pub dialect: Option<DialectName>,
    /// The preset: steady, refs, checkpoint, turns, archive, retention or none
    #[arg(long, short, value_name = "NAME")]
    pub preset: Option<String>,
    /// The window of the model in tokens (200000, 200k) [default: from the catalogue]
    #[arg(long, short, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub window: Option<u64>,
    /// The longest answer in tokens [default: from the catalogue, at most 16k]
    #[arg(long, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub max_output: Option<u64>,
    /// The folder to which the tools are confined [default: the working folder]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// The permissions of the tools.
    #[command(flatten)]
    pub allowed: PermissionArgs,
    /// Pass this environment variable to commands; can be repeated
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// The system prompt: a file, or the text itself [default: a short built-in text]
    #[arg(long, value_name = "FILE|TEXT")]
    pub system: Option<String>,
    /// Send this text, print the answer and exit; - reads it from standard input
    #[arg(long, value_name = "TEXT", conflicts_with = "list")]
    pub print: Option<String>,
    /// Resume a session: the newest, or the one whose name begins with ID
    #[arg(long, short, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "list")]
    pub resume: Option<String>,
    /// List the sessions that can be resumed
    #[arg(long)]
    pub list: bool,
}

/// Actions that need no confirmation.
#[derive(Debug, clap::Args)]
pub struct PermissionArgs {
    /// Let the model run commands without asking
    #[arg(long)]
    pub allow_shell: bool,
    /// Let the model write files of the workspace without asking
    #[arg(long, visible_alias = "yes")]
    pub allow_writes: bool,
    /// Let the model write files that run commands or instruct agents (.git, trimtab.toml, ...)
    #[arg(long)]
    pub allow_protected_files: bool,
}

/// The first part of `trimtab chat --help`.
pub const ABOUT: &str = "\
Talk to a model in the terminal.

The model can read, list and search files in the workspace, write files and run commands with your \
permission, and retrieve every output that it saw shortened. Before it writes a file you see the \
change and are asked; --allow-writes skips the question. Without a terminal (--print, or input \
from a pipe), writes and commands are refused unless a flag allows them.

The preset decides what the model sees: long outputs are stored in full and shown shortened, and \
old rounds become a summary when the window fills up.

Commands run in a clean environment without keys: PATH, HOME, variables that tools need, and \
variables named by --env or the setting tools.environment. Files that run commands later or \
instruct agents, such as .git, trimtab.toml and settings of agents, always need a confirmation.

Keys come from the environment: ANTHROPIC_API_KEY for Messages, OPENAI_API_KEY for the other \
dialects. Your own server needs --base-url, and a key only if it requires one. With --model \
scripted:FILE, a script answers (docs/script.md) without a key or a network.

Options without a flag come from the resumed session, else from the settings: TRIMTAB_MODEL, \
TRIMTAB_PRESET, trimtab.toml (`trimtab config show`).

Every message is saved as it arrives. Ctrl-C interrupts the turn, not the program, and keeps the \
partial answer.";

/// The last part of its help.
pub const EXAMPLES: &str = "\
In the conversation:
  /context                  show how the window is filled, and when it is compacted
  /compact [INSTRUCTIONS]   compact now, and show the savings
  /undo                     revert the last compaction or trim
  /output [REF]             open a stored output in the pager, or list all
  /model [NAME]             show or change the model
  /preset [NAME]            show or change the preset
  /retry                    ask again after an error
  /clear                    start a new session; this one can be resumed
  /cost                     show calls, tokens and money
  @FILE                     attach a file to a message; Tab completes its name
  /help, /quit              Ctrl-D, or Ctrl-C twice, also quits

Examples:
  trimtab chat --model claude-sonnet-4-5
  trimtab chat --model qwen3 --base-url http://127.0.0.1:8080/v1 --window 32k
  trimtab chat --model scripted:examples/script.json
  trimtab chat --resume                                    continue the newest session
  trimtab chat --list                                      list the sessions
  trimtab chat -m gpt-4o --print 'what does this project do?'
  git diff | trimtab chat -m gpt-4o --print - --json | jq -r 'select(.type == \"end\") | .text'

Exit codes: 0 success, 1 the model or its tools failed, 2 wrong input or arguments.
docs/chat.md describes the lines of --json.";

/// Runs the verb.
pub fn run(args: &ChatArgs, common: &CommonArgs, terminal: &mut Terminal) -> Result<(), Failure> {
    if args.list {
        return sessions::list(common, terminal);
    }
    if common.json && args.print.is_none() {
        return Err(Failure::input(
            "--json requires --print or --list",
            "trimtab chat --print 'hello' --json",
        ));
    }
    key_handover::protect_keys(&open_chat::environment(args, common)?)?;
    match &args.print {
        Some(prompt) => print::run(args, prompt, common, terminal),
        None => chat_loop::run(args, common, terminal),
    }
}
