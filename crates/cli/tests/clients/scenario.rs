//! The scenarios of the scripted model, and the folder that it explores.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

/// What the user asks for. The first words tell requests of the session from others.
pub(crate) const TASK: &str = "Audit of host kestrel: look through the logs and module.py in this \
     folder with your shell tool, find the needle, and tell me what you decided.";
/// What the user asks in a session that is continued.
pub(crate) const RESUMED_TASK: &str = "Please continue with the second part of the audit.";
/// The part of [`TASK`] that must be in every window.
pub(crate) const TASK_MARK: &str = "Audit of host kestrel";
/// The finding: it is in an output of the second round, and nowhere in the model's words.
pub(crate) const NEEDLE: &str = "NEEDLE-5f3a90c7";
/// What the model looks for when the finding is gone.
pub(crate) const NEEDLE_PATTERN: &str = "NEEDLE-";
/// The decision, in the model's words of the second round.
pub(crate) const DECISION: &str = "raise the quota of volume data-7 to 40 GB";
/// What the model looks for when the decision is gone.
pub(crate) const DECISION_PATTERN: &str = "I decided";
/// What the model says when it waits for [`RESUMED_TASK`].
pub(crate) const PAUSE_WORDS: &str = "The first part of the audit is done.";
/// The beginning of the model's last words.
pub(crate) const LAST_WORDS: &str = "FINISHED the audit";

/// How many rounds of calls a long session has.
const LONG_ROUNDS: usize = 39;
/// Lines of the log that a round of a long session shows: some 6 KB.
const LONG_LINES: usize = 80;
/// The round of [`Scenario::BigOutputs`] before which the session is continued.
const RESUMED_BEFORE: usize = 5;
/// Lines of `big.log`.
const LOG_LINES: usize = 3_000;
/// Lines of `disk.log`, which no command prints whole.
const DISK_LINES: usize = 400;
/// The line of `disk.log` before which the needle stands.
const NEEDLE_LINE: usize = 210;
/// Functions in `module.py`.
const FUNCTIONS: usize = 200;

/// A session that every client goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scenario {
    /// A few rounds, some with outputs far larger than the window.
    BigOutputs,
    /// The same, and the proxy knows the window only from the model's name.
    DefaultWindow,
    /// The model's window turns out to be smaller than anybody was told, in mid-session.
    Overflow,
    /// Many rounds: the window has to be rewritten more than once.
    LongSession,
}

/// One answer of the model: what it says and the commands that it runs.
#[derive(Clone, Debug)]
pub(crate) struct Round {
    pub(crate) text: String,
    pub(crate) commands: Vec<String>,
}

impl Scenario {
    pub(crate) const ALL: [Self; 4] = [
        Self::BigOutputs,
        Self::DefaultWindow,
        Self::Overflow,
        Self::LongSession,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BigOutputs => "big",
            Self::DefaultWindow => "default window",
            Self::Overflow => "overflow",
            Self::LongSession => "long",
        }
    }

    /// The window that the proxy is told of, in tokens beside the client's own prompt; none if it
    /// is told nothing.
    pub(crate) fn room(self) -> Option<u64> {
        match self {
            Self::BigOutputs => Some(30_000),
            Self::DefaultWindow => None,
            Self::Overflow => Some(100_000),
            Self::LongSession => Some(24_000),
        }
    }

    /// The round before which a client that can do so ends and continues the session.
    pub(crate) fn resumed_before(self) -> Option<usize> {
        matches!(self, Self::BigOutputs | Self::DefaultWindow).then_some(RESUMED_BEFORE)
    }

    /// Whether the upstream of a proxied session refuses what is larger than that window.
    pub(crate) fn is_enforced(self) -> bool {
        matches!(self, Self::BigOutputs | Self::LongSession)
    }

    /// The round from which on the window is smaller than anybody was told.
    pub(crate) fn shrinks_at(self) -> Option<usize> {
        (self == Self::Overflow).then_some(8)
    }

    /// True if a program makes the calls of a round, where the client allows it. Nobody may shorten
    /// an output for a program, so it makes none whose output is larger than the window.
    pub(crate) fn has_program_in(self, round: usize) -> bool {
        round < 2 || (self == Self::LongSession && round.is_multiple_of(2))
    }

    /// The rounds, in order; behind them the model says its last words.
    pub(crate) fn rounds(self) -> Vec<Round> {
        let mut rounds = vec![
            round("I look around first.", &["ls -la && wc -c *"]),
            round(
                &format!(
                    "I decided: I will {DECISION} and leave the parser alone, because the other \
                     volumes have room."
                ),
                &["grep -n NEEDLE disk.log"],
            ),
        ];
        match self {
            Self::BigOutputs | Self::DefaultWindow => rounds.extend(big_outputs()),
            Self::Overflow => rounds.extend(medium_outputs()),
            Self::LongSession => {
                let rest = rounds.len()..LONG_ROUNDS;
                rounds.extend(rest.map(|number| log_round(number, LONG_LINES)));
            }
        }
        rounds
    }
}

