//! Executes `tool_output_cache_grep`: searches one output, or all outputs of the session.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Map, Value};
use trimtab_engine::view::retrieval::{AnswerLine, GrepAnswer};
use trimtab_engine::view::tools::ToolNames;
use trimtab_store::{
    LineRange, MatchLine, OpenOutput, OutputForm, Query, SearchMatch, SearchResults, SearchStop,
};

use super::arguments::CallArguments;
use super::text::{UNREADABLE_NOTE, from_first_char, readable, whole_chars};
use super::{Retrieval, RetrievalRefusal};

/// The default number of matches.
const MATCHES: u64 = 50;
/// The maximum of lines around a match. More would be a read.
const MOST_AROUND: u64 = 50;
/// The bytes of a long line that are shown around its match.
const LINE_BYTES: usize = 2_000;
/// The work limit of a search: about 0.3 s of processor time, for 128 MiB of text or a quarter of
/// that with a regular expression.
const MOST_WORK: u64 = 128 * 1024 * 1024;
/// The room for our additions before and after the bytes of a line.
const LINE_FRAME: usize = 80;

/// The parameters of a search.
pub(super) struct GrepRequest {
    pattern: String,
    ref_id: Option<String>,
    regex: bool,
    before: usize,
    after: usize,
    max: usize,
    skip: usize,
}

impl GrepRequest {
    pub(super) fn new(arguments: &CallArguments) -> Result<Self, RetrievalRefusal> {
        let missing = "pattern is missing: give the text to look for.";
        let around = |name| {
            let lines = arguments.count(name, 0)?.unwrap_or(0).min(MOST_AROUND);
            Ok::<_, RetrievalRefusal>(usize::try_from(lines).unwrap_or(0))
        };
        let max = arguments.count("max", 1)?.unwrap_or(MATCHES);
        let skip = arguments.count("skip", 0)?.unwrap_or(0);
        Ok(Self {
            pattern: arguments
                .text("pattern")?
                .ok_or_else(|| RetrievalRefusal::new(missing))?,
            ref_id: arguments.ref_id()?,
            regex: arguments.flag("regex")?,
            before: around("before")?,
            after: around("after")?,
            max: usize::try_from(max).unwrap_or(usize::MAX),
            skip: usize::try_from(skip).unwrap_or(usize::MAX),
        })
    }

    fn query(&self, max_bytes: usize) -> Query<'_> {
        let query = if self.regex {
            Query::regex(&self.pattern)
        } else {
            Query::literal(&self.pattern)
        };
        let mut query = query.context(self.before, self.after).max_matches(self.max);
        // One match with all the lines around it must fit an answer.
        let share = max_bytes / (self.before + self.after + 1);
        query.max_work = MOST_WORK;
        query.skip_matches = self.skip;
        // A match in binary data has no line that a model could read.
        query.text_only = true;
        query.max_line_bytes = share.saturating_sub(LINE_FRAME).clamp(1, LINE_BYTES);
        query
    }

    /// The call that continues after `skip` matches.
    fn next_call(&self, tool: &str, skip: usize) -> String {
        let mut arguments = Map::new();
        arguments.insert("pattern".to_owned(), Value::from(self.pattern.as_str()));
        if let Some(id) = &self.ref_id {
            arguments.insert("ref_id".to_owned(), Value::from(id.as_str()));
        }
        if self.regex {
            arguments.insert("regex".to_owned(), Value::from(true));
        }
        let numbers = [
            ("before", self.before, 0),
            ("after", self.after, 0),
            ("max", self.max, usize::try_from(MATCHES).unwrap_or(0)),
            ("skip", skip, 0),
        ];
        // Arguments with their default are left out, to keep the call short.
        for (name, number, _) in numbers.iter().filter(|(_, number, usual)| number != usual) {
            arguments.insert((*name).to_owned(), Value::from(*number));
        }
        format!("{tool}({})", Value::Object(arguments))
    }
}

