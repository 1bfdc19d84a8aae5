//! The tool `list`: lists a folder.

use std::time::Duration;

use rustix::fs::FileType;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::parse_as;
use super::limit::WorkLimit;
use super::walk::{FolderWalk, WalkEntry};
use super::workspace::display_path;
use super::{Tool, ToolDefinition, ToolFuture, ToolOutcome, Workspace, blocking};

/// The maximum number of entries. A model cannot use more.
const MOST: usize = 20_000;

/// The time limit.
const TIME: Duration = Duration::from_secs(30);

/// Lists a folder of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListFolder;

#[derive(Deserialize)]
struct ListFolderArgs {
    #[serde(default = "here")]
    path: String,
    #[serde(default)]
    recursive: bool,
}

fn here() -> String {
    ".".to_owned()
}

impl Tool for ListFolder {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(
            "list",
            "Lists a folder of the workspace: folders end in /, files come with their size in \
             bytes. Hidden and ignored files are left out.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Folder, relative to the workspace. Default: the workspace itself." },
                    "recursive": { "type": "boolean", "description": "True to list what is in its folders too. Default false." },
                },
            }),
        )
    }

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move { ToolOutcome::from(list(arguments, workspace).await) })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

async fn list(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let args: ListFolderArgs = parse_as(arguments)?;
    let workspace = workspace.clone();
    // If this future is dropped, the guard is dropped with it, and the blocking thread stops.
    let (limit, _waiting) = WorkLimit::new(TIME);
    blocking(move || {
        let opened = workspace.open_folder(&args.path);
        let (folder, path) = opened.map_err(|error| error.to_string())?;
        let mut lines = Vec::new();
        let mut visit = |entry: &WalkEntry<'_>| {
            if lines.len() == MOST {
                lines.push(format!("[only the first {MOST} entries are shown]"));
                return false;
            }
            lines.push(line(entry));
            !limit.is_over()
        };
        FolderWalk::new(workspace.root(), args.recursive, &mut visit).run(&folder, &path);
        lines.extend(limit.note());
        if lines.is_empty() {
            return Ok("[the folder is empty, or all in it is hidden or ignored]".to_owned());
        }
        Ok(lines.join("\n"))
    })
    .await
}

fn line(entry: &WalkEntry<'_>) -> String {
    let shown = display_path(entry.path);
    match entry.kind {
        FileType::Directory => format!("{shown}/"),
        FileType::Symlink => format!("{shown} (link)"),
        FileType::RegularFile => format!("{shown} {}", entry.byte_size),
        _ => format!("{shown} (special file)"),
    }
}