fn round(text: &str, commands: &[&str]) -> Round {
    Round {
        text: text.to_owned(),
        commands: commands.iter().map(ToString::to_string).collect(),
    }
}

/// Outputs of up to 589 KB, two at once, and a command that fails.
fn big_outputs() -> Vec<Round> {
    vec![
        round("", &["seq 1 100000"]),
        round("The log next.", &["cat big.log"]),
        round(
            "Two things at once.",
            &["cat module.py", "tail -n 400 big.log"],
        ),
        round("", &["head -c 40000 big.log"]),
        round("", &["false; echo the exit code was $?; exit 3"]),
    ]
}

/// Outputs that fit, until the window shrinks: two of 8 KB in each round.
fn medium_outputs() -> Vec<Round> {
    let rounds = (1..10).map(|number| {
        let mut both = log_round(number * 2, 110);
        both.commands
            .extend(log_round(number * 2 + 1, 110).commands);
        both
    });
    rounds.collect()
}

/// A round that reads the next `lines` of the log.
fn log_round(number: usize, lines: usize) -> Round {
    let first = (number - 2) * lines % (LOG_LINES - lines);
    let last = first + lines;
    let first = first + 1;
    let worker = number % 7;
    round(
        &format!("Lines from {first} on are next; worker-{worker} was slow before."),
        &[&format!("sed -n '{first},{last}p' big.log | cut -c 1-120")],
    )
}

/// Writes the folder that the session is about. No line of it is like another.
pub(crate) fn write_folder(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    std::fs::write(folder.join("big.log"), log_lines(0..LOG_LINES)).unwrap();
    let disk = LOG_LINES..LOG_LINES + DISK_LINES;
    let (before, after) = (
        disk.start..disk.start + NEEDLE_LINE,
        disk.start + NEEDLE_LINE..disk.end,
    );
    let needle =
        format!("2026-01-01T00:35:00Z ERROR {NEEDLE} disk quota exceeded on volume data-7\n");
    let disk = log_lines(before) + &needle + &log_lines(after);
    std::fs::write(folder.join("disk.log"), disk).unwrap();
    let mut module = String::new();
    for number in 0..FUNCTIONS {
        let _ = writeln!(
            module,
            "def function_{number:03}(a, b):\n    \"\"\"Number {number}.\"\"\"\n    return a * \
             {number} + b  # {:016x}\n",
            spread(number)
        );
    }
    std::fs::write(folder.join("module.py"), module).unwrap();
}

fn log_lines(lines: Range<usize>) -> String {
    let mut log = String::new();
    for line in lines {
        let (request, took) = (spread(line), spread(line + LOG_LINES * 2) % 65_536);
        let (minute, second, worker) = (line / 60 % 60, line % 60, line % 7);
        let _ = writeln!(
            log,
            "2026-01-01T00:{minute:02}:{second:02}Z INFO worker-{worker} req={request:016x} took={took}us"
        );
    }
    log
}

/// A number without a pattern, the same for the same `seed`.
fn spread(seed: usize) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    seed.hash(&mut hasher);
    hasher.finish()
}
