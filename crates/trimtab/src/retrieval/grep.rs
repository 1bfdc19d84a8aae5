//! Executes `tool_output_cache_grep`: searches one output, or all outputs of the session.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Instant;

use serde_json::{Map, Value, json};
use trimtab_engine::view::retrieval::AnswerLimits;
use trimtab_engine::view::tools::ToolNames;
use trimtab_store::{
    LineRange, MatchLine, OpenOutput, OutputForm, OutputLine, Query, SearchResults, SearchStop,
};

use super::arguments::CallArguments;
use super::text::{UNREADABLE_NOTE, from_first_char, line_part};
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

    fn query(&self, limits: AnswerLimits) -> Query<'_> {
        let query = if self.regex {
            Query::regex(&self.pattern)
        } else {
            Query::literal(&self.pattern)
        };
        let mut query = query.context(self.before, self.after).max_matches(self.max);
        // One match with all the lines around it must fit an answer.
        let share = limits.max_bytes / (self.before + self.after + 1);
        query.max_work = MOST_WORK;
        query.skip_matches = self.skip;
        // A match in binary data has no line that a model could read.
        query.text_only = true;
        let longest = LINE_BYTES.min(limits.max_line_bytes).max(1);
        query.max_line_bytes = share.saturating_sub(LINE_FRAME).clamp(1, longest);
        query
    }

    /// The call that continues after `skip` matches.
    fn next_call(&self, tool: &str, skip: usize) -> String {
        let usual = usize::try_from(MATCHES).unwrap_or(0);
        let arguments = [
            ("pattern", Some(json!(self.pattern))),
            ("ref_id", self.ref_id.as_ref().map(|id| json!(id))),
            ("regex", self.regex.then_some(json!(true))),
            (
                "before",
                Some(json!(self.before)).filter(|_| self.before > 0),
            ),
            ("after", Some(json!(self.after)).filter(|_| self.after > 0)),
            ("max", Some(json!(self.max)).filter(|_| self.max != usual)),
            ("skip", Some(json!(skip))),
        ];
        // Arguments with their default are left out, to keep the call short.
        let given = arguments.into_iter();
        let given = given.filter_map(|(name, value)| Some((name.to_owned(), value?)));
        let arguments: Map<String, Value> = given.collect();
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
        let query = request.query(self.limits).until(&expired);
        let id = request.ref_id.as_deref();
        let found = self.store.grep(&self.session, id, &query)?;
        // The model asked for this output, so it is told why there is no result. In a search of all
        // outputs, binary ones are only counted.
        if let (Some(id), false) = (id, found.binary.is_empty()) {
            let stored = self.store.open(&self.session, id, OutputForm::Text)?;
            return Err(RetrievalRefusal::binary(&stored));
        }
        let (mut text, shown) = self.matches(&found)?;
        if shown == 0 {
            text = format!("No matches for: {}", request.pattern);
        }
        text.push_str(&rest(request, names, &found, shown));
        text.push_str(&self.gaps(&found));
        Ok(text)
    }

    /// The matches that fit an answer, and their number. The ref stands once above the matches of
    /// an output, and no line is repeated.
    fn matches(&self, found: &SearchResults) -> Result<(String, usize), RetrievalRefusal> {
        let (mut text, mut shown, mut unreadable) = (String::new(), 0, false);
        let mut open = BTreeMap::new();
        let (mut last_id, mut last_lines) = ("", BTreeMap::new());
        for found in &found.matches {
            let mut lines = BTreeMap::new();
            for line in &found.lines {
                let (line_text, strange) = self.found_line(&found.id, line, &mut open)?;
                lines.insert(line.number, line_text);
                unreadable |= strange;
            }
            let is_same = last_id == found.id;
            let mut more = String::new();
            if !is_same {
                let gap = if shown > 0 { "\n" } else { "" };
                more = format!("{gap}ref:{}", found.id);
            }
            for (number, line) in &lines {
                // The contexts of neighbouring matches overlap. A line that was cut around another
                // match is shown again, because its text differs.
                if !is_same || last_lines.get(number) != Some(line) {
                    more.push('\n');
                    more.push_str(line);
                }
            }
            // The first match is always shown, or the search could never continue.
            if shown > 0 && text.len() + more.len() > self.limits.max_bytes {
                break;
            }
            text.push_str(&more);
            shown += 1;
            (last_id, last_lines) = (found.id.as_str(), lines);
        }
        if unreadable {
            text.push_str(UNREADABLE_NOTE);
        }
        Ok((text, shown))
    }

    /// A line with its number. If it is shown in part, also its column and what is missing after
    /// it. True if some of its bytes are not text.
    fn found_line(
        &self,
        id: &str,
        line: &MatchLine,
        open: &mut BTreeMap<String, OpenOutput>,
    ) -> Result<(String, bool), RetrievalRefusal> {
        let (mut column, mut rest) = (0, line.bytes.len() as u64);
        let mut bytes = line.bytes.as_slice();
        if line.clipped {
            let whole = self.place_of_line(id, line.number, open)?;
            column = line.start.saturating_sub(whole.start);
            // The part was cut by bytes, and can begin inside a character.
            if column > 0 {
                bytes = from_first_char(bytes);
                column += rest - bytes.len() as u64;
            }
            rest = whole.byte_size.saturating_sub(column);
        }
        let before = match column {
            0 => String::new(),
            column => format!("[… column {column}] "),
        };
        let read_on = |_| String::new();
        Ok(line_part(line.number, &before, bytes, rest, read_on))
    }

    /// The start and length of a line, without its bytes.
    fn place_of_line(
        &self,
        id: &str,
        number: u64,
        open: &mut BTreeMap<String, OpenOutput>,
    ) -> Result<OutputLine, RetrievalRefusal> {
        // Several matches of one output open it once.
        if !open.contains_key(id) {
            let stored = self.store.open(&self.session, id, OutputForm::Text)?;
            open.insert(id.to_owned(), stored);
        }
        let range = LineRange {
            max_line_bytes: 0,
            ..LineRange::new(number, 1)
        };
        let lines = open.get(id).map(|stored| stored.lines(range)).transpose()?;
        let line = lines.and_then(|lines| lines.lines.into_iter().next());
        line.ok_or(RetrievalRefusal::from(trimtab_store::Error::NotFound))
    }

    /// What was not searched, and why.
    fn gaps(&self, found: &SearchResults) -> String {
        let stopped = match found.stopped {
            Some(SearchStop::Expired) => format!(
                "time was up after {} s; give a ref_id to search one output",
                self.grep_time.as_secs_f64()
            ),
            Some(SearchStop::Work) => "the search cost too much; give a ref_id to search one \
                output, or a plain text in place of a regular expression"
                .to_owned(),
            Some(SearchStop::Matches | SearchStop::Bytes) | None => String::new(),
        };
        let mut text = String::new();
        if !stopped.is_empty() {
            text = format!("\n[trimtab: not everything was searched: {stopped}]");
        }
        if !found.binary.is_empty() {
            let count = found.binary.len();
            let outputs = if count == 1 { "output" } else { "outputs" };
            let _ = write!(text, "\n[trimtab: {count} binary {outputs} not searched]");
        }
        if !found.damaged.is_empty() {
            let ids = found.damaged.join(", ");
            let _ = write!(text, "\n[trimtab: damaged, not searched to the end: {ids}]");
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
