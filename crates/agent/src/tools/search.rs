//! The tool `search`: searches the files of the workspace.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use globset::{Glob, GlobMatcher};
use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};
use trimtab_store::{Error, Query, SearchResults};

use super::arguments::parse_as;
use super::confined_path::{LocatedPath, open_regular};
use super::limit::WorkLimit;
use super::text::has_nul;
use super::walk::{FolderWalk, WalkEntry};
use super::workspace::display_path;
use super::{Tool, ToolDefinition, ToolFuture, ToolOutcome, Workspace, blocking};

/// The maximum number of lines. For more, the model should search more precisely.
const MOST: usize = 2_000;

/// The time limit.
const TIME: Duration = Duration::from_secs(30);

/// The longest line that is returned in full, in bytes. Longer lines are cut around the match.
const LONGEST_LINE: usize = 2_000;

/// Searches the files of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct SearchFiles;

#[derive(Deserialize)]
struct SearchFilesArgs {
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

impl Tool for SearchFiles {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(
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

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move { ToolOutcome::from(search(arguments, workspace).await) })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

async fn search(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let asked: SearchFilesArgs = parse_as(arguments)?;
    let glob = asked.glob.as_deref().map(Glob::new).transpose();
    let glob = glob.map_err(|error| format!("bad glob: {error}"))?;
    let workspace = workspace.clone();
    // If this future is dropped, the guard is dropped with it, and the blocking thread stops.
    let (limit, _waiting) = WorkLimit::new(TIME);
    blocking(move || {
        let search = FileSearch {
            args: &asked,
            glob: glob.map(|glob| glob.compile_matcher()),
            lines: Vec::new(),
            limit,
        };
        search.run(&workspace)
    })
    .await
}

/// A search through files. The search of the store executes it, with the same bounds on patterns,
/// lines and memory.
struct FileSearch<'a> {
    args: &'a SearchFilesArgs,
    glob: Option<GlobMatcher>,
    lines: Vec<String>,
    limit: WorkLimit,
}

impl FileSearch<'_> {
    fn run(mut self, workspace: &Workspace) -> Result<String, String> {
        // A bad pattern is an error even if there is nothing to search.
        let checked = self.query(&|| false).check();
        checked.map_err(|error| match error {
            Error::Pattern { why } => format!("bad pattern `{}`: {why}", self.args.pattern),
            error => error.to_string(),
        })?;
        let path = self.args.path.as_deref().unwrap_or(".");
        match workspace.locate(path).map_err(|error| error.to_string())? {
            LocatedPath::Folder { folder, path } => {
                let mut visit = |entry: &WalkEntry<'_>| self.visit(entry);
                FolderWalk::new(workspace.root(), true, &mut visit).run(&folder, &path);
            }
            LocatedPath::File { path: found, .. } => {
                let file = workspace.open_file(path);
                self.file(&found, &file.map_err(|error| error.to_string())?);
            }
            LocatedPath::Missing { .. } => return Err(format!("`{path}` does not exist")),
        }
        Ok(self.report())
    }

    /// Searches an entry if it is a wanted file; false ends the search.
    fn visit(&mut self, entry: &WalkEntry<'_>) -> bool {
        if entry.kind == FileType::RegularFile && self.is_wanted(entry.path) {
            // An unreadable file counts as a file without matches.
            if let Ok(file) = open_regular(entry.folder, entry.name, entry.kind) {
                self.file(entry.path, &file);
            }
        }
        self.lines.len() < MOST && !self.limit.is_over()
    }

    fn is_wanted(&self, path: &Path) -> bool {
        let Some(glob) = &self.glob else { return true };
        // Models write `*.rs` for files in any folder.
        glob.is_match(path) || path.file_name().is_some_and(|name| glob.is_match(name))
    }

    fn file(&mut self, path: &Path, file: &File) {
        if is_binary(file) {
            return;
        }
        let limit = self.limit.clone();
        let is_over = move || limit.is_over();
        let found = self.query(&is_over).search_file(file);
        // A file that cannot be read to its end counts as a file without matches.
        self.add(path, &found.unwrap_or_default());
    }

    fn query<'q>(&self, is_over: &'q dyn Fn() -> bool) -> Query<'q> {
        Query {
            regex: !self.args.literal,
            ignore_case: self.args.ignore_case,
            max_line_bytes: LONGEST_LINE,
            // The limit is for all files together.
            max_matches: MOST - self.lines.len().min(MOST),
            ..Query::literal(self.args.pattern.as_str()).until(is_over)
        }
    }

    fn add(&mut self, path: &Path, found: &SearchResults) {
        let shown = display_path(path);
        let lines = found.matches.iter().flat_map(|found| &found.lines);
        for line in lines {
            let number = line.number + 1;
            let text = line.text();
            self.lines
                .push(format!("{shown}:{number}:{}", text.trim_end()));
        }
    }

    fn report(mut self) -> String {
        if self.lines.len() >= MOST {
            self.lines
                .push(format!("[only the first {MOST} matches are shown]"));
        } else {
            self.lines.extend(self.limit.note());
        }
        if self.lines.is_empty() {
            return "[nothing found]".to_owned();
        }
        self.lines.join("\n")
    }
}

/// True if the start of the file is not text.
fn is_binary(file: &File) -> bool {
    let mut head = [0; 8192];
    // `read_at` leaves the position of the file alone, so that the search starts at the beginning.
    let read = file.read_at(&mut head, 0).unwrap_or(0);
    has_nul(head.get(..read).unwrap_or_default())
}
