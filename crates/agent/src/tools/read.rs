//! Reading a file.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::typed;
use super::text::readable;
use super::{Definition, Outcome, Tool, Work, Workspace, blocking};

/// The most bytes that are read at once. All of it is stored; how much of it the model sees is
/// decided when it is admitted.
const MOST: u64 = 16 << 20;

/// Reads a file of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadFile;

#[derive(Deserialize)]
struct Asked {
    path: String,
    /// First line, from 1.
    offset: Option<usize>,
    /// How many lines.
    limit: Option<usize>,
}

impl Tool for ReadFile {
    fn definition(&self) -> Definition {
        Definition::new(
            "read_file",
            "Reads a text file of the workspace. Give offset and limit to read a range of lines \
             of a long file.",
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "Path, relative to the workspace." },
                    "offset": { "type": "integer", "minimum": 1, "description": "First line to read, counted from 1. Default 1." },
                    "limit": { "type": "integer", "minimum": 1, "description": "How many lines to read. Default: all." },
                },
                "required": ["path"],
            }),
        )
    }

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> Work<'a> {
        Box::pin(async move { Outcome::from(read(arguments, workspace).await) })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

async fn read(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let asked: Asked = typed(arguments)?;
    let place = workspace
        .existing(&asked.path)
        .map_err(|error| error.to_string())?;
    blocking(move || {
        if place.is_dir() {
            return Err(format!(
                "`{}` is a folder\nhint: use list for it",
                asked.path
            ));
        }
        let read = if asked.offset.is_some() || asked.limit.is_some() {
            lines(&place, asked.offset.unwrap_or(1), asked.limit)
        } else {
            whole(&place)
        };
        read.map_err(|error| format!("cannot read `{}`: {error}", asked.path))
    })
    .await
}

fn whole(place: &Path) -> std::io::Result<String> {
    let file = File::open(place)?;
    let size = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(MOST).read_to_end(&mut bytes)?;
    let text = readable(bytes);
    if size <= MOST {
        return Ok(text);
    }
    let note = "use offset and limit for the rest";
    Ok(format!(
        "{text}\n[the first {MOST} of {size} bytes; {note}]"
    ))
}

fn lines(place: &Path, offset: usize, limit: Option<usize>) -> std::io::Result<String> {
    let mut reader = BufReader::new(File::open(place)?);
    let (mut bytes, mut line, mut number) = (Vec::new(), Vec::new(), 0);
    let last = limit.map_or(usize::MAX, |limit| {
        offset.saturating_sub(1).saturating_add(limit)
    });
    while number < last && bytes.len() as u64 <= MOST {
        line.clear();
        if (&mut reader).take(MOST).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        if number >= offset {
            bytes.extend_from_slice(&line);
        }
    }
    if bytes.is_empty() {
        return Ok(format!(
            "[there is no line {offset}: the file has {number} lines]"
        ));
    }
    Ok(readable(bytes))
}
