//! What each call of the real agent took from an output.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use memchr::memmem;

use crate::entry::Entry;

/// The minimum length of a name in bytes.
const SHORTEST_NAME: usize = 6;
/// The minimum length of a line in characters.
const SHORTEST_LINE: usize = 24;
/// The number of newest outputs that are fresh.
const FRESH_OUTPUTS: usize = 2;

/// A kind of text that calls take from outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A path, a qualified name, a number.
    Name,
    /// A whole line.
    Line,
}

/// A text that a call took from an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    /// The text.
    pub(crate) text: String,
    /// Its kind.
    pub(crate) kind: Kind,
    /// True if one of the two newest outputs has it, false if an older one has it.
    pub(crate) is_fresh: bool,
    /// The position of the newest output with it.
    pub(crate) source: usize,
}

impl Need {
    /// Its age and kind.
    pub(crate) fn name(&self) -> &'static str {
        match (self.is_fresh, self.kind) {
            (true, Kind::Name) => "fresh_name",
            (true, Kind::Line) => "fresh_line",
            (false, Kind::Name) => "old_name",
            (false, Kind::Line) => "old_line",
        }
    }
}

/// The needs of each call, by its position. A call needs a text if only outputs had it before: old
/// ones or fresh ones, but not both.
pub(crate) fn needs(log: &[Arc<Entry>]) -> HashMap<usize, Vec<Need>> {
    let mut known: HashMap<String, Occurrences> = HashMap::new();
    let mut outputs: Vec<usize> = Vec::new();
    let mut needs = HashMap::new();
    for (call, entry) in log.iter().enumerate() {
        let (old, fresh) = outputs.split_at(outputs.len().saturating_sub(FRESH_OUTPUTS));
        let needed = used(entry).filter_map(|(text, kind)| {
            let found = known.get(&text);
            let found = match found {
                Some(found) => found,
                None => known
                    .entry(text.clone())
                    .or_insert(Occurrences::of(&text, log)),
            };
            if found.first_said.is_some_and(|said| said < call) {
                return None;
            }
            let newest = |among: &[usize]| {
                let found = |at: &&usize| found.outputs.binary_search(at).is_ok();
                among.iter().rev().find(found).copied()
            };
            let (is_fresh, source) = match (newest(old), newest(fresh)) {
                (Some(source), None) => (false, source),
                (None, Some(source)) => (true, source),
                // In outputs of both ages it proves nothing.
                _ => return None,
            };
            Some(Need {
                text,
                kind,
                is_fresh,
                source,
            })
        });
        let needed: Vec<Need> = needed.collect();
        if !needed.is_empty() {
            needs.insert(call, needed);
        }
        if entry.is_output() {
            outputs.push(call);
        }
    }
    needs
}

/// Where a conversation has a text.
struct Occurrences {
    /// The first message with it that is no output.
    first_said: Option<usize>,
    /// The outputs with it, in order.
    outputs: Vec<usize>,
}

impl Occurrences {
    fn of(text: &str, log: &[Arc<Entry>]) -> Self {
        let finder = memmem::Finder::new(text);
        let has = |text: &str| finder.find(text.as_bytes()).is_some();
        let said = |entry: &Arc<Entry>| {
            !entry.is_output() && (has(&entry.text) || has(&entry.arguments) || has(&entry.written))
        };
        let outputs = log.iter().enumerate();
        let outputs = outputs.filter(|(_, entry)| entry.is_output() && has(&entry.text));
        Self {
            first_said: log.iter().position(said),
            outputs: outputs.map(|(at, _)| at).collect(),
        }
    }
}

/// The names and lines that the calls of a message use, each once.
fn used(entry: &Entry) -> impl Iterator<Item = (String, Kind)> {
    // Escapes of JSON would be glued to the names next to them.
    let plain = entry.arguments.replace("\\n", "\n").replace("\\\"", "\"");
    let names: BTreeSet<String> = names(&plain).map(str::to_owned).collect();
    let lines = entry.written.split('\n').map(str::trim);
    let lines = lines.filter(|line| line.chars().count() >= SHORTEST_LINE);
    let lines: BTreeSet<String> = lines.map(str::to_owned).collect();
    let of_kind = |texts: BTreeSet<String>, kind| texts.into_iter().map(move |text| (text, kind));
    of_kind(names, Kind::Name).chain(of_kind(lines, Kind::Line))
}

/// The names in a text: runs of letters, digits and `_ . / : @ # -` that begin and end with a
/// letter, a digit or `_`, and contain a digit or one of `/ _ .`.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_edge = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_inside = move |c: char| is_edge(c) || matches!(c, '.' | '/' | ':' | '@' | '#' | '-');
    let runs = text.split(move |c: char| !is_inside(c));
    let runs = runs.map(move |run| run.trim_matches(|c: char| !is_edge(c)));
    runs.filter(|run| {
        let joins = |c: char| c.is_ascii_digit() || matches!(c, '/' | '_' | '.');
        run.len() >= SHORTEST_NAME && run.contains(joins)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{call, listing_then_use, log};
    use trimtab::model::Message;

    #[test]
    fn names_are_long_and_joined() {
        let text = "see `src/parser/lexer.rs`, max_retries=3; tokenizer, a.b, /leading 123456";
        let found: Vec<&str> = names(text).collect();
        assert_eq!(found, ["src/parser/lexer.rs", "max_retries", "123456"]);
    }

    fn of(messages: Vec<Message>) -> HashMap<usize, Vec<Need>> {
        needs(&log(messages))
    }

    #[test]
    fn name_of_an_output_is_needed_once_and_belongs_to_the_age_of_its_output() {
        for (between, is_fresh) in [(2, false), (1, true)] {
            let mut messages = listing_then_use(between);
            let at = messages.len() - 1;
            messages.push(Message::output("last", "text"));
            messages.push(call("again", r#"{"path": "src/parser/lexer.rs"}"#));
            let found = of(messages);
            let expected = Need {
                text: "src/parser/lexer.rs".to_owned(),
                kind: Kind::Name,
                is_fresh,
                source: 2,
            };
            assert_eq!(found, HashMap::from([(at, vec![expected])]));
        }
    }

    #[test]
    fn name_that_somebody_said_is_not_needed() {
        let mut messages = listing_then_use(2);
        messages[0] = Message::user("tidy up src/parser/lexer.rs");
        assert_eq!(of(messages), HashMap::new());
    }
}
