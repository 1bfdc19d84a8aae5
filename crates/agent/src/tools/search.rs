//! Searching the files of the workspace.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use globset::{Glob, GlobMatcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::sinks::Lossy;
use grep_searcher::{BinaryDetection, SearcherBuilder};
use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::typed;
use super::{Definition, Outcome, Tool, Work, Workspace, blocking};

/// The most lines that are given: who needs more should ask more precisely.
const MOST: usize = 2_000;

/// How long a search may take.
const TIME: Duration = Duration::from_secs(30);

/// The longest line that is given whole.
const LONGEST_LINE: usize = 2_000;

/// Searches the files of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Search;

#[derive(Deserialize)]
struct Asked {
    pattern: String,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    glob: Option<String>,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    ignore_case: bool,
}

impl Tool for Search {
    fn definition(&self) -> Definition {
        Definition::new(
            "search",
            "Searches the text files of the workspace for a regular expression and gives each \
             matching line as path:number:line. Hidden and ignored files are left out.",
            json!({
                "type": "object",
                "properties": {
                    "pattern": { "type": "string", "description": "Regular expression to look for." },
                    "path": { "type": "string", "description": "File or folder to search. Default: the whole workspace." },
                    "glob": { "type": "string", "description": "Only files whose path matches this glob, such as *.rs." },
                    "literal": { "type": "boolean", "description": "True if the pattern is plain text. Default false." },
                    "ignore_case": { "type": "boolean", "description": "True to ignore upper and lower case. Default false." },
                },
                "required": ["pattern"],
            }),
        )
    }

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> Work<'a> {
        Box::pin(async move { Outcome::from(search(arguments, workspace).await) })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

async fn search(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let asked: Asked = typed(arguments)?;
    let path = asked.path.as_deref().unwrap_or(".");
    let place = workspace
        .existing(path)
        .map_err(|error| error.to_string())?;
    let matcher = RegexMatcherBuilder::new()
        .fixed_strings(asked.literal)
        .case_insensitive(asked.ignore_case)
        .build(&asked.pattern)
        .map_err(|error| format!("bad pattern `{}`: {error}", asked.pattern))?;
    let glob = asked.glob.as_deref().map(Glob::new).transpose();
    let glob = glob.map_err(|error| format!("bad glob: {error}"))?;
    let stop = Stop::default();
    let mut hits = Hits {
        workspace: workspace.clone(),
        matcher,
        glob: glob.map(|glob| glob.compile_matcher()),
        lines: Vec::new(),
        until: Instant::now() + TIME,
        stopped: Arc::clone(&stop.0),
    };
    blocking(move || Ok(hits.all(&place))).await
}

/// Stops the search when the call is dropped.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

struct Hits {
    workspace: Workspace,
    matcher: RegexMatcher,
    glob: Option<GlobMatcher>,
    lines: Vec<String>,
    until: Instant,
    stopped: Arc<AtomicBool>,
}

impl Hits {
    fn all(&mut self, place: &Path) -> String {
        let mut walk = WalkBuilder::new(place);
        walk.require_git(false).sort_by_file_path(Ord::cmp);
        for entry in walk.build().flatten() {
            if entry.file_type().is_some_and(|kind| kind.is_file()) && self.is_wanted(entry.path())
            {
                self.file(entry.path());
            }
            if self.is_over() {
                break;
            }
        }
        self.report()
    }

    fn is_wanted(&self, path: &Path) -> bool {
        let Some(glob) = &self.glob else { return true };
        let relative = path.strip_prefix(self.workspace.root()).unwrap_or(path);
        glob.is_match(relative) || path.file_name().is_some_and(|name| glob.is_match(name))
    }

    fn is_over(&self) -> bool {
        self.lines.len() >= MOST
            || Instant::now() > self.until
            || self.stopped.load(Ordering::Relaxed)
    }

    fn file(&mut self, path: &Path) {
        let shown = self.workspace.shown(path);
        let matcher = self.matcher.clone();
        let sink = Lossy(|number, line| {
            let line: String = line.trim_end().chars().take(LONGEST_LINE).collect();
            self.lines.push(format!("{shown}:{number}:{line}"));
            Ok(!self.is_over())
        });
        let mut searcher = SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .build();
        // A file that cannot be read is as good as one without a match.
        let _ = searcher.search_path(&matcher, path, sink);
    }

    fn report(&mut self) -> String {
        if self.lines.is_empty() {
            return "[nothing found]".to_owned();
        }
        if self.lines.len() >= MOST {
            self.lines
                .push(format!("[only the first {MOST} matches are shown]"));
        } else if Instant::now() > self.until {
            let seconds = TIME.as_secs();
            self.lines
                .push(format!("[stopped after {seconds} s: there may be more]"));
        }
        self.lines.join("\n")
    }
}
