//! Executes `tool_output_cache`: returns lines of an output.

use std::fmt::Write as _;

use serde_json::Value;
use trimtab_engine::view::grouped;
use trimtab_engine::view::tools::ToolNames;
use trimtab_store::{LineRange, OpenOutput, OutputForm, OutputLine};

use super::arguments::CallArguments;
use super::text::{UNREADABLE_NOTE, line_part};
use super::{Retrieval, RetrievalRefusal};

/// The parameters of a read.
pub(super) struct ReadRequest {
    ref_id: String,
    offset: u64,
    limit: u64,
    column: u64,
}

impl ReadRequest {
    pub(super) fn new(arguments: &CallArguments) -> Result<Self, RetrievalRefusal> {
        let missing = "ref_id is missing: copy it from the shortened or trimmed output that you \
            want to read.";
        Ok(Self {
            ref_id: arguments
                .ref_id()?
                .ok_or_else(|| RetrievalRefusal::new(missing))?,
            offset: arguments.count("offset", 0)?.unwrap_or(0),
            limit: arguments.count("limit", 1)?.unwrap_or(u64::MAX),
            column: arguments.count("column", 0)?.unwrap_or(0),
        })
    }

    /// The call of `tool` that reads on at a line, with further `arguments`.
    fn next_call(&self, tool: &str, offset: u64, arguments: &str) -> String {
        let id = Value::from(self.ref_id.as_str());
        format!("{tool}({{\"ref_id\":{id},\"offset\":{offset}{arguments}}})")
    }
}

impl Retrieval<'_> {
    pub(super) fn read(
        &self,
        request: &ReadRequest,
        names: ToolNames,
    ) -> Result<String, RetrievalRefusal> {
        let stored = self
            .store
            .open(&self.session, &request.ref_id, OutputForm::Text)?;
        if stored.is_binary()? {
            return Err(RetrievalRefusal::binary(&stored));
        }
        if request.offset >= stored.line_count() {
            return Ok("Offset exceeds output length.".to_owned());
        }
        let read = stored.lines(LineRange {
            offset: request.offset,
            limit: request.limit,
            max_line_bytes: self.limits.max_line_bytes,
            max_bytes: self.limits.max_bytes,
        })?;
        let behind = request.offset.saturating_add(request.limit);
        let mut next = read.next.filter(|next| *next < behind);
        let (mut text, mut unreadable) = (String::new(), false);
        for line in read.lines {
            let number = line.number;
            let (shown, strange) = self.read_line(&stored, line, request, names)?;
            // The first line is always shown, or the model could never read on.
            if !text.is_empty() && text.len() + 1 + shown.len() > self.limits.max_bytes {
                next = Some(number);
                break;
            }
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&shown);
            unreadable |= strange;
        }
        if let Some(next) = next {
            let (first, all) = (request.offset + 1, grouped(stored.line_count()));
            let call = request.next_call(names.read, next, "");
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "\n[trimtab: lines {first} to {next} of {all} are shown; next: {call}]"
            );
        }
        if unreadable {
            text.push_str(UNREADABLE_NOTE);
        }
        Ok(text)
    }

    /// A line with its number, and with the call that returns the rest if it is too long. True if
    /// some of its bytes are not text.
    fn read_line(
        &self,
        stored: &OpenOutput,
        mut line: OutputLine,
        request: &ReadRequest,
        names: ToolNames,
    ) -> Result<(String, bool), RetrievalRefusal> {
        // Only the first line starts in its middle.
        let is_first = line.number == request.offset;
        let column = if is_first { request.column } else { 0 };
        // The store reads lines from their start. The rest of a long line is read by its position.
        if column > 0 {
            line.bytes = self.rest_of_line(stored, &line, column)?;
        }
        // `rest_of_line` has refused a column beyond the end.
        let rest = line.byte_size - column;
        let read_on = |given| {
            let arguments = format!(",\"limit\":1,\"column\":{}", column + given);
            let call = request.next_call(names.read, line.number, &arguments);
            format!(": {call}")
        };
        Ok(line_part(line.number, "", &line.bytes, rest, read_on))
    }

    /// The part of a line from `column` on, as much as is shown at once.
    fn rest_of_line(
        &self,
        stored: &OpenOutput,
        line: &OutputLine,
        column: u64,
    ) -> Result<Vec<u8>, RetrievalRefusal> {
        let size = line.byte_size;
        let rest = size.saturating_sub(column);
        if rest == 0 {
            return Err(RetrievalRefusal::new(format!(
                "column {column} is past the end of this line, which has {size} bytes. Leave \
                 column out to read it from its start."
            )));
        }
        let most = usize::try_from(rest).unwrap_or(usize::MAX);
        let most = most.min(self.limits.max_line_bytes);
        Ok(stored.read_at(line.start + column, most)?)
    }
}