impl Retrieval<'_> {
    pub(super) fn grep(
        &self,
        request: &GrepRequest,
        names: ToolNames,
    ) -> Result<String, RetrievalRefusal> {
        let started = Instant::now();
        let expired = || started.elapsed() >= self.grep_time;
        let query = request.query(self.limits.max_bytes).until(&expired);
        let id = request.ref_id.as_deref();
        let found = self.store.grep(&self.session, id, &query)?;
        // The model asked for this output, so it is told why there is no result. In a search of all
        // outputs, binary ones are only counted.
        if let (Some(id), false) = (id, found.binary.is_empty()) {
            let stored = self.store.open(&self.session, id, OutputForm::Text)?;
            return Err(RetrievalRefusal::binary(&stored));
        }
        let mut answer = GrepAnswer::new(request.max, self.limits);
        let mut places = LinePlaces::new(self);
        let mut unreadable = false;
        for found in &found.matches {
            let lines = places.lines(found, &mut unreadable)?;
            let first = found.lines.first().map_or(found.line, |line| line.number);
            let first = usize::try_from(first).unwrap_or(usize::MAX);
            let lines = lines.iter().map(|(text, unread)| AnswerLine {
                text,
                unread: *unread,
            });
            if answer.push(&found.id, first, lines).is_break() {
                break;
            }
        }
        let shown = answer.matches();
        let mut text = answer.finish(&request.pattern);
        if unreadable {
            text.push_str(UNREADABLE_NOTE);
        }
        text.push_str(&rest(request, names, &found, shown));
        text.push_str(&self.gaps(&found));
        Ok(text)
    }

    /// What was not searched, and why.
    fn gaps(&self, found: &SearchResults) -> String {
        let mut text = String::new();
        if found.stopped == Some(SearchStop::Expired) {
            let seconds = self.grep_time.as_secs_f64();
            text = format!(
                "\n[trimtab: not everything was searched: time was up after {seconds} s; \
                 give a ref_id to search one output]"
            );
        }
        if found.stopped == Some(SearchStop::Work) {
            text.push_str(
                "\n[trimtab: not everything was searched: the search cost too much; give a \
                 ref_id to search one output, or a plain text in place of a regular expression]",
            );
        }
        if !found.binary.is_empty() {
            let count = found.binary.len();
            let outputs = if count == 1 { "output" } else { "outputs" };
            let _ = write!(text, "\n[trimtab: {count} binary {outputs} not searched]");
        }
        if !found.damaged.is_empty() {
            let ids = found.damaged.join(", ");
            text.push_str("\n[trimtab: damaged, not searched to the end: ");
            text.push_str(&ids);
            text.push(']');
        }
        text
    }
}

/// The line that says which matches are shown, with the call for the next ones; empty if all are
/// shown.
fn rest(request: &GrepRequest, names: ToolNames, found: &SearchResults, shown: usize) -> String {
    let is_cut = matches!(found.stopped, Some(SearchStop::Matches | SearchStop::Bytes));
    if shown == 0 && found.skipped > 0 && found.stopped.is_none() {
        let all = found.skipped;
        return format!("\n[trimtab: there are only {all} matches, and skip passed over them]");
    }
    if shown == 0 || (shown == found.matches.len() && !is_cut) {
        return String::new();
    }
    let (first, last) = (found.skipped + 1, found.skipped + shown);
    let next = request.next_call(names.grep, last);
    format!("\n[trimtab: matches {first} to {last} are shown, there are more; next: {next}]")
}

/// Finds out how much is missing of lines that are shown in part.
struct LinePlaces<'a> {
    retrieval: &'a Retrieval<'a>,
    open: BTreeMap<String, OpenOutput>,
}

impl<'a> LinePlaces<'a> {
    fn new(retrieval: &'a Retrieval<'a>) -> Self {
        let open = BTreeMap::new();
        Self { retrieval, open }
    }

    /// The lines of a match, each with the number of missing bytes after it.
    fn lines(
        &mut self,
        found: &SearchMatch,
        unreadable: &mut bool,
    ) -> Result<Vec<(String, u64)>, RetrievalRefusal> {
        let mut shown = Vec::with_capacity(found.lines.len());
        for line in &found.lines {
            let (text, unread, strange) = if line.clipped {
                self.clipped(&found.id, line)?
            } else {
                let (text, strange) = readable(&line.bytes);
                (text.into_owned(), 0, strange)
            };
            *unreadable |= strange;
            shown.push((text, unread));
        }
        Ok(shown)
    }

    /// A part of a line, with its column and the number of missing bytes after it.
    fn clipped(
        &mut self,
        id: &str,
        line: &MatchLine,
    ) -> Result<(String, u64, bool), RetrievalRefusal> {
        let whole = self.line(id, line.number)?;
        let mut column = line.start.saturating_sub(whole.start);
        let mut bytes = line.bytes.as_slice();
        // The part was cut by bytes, and can begin inside a character.
        if column > 0 {
            let behind = from_first_char(bytes);
            column += (bytes.len() - behind.len()) as u64;
            bytes = behind;
        }
        let rest = whole.byte_size.saturating_sub(column);
        if rest > bytes.len() as u64 {
            bytes = whole_chars(bytes);
        }
        let (text, strange) = readable(bytes);
        let text = match column {
            0 => text.into_owned(),
            column => format!("[… column {column}] {text}"),
        };
        Ok((text, rest.saturating_sub(bytes.len() as u64), strange))
    }

    /// The start and length of a line, without its bytes.
    fn line(
        &mut self,
        id: &str,
        number: u64,
    ) -> Result<trimtab_store::OutputLine, RetrievalRefusal> {
        // Several matches of one output open it once.
        if !self.open.contains_key(id) {
            let (store, session) = (self.retrieval.store, &self.retrieval.session);
            let stored = store.open(session, id, OutputForm::Text)?;
            self.open.insert(id.to_owned(), stored);
        }
        let mut range = LineRange::new(number, 1);
        // Only the position and the length of the line are wanted.
        range.max_line_bytes = 0;
        let stored = self.open.get(id);
        let lines = stored.map(|stored| stored.lines(range)).transpose()?;
        let line = lines.and_then(|lines| lines.lines.into_iter().next());
        line.ok_or(RetrievalRefusal::from(trimtab_store::Error::NotFound))
    }
}
