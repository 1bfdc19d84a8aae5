//! `trimtab chat`: a terminal agent.

mod attach;
mod change;
mod choice;
mod command;
mod context;
mod cost;
mod diff;
mod drive;
mod editor;
mod json;
mod markdown;
mod opened;
mod output;
mod person;
mod print;
mod screen;
mod sessions;
mod shown;
mod table;
mod talk;
pub(crate) mod text;

use std::path::PathBuf;

use crate::common::Common;
use crate::exit::Failure;
use crate::handover;
use crate::model::DialectName;
use crate::ui::{Terminal, number};

/// What `trimtab chat` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The model: a name such as claude-sonnet-4-5, gpt-4o or responses:NAME, or scripted:FILE
    #[arg(long, short, value_name = "NAME")]
    pub model: Option<String>,
    /// Where the model is served [default: its provider's own address]
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// What is spoken there [default: by the name of the model]
    #[arg(long, value_name = "DIALECT")]
    pub dialect: Option<DialectName>,
    /// What decides about the window: steady, refs, checkpoint, turns, archive, retention or none
    #[arg(long, short, value_name = "NAME")]
    pub preset: Option<String>,
    /// The window of the model in tokens (200000, 200k) [default: what is known of it]
    #[arg(long, short, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub window: Option<u64>,
    /// The longest answer in tokens [default: what is known of the model, 16k at most]
    #[arg(long, value_name = "TOKENS", value_parser = number::parse_tokens)]
    pub max_output: Option<u64>,
    /// The folder that the tools work in, and never leave [default: the working folder]
    #[arg(long, value_name = "DIR")]
    pub workspace: Option<PathBuf>,
    /// What is not asked about.
    #[command(flatten)]
    pub allowed: AllowedArgs,
    /// Give commands this variable of your environment; may be given several times
    #[arg(long, value_name = "NAME")]
    pub env: Vec<String>,
    /// What the model is told first: a file, or the text itself [default: a short text of ours]
    #[arg(long, value_name = "FILE|TEXT")]
    pub system: Option<String>,
    /// Say this, print the answer and end; - reads it from standard input
    #[arg(long, value_name = "TEXT", conflicts_with = "list")]
    pub print: Option<String>,
    /// Go on with a session: the newest, or the one whose name begins like this
    #[arg(long, short, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with = "list")]
    pub resume: Option<String>,
    /// Show the sessions that can be resumed
    #[arg(long)]
    pub list: bool,
}

/// What the model may do without a question.
#[derive(Debug, clap::Args)]
pub struct AllowedArgs {
    /// Let the model run commands without asking
    #[arg(long)]
    pub allow_shell: bool,
    /// Let the model write files of the workspace without asking
    #[arg(long, visible_alias = "yes")]
    pub allow_writes: bool,
    /// Let the model write files that run commands or steer agents (.git, trimtab.toml, ...)
    #[arg(long)]
    pub allow_protected_files: bool,
}

/// What `trimtab chat --help` says first.
pub const ABOUT: &str = "\
Talk to a model in the terminal: a small agent on the library.

The model can read, list and search files in the workspace, write them and run commands once you \
allow it, and get back every output that was shown to it in short. Before a file is written you \
see what changes and are asked; --allow-writes does not ask. Where there is nobody to ask \
(--print, or input from a pipe), writes and commands are refused unless a flag allows them.

What the model sees is decided by the preset: long outputs are stored whole and shown short, and \
when the window fills up, old rounds become a summary.

Commands get a clean environment, without keys: PATH, HOME and what tools need, and what --env \
or the setting tools.environment names. Files that run commands later or tell agents what to do, \
such as .git, trimtab.toml and settings of agents, are not written without a question.

Keys come from the environment: ANTHROPIC_API_KEY for models that speak Messages, OPENAI_API_KEY \
for all others. A server of your own needs --base-url, and a key only if it asks for one. With \
--model scripted:FILE a script answers (docs/script.md): no key, no network.

What no flag says comes from the session that is resumed, else from the settings: TRIMTAB_MODEL, \
TRIMTAB_PRESET, trimtab.toml (`trimtab config show`).

Every message is saved as it comes. Ctrl-C interrupts the turn, not the program; what was said \
until then stays.";

/// What it says last.
pub const EXAMPLES: &str = "\
In the conversation:
  /context                  how the window is filled, and when it is compacted
  /compact [INSTRUCTIONS]   compact now; says what it saved
  /undo                     take the last compaction or trim back
  /output [REF]             page a stored output; without a ref, list them
  /model [NAME]             show or change the model
  /preset [NAME]            show or change what decides about the window
  /retry                    ask again after an error
  /clear                    begin a new session; this one can be resumed
  /cost                     what was used: calls, tokens, money
  @FILE                     in a message: the file goes along; Tab completes its name
  /help, /quit              Ctrl-D and Ctrl-C twice leave too

Examples:
  trimtab chat --model claude-sonnet-4-5
  trimtab chat --model qwen3 --base-url http://127.0.0.1:8080/v1 --window 32k
  trimtab chat --model scripted:examples/script.json
  trimtab chat --resume                                    go on where you stopped
  trimtab chat --list                                      what there is to resume
  trimtab chat -m gpt-4o --print 'what does this project do?'
  git diff | trimtab chat -m gpt-4o --print - --json | jq -r 'select(.type == \"end\") | .text'

Exit codes: 0 done, 1 the model or the chain of its tools failed, 2 the input or the arguments \
are wrong. The lines of --json are described in docs/chat.md.";

/// Runs the verb.
pub fn run(args: &Args, common: &Common, terminal: &mut Terminal) -> Result<(), Failure> {
    if args.list {
        return sessions::list(common, terminal);
    }
    if common.json && args.print.is_none() {
        return Err(Failure::input(
            "--json is for scripts: it goes with --print or --list",
            "trimtab chat --print 'hello' --json",
        ));
    }
    handover::protect_keys(&opened::environment(args, common)?)?;
    match &args.print {
        Some(said) => print::run(args, said, common, terminal),
        None => talk::run(args, common, terminal),
    }
}
