//! Listing a folder.

use ignore::WalkBuilder;
use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::typed;
use super::{Definition, Outcome, Tool, Work, Workspace, blocking};

/// The most entries of a listing: a model has no use for more.
const MOST: usize = 20_000;

/// Lists a folder of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct List;

#[derive(Deserialize)]
struct Asked {
    #[serde(default = "here")]
    path: String,
    #[serde(default)]
    recursive: bool,
}

fn here() -> String {
    ".".to_owned()
}

impl Tool for List {
    fn definition(&self) -> Definition {
        Definition::new(
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

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> Work<'a> {
        Box::pin(async move { Outcome::from(list(arguments, workspace).await) })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

async fn list(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let asked: Asked = typed(arguments)?;
    let place = workspace
        .existing(&asked.path)
        .map_err(|error| error.to_string())?;
    let workspace = workspace.clone();
    blocking(move || {
        if !place.is_dir() {
            return Err(format!("`{}` is not a folder", asked.path));
        }
        let mut walk = WalkBuilder::new(&place);
        walk.max_depth(if asked.recursive { None } else { Some(1) })
            .require_git(false)
            .sort_by_file_path(Ord::cmp);
        let mut lines = Vec::new();
        for entry in walk.build().flatten().filter(|entry| entry.depth() > 0) {
            if lines.len() == MOST {
                lines.push(format!("[only the first {MOST} entries are shown]"));
                break;
            }
            lines.push(line(&workspace, &entry));
        }
        if lines.is_empty() {
            return Ok("[the folder is empty, or all in it is hidden or ignored]".to_owned());
        }
        Ok(lines.join("\n"))
    })
    .await
}

fn line(workspace: &Workspace, entry: &ignore::DirEntry) -> String {
    let shown = workspace.shown(entry.path());
    match entry.file_type() {
        Some(kind) if kind.is_dir() => format!("{shown}/"),
        Some(kind) if kind.is_symlink() => format!("{shown} (link)"),
        _ => {
            let size = entry.metadata().map_or(0, |metadata| metadata.len());
            format!("{shown} {size}")
        }
    }
}
