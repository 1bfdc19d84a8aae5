//! Measures whether windows still have what the next calls of recorded sessions needed, and what
//! it costs to get back the rest. `README.md` describes the measure.

mod entry;
#[cfg(test)]
mod fit;
mod needs;
mod rules;
mod score;
#[cfg(test)]
mod test_log;

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use serde_json::json;
use trimtab::config::{Config, ConfigInputs};
use trimtab::engine::policy::Policy;
use trimtab::model::estimate::Measure;
use trimtab::model::{Message, Role};
use trimtab::replay::{ReplaySettings, ReplayStep, parallel, quarter_of_bytes, replay};
use trimtab::wire::transcript::TranscriptReader;

use self::entry::{Entries, Entry};
use self::needs::{Need, needs};
use self::rules::{ORACLE_MARKS, Rule, RuledLog};
use self::score::{Rates, Score, Scorer};

/// Replay recorded sessions, and measure whether the windows still have what the next calls needed.
///
/// The table has one line per preset or rule. A call is ready if it has everything that it took
/// from outputs; `effective` is the bill with the extra calls that fetch the rest. Both bills are
/// shares of sending everything.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// Transcripts
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The model's window in tokens
    #[arg(long, short, default_value_t = 40_000)]
    window: u64,
    /// Presets, and the rules `none`, `drop-oldest` and `oracle`
    #[arg(long, short, value_delimiter = ',', default_value = "steady")]
    presets: Vec<String>,
    /// A setting of every preset
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Replay the first preset with each of these values (ageing.rewrite.economy=1,2,4,8,16)
    #[arg(long, value_name = "KEY=VALUES")]
    vary: Option<String>,
    /// Leave out conversations of fewer tokens (bytes / 4)
    #[arg(long, default_value_t = 20_000)]
    min: u64,
    /// Leave out conversations of more tokens (bytes / 4)
    #[arg(long, default_value_t = u64::MAX)]
    max: u64,
    /// The price of a token from the cache; plain input costs 1
    #[arg(long, default_value_t = 0.1)]
    read: f64,
    /// One line of JSON per preset, with all figures
    #[arg(long)]
    json: bool,
}

/// A recorded conversation.
struct Recorded {
    id: String,
    log: Vec<Arc<Message>>,
    /// The size of the tool definitions, which are the front of every prompt.
    tools: Measure,
    entries: Vec<Arc<Entry>>,
    needs: HashMap<usize, Vec<Need>>,
}

/// What is replayed: a line of the table.
struct Contender {
    name: String,
    method: Method,
}

enum Method {
    Preset(Box<Policy>),
    /// The rules to try; for each conversation the cheapest counts.
    Rules(Vec<Rule>),
}

/// The score of a conversation; none if some call had no window.
type Judged = Option<(Score, u64)>;

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let contenders = contenders(&args)?;
    let recorded = read(&args)?;
    let jobs: Vec<(&Contender, &Recorded)> = contenders
        .iter()
        .flat_map(|contender| recorded.iter().map(move |one| (contender, one)))
        .collect();
    let judged = parallel::map(&jobs, |(contender, one)| judge(contender, one, &args));
    // A call that is not sent would count as free, so its conversation counts nowhere.
    let unsent = jobs
        .iter()
        .zip(&judged)
        .filter(|(_, judged)| judged.is_none());
    let left_out: BTreeSet<&str> = unsent.map(|((_, one), _)| one.id.as_str()).collect();
    let mut out = io::stdout().lock();
    if !args.json {
        let count = recorded.len() - left_out.len();
        writeln!(out, "{count} conversations, window {}", args.window)?;
        if !left_out.is_empty() {
            writeln!(out, "left out, because a call had no window: {left_out:?}")?;
        }
        writeln!(out, "{HEAD}")?;
    }
    for contender in &contenders {
        let (mut score, mut refused) = (Score::default(), 0);
        for ((of, one), judged) in jobs.iter().zip(&judged) {
            let counts = std::ptr::eq(*of, contender) && !left_out.contains(one.id.as_str());
            if let Some((one, faults)) = judged.as_ref().filter(|_| counts) {
                score.add(one);
                refused += faults;
            }
        }
        let line = if args.json {
            json!({"name": contender.name, "window": args.window, "refused": refused,
                "ready_share": score.share("ready", "needing"), "effective": score.effective(),
                "billed": score.share("bill", "bill_all"), "score": score})
            .to_string()
        } else {
            line(&contender.name, &score, refused)
        };
        writeln!(out, "{line}")?;
    }
    Ok(())
}

