//! Parses a JSON text into a tree of slices.

use trimtab_model::work;

/// One value, or the key of a member.
#[derive(Clone, Copy, Debug)]
pub(super) enum JsonEntry<'a> {
    /// A string with its quotes, a number, `true`, `false` or `null`, as in the text.
    Scalar(&'a str),
    Array(JsonList),
    /// Its entries are keys, each before its value.
    Object(JsonList),
}

/// The elements of an array, or the members of an object.
#[derive(Clone, Copy, Debug)]
pub(super) struct JsonList {
    /// Their number.
    pub(super) count: usize,
    /// The index of its first entry, and of the entry after its last.
    first: usize,
    end: usize,
}

/// Deeper nesting is not parsed: the parser recurses.
const DEEPEST: usize = 120;
/// The approximate number of bytes per entry, to allocate once.
const BYTES_PER_ENTRY: usize = 8;

/// A complete text: all entries in one list in the order of the text, so that it needs only one
/// allocation. The first is the root.
#[derive(Debug)]
pub(in crate::view::structure) struct Tree<'a> {
    entries: Vec<JsonEntry<'a>>,
    pub(super) counts: JsonCounts,
}

/// Counts of a parsed text.
#[derive(Debug, Default)]
pub(super) struct JsonCounts {
    pub(super) scalars: usize,
    /// The length of the longest list or object.
    pub(super) longest: usize,
    /// The length of the longest string in bytes, as in the text.
    pub(super) longest_string: usize,
}

/// Parses `text`, which must be valid JSON; none if it is nested too deep.
pub(in crate::view::structure) fn parse(text: &str) -> Option<Tree<'_>> {
    let mut reader = JsonReader {
        rest: text,
        entries: Vec::with_capacity(text.len() / BYTES_PER_ENTRY),
        counts: JsonCounts::default(),
    };
    reader.value(0)?;
    Some(Tree {
        entries: reader.entries,
        counts: reader.counts,
    })
}

impl<'a> Tree<'a> {
    pub(super) fn root(&self) -> JsonEntry<'a> {
        let first = self.entries.first().copied();
        first.unwrap_or(JsonEntry::Scalar("null"))
    }

    /// The entries of a list. Those of an object alternate between keys and values.
    pub(super) fn entries(&self, list: JsonList) -> impl Iterator<Item = JsonEntry<'a>> {
        let mut at = list.first;
        std::iter::from_fn(move || {
            let entry = *self.entries.get(at..list.end)?.first()?;
            at = match entry {
                JsonEntry::Scalar(_) => at + 1,
                JsonEntry::Array(inner) | JsonEntry::Object(inner) => inner.end,
            };
            Some(entry)
        })
    }
}

struct JsonReader<'a> {
    rest: &'a str,
    entries: Vec<JsonEntry<'a>>,
    counts: JsonCounts,
}

impl<'a> JsonReader<'a> {
    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        work::step(1);
        match self.peek()? {
            b'[' => self.list(b']', JsonEntry::Array, |reader| reader.value(depth + 1)),
            b'{' => self.list(b'}', JsonEntry::Object, |reader| {
                let key = reader.scalar()?;
                reader.entries.push(JsonEntry::Scalar(key));
                reader.peek().filter(|c| *c == b':')?;
                reader.skip();
                reader.value(depth + 1)
            }),
            _ => {
                let scalar = self.scalar()?;
                self.counts.scalars += 1;
                self.counts.longest_string = self.counts.longest_string.max(scalar.len());
                self.entries.push(JsonEntry::Scalar(scalar));
                Some(())
            }
        }
    }

    /// Parses a list whose closing bracket is `end`.
    fn list(
        &mut self,
        end: u8,
        entry: fn(JsonList) -> JsonEntry<'a>,
        read: impl Fn(&mut Self) -> Option<()>,
    ) -> Option<()> {
        let at = self.entries.len();
        let mut list = JsonList {
            count: 0,
            first: at + 1,
            end: at + 1,
        };
        // The end is known only when everything in between is parsed.
        self.entries.push(entry(list));
        self.skip();
        while self.peek()? != end {
            read(self)?;
            list.count += 1;
            // The text is valid JSON, so a missing or doubled comma cannot occur.
            if self.peek() == Some(b',') {
                self.skip();
            }
        }
        self.skip();
        self.counts.longest = self.counts.longest.max(list.count);
        list.end = self.entries.len();
        *self.entries.get_mut(at)? = entry(list);
        Some(())
    }

    fn scalar(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let bytes = self.rest.as_bytes();
        let end = if first == b'"' {
            string_end(bytes)?
        } else {
            let ends = |b: &u8| matches!(b, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
            bytes.iter().position(ends).unwrap_or(bytes.len())
        };
        let (scalar, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(scalar)
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        // Usually there is nothing to skip.
        if self.rest.as_bytes().first()? <= &b' ' {
            self.rest = self.rest.trim_ascii_start();
        }
        self.rest.as_bytes().first().copied()
    }

    /// Skips one byte of punctuation.
    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }
}

/// The end of the string that `bytes` start with, including its closing quote.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        // Skips the escaped byte, which may be a quote.
        at = found + 2;
    }
}
