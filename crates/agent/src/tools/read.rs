//! The tool `read_file`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use serde::Deserialize;
use serde_json::{Value, json};

use super::arguments::parse_as;
use super::text::readable;
use super::{Tool, ToolDefinition, ToolFuture, ToolOutcome, Workspace, WorkspaceError, blocking};

/// The maximum size per call. All of it is stored, and admission decides how much the model sees.
const MOST: u64 = 16 << 20;

/// The maximum of bytes that are read to find a line. A sparse file can be far longer than a disk.
const MOST_SEARCHED: u64 = 1 << 30;

/// Reads a file of the workspace.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadFile;

#[derive(Deserialize)]
struct ReadFileArgs {
    path: String,
    /// The first line, from 1.
    offset: Option<usize>,
    /// The number of lines.
    limit: Option<usize>,
}

impl Tool for ReadFile {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(
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

    fn call<'a>(&'a self, arguments: &'a Value, workspace: &'a Workspace) -> ToolFuture<'a> {
        Box::pin(async move { ToolOutcome::from(read(arguments, workspace).await) })
    }

    fn only_reads(&self) -> bool {
        true
    }
}

async fn read(arguments: &Value, workspace: &Workspace) -> Result<String, String> {
    let args: ReadFileArgs = parse_as(arguments)?;
    let workspace = workspace.clone();
    blocking(move || {
        let file = workspace.open_file(&args.path).map_err(|error| {
            let hint = match &error {
                WorkspaceError::NotRegular { kind: "folder", .. } => "\nhint: use list for it",
                _ => "",
            };
            format!("{error}{hint}")
        })?;
        let read = if args.offset.is_some() || args.limit.is_some() {
            lines(file, args.offset.unwrap_or(1).max(1), args.limit)
        } else {
            whole(file)
        };
        read.map_err(|error| format!("cannot read `{}`: {error}", args.path))
    })
    .await
}

fn whole(file: File) -> io::Result<String> {
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

/// Reads the requested lines. Memory is proportional to these lines, however long the others are.
fn lines(file: File, offset: usize, limit: Option<usize>) -> io::Result<String> {
    let mut reader = BufReader::new(file.take(MOST_SEARCHED));
    let wanted = offset..offset.saturating_add(limit.unwrap_or(usize::MAX));
    let (mut bytes, mut number, mut is_started) = (Vec::new(), 1, false);
    while number < wanted.end && bytes.len() as u64 <= MOST {
        // Read in pieces of the buffer and not line by line: a line can be larger than the memory.
        let piece = reader.fill_buf()?;
        if piece.is_empty() {
            break;
        }
        let end = piece.iter().position(|byte| *byte == b'\n');
        let piece = end.and_then(|end| piece.get(..=end)).unwrap_or(piece);
        if wanted.contains(&number) {
            bytes.extend_from_slice(piece);
        }
        let used = piece.len();
        reader.consume(used);
        is_started = end.is_none();
        number += usize::from(end.is_some());
    }
    // Of what was searched, nothing is left.
    let is_unsearched = reader.get_ref().limit() == 0 && reader.fill_buf()?.is_empty();
    if bytes.is_empty() && is_unsearched {
        return Err(io::Error::other(format!(
            "line {offset} is not in its first {MOST_SEARCHED} bytes"
        )));
    }
    if bytes.is_empty() {
        // `number` is the line that would come next, unless the last line has begun and has no line
        // end.
        let count = number - usize::from(!is_started);
        return Ok(format!(
            "[there is no line {offset}: the file has {count} lines]"
        ));
    }
    // A range that ends early must not look complete.
    let is_cut = number < wanted.end && (is_unsearched || !reader.fill_buf()?.is_empty());
    let size = bytes.len();
    let text = readable(bytes);
    if !is_cut {
        return Ok(text);
    }
    Ok(format!(
        "{text}\n[cut off in line {number}, after {size} bytes]"
    ))
}
