//! Executes `tool_output_cache`: returns lines of an output.

use trimtab_engine::view::retrieval::{AnswerLine, ReadAnswer};
use trimtab_engine::view::tools::ToolNames;
use trimtab_store::{LineRange, OpenOutput, OutputForm};

use super::arguments::CallArguments;
use super::text::{UNREADABLE_NOTE, readable, whole_chars};
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
}

/// A line to be shown, from some column on.
struct ShownLine {
    bytes: Vec<u8>,
    unread: u64,
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
        let first = usize::try_from(request.offset).unwrap_or(usize::MAX);
        let (id, column) = (&request.ref_id, request.column);
        let total = stored.line_count();
        let mut answer = ReadAnswer::new(id, names.read, first, column, total, self.limits);
        if request.offset >= stored.line_count() {
            return Ok(answer.finish());
        }
        let (lines, has_more) = self.lines(&stored, request)?;
        let mut unreadable = false;
        let mut is_full = false;
        for line in &lines {
            let (text, strange) = readable(&line.bytes);
            let unread = line.unread;
            let text = &*text;
            is_full = answer.push(AnswerLine { text, unread }).is_break();
            if is_full {
                break;
            }
            unreadable |= strange;
        }
        if has_more && !is_full {
            // The store stopped because the answer is full. This line is not added, but makes the
            // answer say where to continue.
            let _ = answer.push("");
        }
        let mut text = answer.finish();
        if unreadable {
            text.push_str(UNREADABLE_NOTE);
        }
        Ok(text)
    }

    /// The requested lines that fit an answer; true if some did not.
    fn lines(
        &self,
        stored: &OpenOutput,
        request: &ReadRequest,
    ) -> Result<(Vec<ShownLine>, bool), RetrievalRefusal> {
        let range = LineRange {
            offset: request.offset,
            limit: request.limit,
            max_line_bytes: self.limits.max_line_bytes,
            max_bytes: self.limits.max_bytes,
        };
        let read = stored.lines(range)?;
        let behind = request.offset.saturating_add(request.limit);
        let has_more = read.next.is_some_and(|next| next < behind);
        let mut shown = Vec::with_capacity(read.lines.len());
        for mut line in read.lines {
            let column = if line.number == request.offset {
                request.column
            } else {
                0
            };
            // The store reads lines from their start. The rest of a long line is read by its
            // position.
            if column > 0 {
                line.bytes = self.rest_of_line(stored, &line, column)?;
            }
            // `rest_of_line` has refused a column beyond the end.
            let rest = line.byte_size - column;
            // The line was cut by bytes, perhaps inside a character.
            if (line.bytes.len() as u64) < rest {
                let whole = whole_chars(&line.bytes).len();
                line.bytes.truncate(whole);
            }
            let unread = rest.saturating_sub(line.bytes.len() as u64);
            let bytes = line.bytes;
            shown.push(ShownLine { bytes, unread });
        }
        Ok((shown, has_more))
    }

    /// The part of a line from `column` on, as much as is shown at once.
    fn rest_of_line(
        &self,
        stored: &OpenOutput,
        line: &trimtab_store::OutputLine,
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