/// The presets and rules that the arguments name.
fn contenders(args: &Args) -> Result<Vec<Contender>, Box<dyn Error>> {
    let preset = |name: &str, more: Option<&str>| -> Result<Contender, Box<dyn Error>> {
        let mut inputs = ConfigInputs::default();
        inputs.set(&format!("preset={name}"), "--presets");
        for setting in args.set.iter().map(String::as_str).chain(more) {
            inputs.set(setting, "--set");
        }
        let policy = Config::load(&inputs)?.policy;
        let more = more.map_or(String::new(), |more| format!(" {more}"));
        Ok(Contender {
            name: format!("{name}{more}"),
            method: Method::Preset(Box::new(policy)),
        })
    };
    let mut found = Vec::new();
    if let (Some(vary), Some(first)) = (&args.vary, args.presets.first()) {
        let (key, values) = vary.split_once('=').ok_or("--vary needs KEY=VALUES")?;
        for value in values.split(',') {
            found.push(preset(first, Some(&format!("{key}={value}")))?);
        }
    }
    for name in &args.presets {
        let rules = match name.as_str() {
            "none" => vec![Rule::Everything],
            "drop-oldest" => vec![Rule::DropOldest],
            "oracle" => {
                let marks = ORACLE_MARKS.map(|(above, target)| Rule::Oracle(above, target));
                // If everything fits, sending it may be cheapest.
                std::iter::once(Rule::Everything).chain(marks).collect()
            }
            _ => {
                found.push(preset(name, None)?);
                continue;
            }
        };
        found.push(Contender {
            name: name.clone(),
            method: Method::Rules(rules),
        });
    }
    Ok(found)
}

/// Reads the conversations of the given sizes, and finds their needs.
fn read(args: &Args) -> Result<Vec<Recorded>, Box<dyn Error>> {
    let mut logs = Vec::new();
    for path in &args.files {
        let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(|error| failed(&error))?;
        for conversation in TranscriptReader::new(BufReader::new(file)) {
            let conversation = conversation.map_err(|error| failed(&error))?;
            let id = conversation
                .id
                .unwrap_or_else(|| path.display().to_string());
            let log: Vec<_> = conversation.messages.into_iter().map(Arc::new).collect();
            let tokens = quarter_of_bytes(&log);
            let tools = conversation.tools.iter();
            let tools: Measure = tools.map(|tool| Measure::of_tools(tool.as_str())).sum();
            if tokens >= args.min && tokens <= args.max {
                logs.push((id, log, tools));
            }
        }
    }
    Ok(parallel::map(&logs, |(id, log, tools)| {
        let entries = Entries::default().of(log);
        Recorded {
            id: id.clone(),
            log: log.clone(),
            tools: *tools,
            needs: needs(&entries),
            entries,
        }
    }))
}

/// The score of a conversation, and the windows that a provider would reject.
fn judge(contender: &Contender, recorded: &Recorded, args: &Args) -> Judged {
    let rates = Rates {
        read: args.read,
        write: 1.25,
        answer: 5.0,
    };
    let new_scorer = || Scorer::new(&recorded.entries, &recorded.needs, args.window, rates);
    match &contender.method {
        Method::Preset(policy) => {
            let mut scorer = new_scorer();
            let settings = ReplaySettings {
                tools: recorded.tools,
                ..ReplaySettings::new(args.window)
            };
            let mut see = |step: ReplayStep<'_>| {
                let refs = step.refs();
                let refs = refs
                    .iter()
                    .map(|shown| (shown.call_id.as_str(), shown.stored.id()));
                scorer.add(step.call, step.messages, &refs.collect());
            };
            let policy = Policy::clone(policy);
            let report = replay(&recorded.log, policy, &settings, &mut see).ok()?;
            (report.refused == 0).then(|| (scorer.finish(), report.refused))
        }
        Method::Rules(rules) => {
            let tried = rules.iter().map(|rule| {
                let mut session = RuledLog::new(*rule, args.window, &recorded.needs);
                let mut scorer = new_scorer();
                for (at, message) in recorded.log.iter().enumerate() {
                    if message.role == Role::Assistant {
                        scorer.add(at, &session.window(), &HashMap::new());
                    }
                    session.admit(message);
                }
                scorer.finish()
            });
            let best = tried.min_by(|one, other| {
                let order = one.get("over").total_cmp(&other.get("over"));
                order.then(one.effective().total_cmp(&other.effective()))
            });
            best.map(|score| (score, 0))
        }
    }
}

const HEAD: &str = "\
rule                             ready  effective  billed  unseen  fresh names  fresh lines  \
old names  old lines  lost  fetches  over  refused";

fn line(name: &str, score: &Score, refused: u64) -> String {
    let percent = |name: &str, of: &str| format!("{:.1} %", 100.0 * score.share(name, of));
    let shown = |kind: &str| percent(&format!("{kind}_shown"), kind);
    format!(
        "{name:<30} {:>8} {:>9.3} {:>7.3} {:>7} {:>12} {:>12} {:>10} {:>10} {:>5} {:>8} {:>5} {refused:>8}",
        percent("ready", "needing"),
        score.effective(),
        score.share("bill", "bill_all"),
        percent("unseen", "arrived"),
        shown("fresh_name"),
        shown("fresh_line"),
        shown("old_name"),
        shown("old_line"),
        score.get("old_name_lost") + score.get("old_line_lost"),
        score.get("fetches"),
        score.get("over"),
    )
}
