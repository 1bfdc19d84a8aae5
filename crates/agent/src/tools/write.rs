//! Writing a file.

use std::fs;

use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::typed;
use super::{Definition, Outcome, Tool, Work, Workspace, blocking};

/// Writes a file of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteFile;

#[derive(Deserialize)]
struct Asked {
    path: String,
    content: String,
}

impl Tool for WriteFile {
    fn definition(&self) -> Definition {
        Definition::new(
            "write_file",
            "Writes a text file of the workspace, in place of what was in it. Folders on the way \
             to it are made.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Path, relative to the workspace." },
                    "content": { "type": "string", "description": "All that the file shall hold." },
                },
                "required": ["path", "content"],
            }),
        )
    }

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> Work<'a> {
        Box::pin(async move { Outcome::from(write(arguments, workspace).await) })
    }
}

async fn write(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let asked: Asked = typed(arguments)?;
    let place = workspace.new_or_existing(&asked.path);
    let place = place.map_err(|error| error.to_string())?;
    let (root, shown) = (workspace.root().to_owned(), workspace.shown(&place));
    blocking(move || {
        let failed = |error: std::io::Error| format!("cannot write `{shown}`: {error}");
        if place == root {
            return Err("the path names the workspace itself".to_owned());
        }
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        fs::write(&place, &asked.content).map_err(failed)?;
        Ok(format!("wrote {} bytes to {shown}", asked.content.len()))
    })
    .await
}
