//! A JSON text as a tree of slices of it.

use trimtab_model::work;

/// One value.
#[derive(Debug)]
pub(super) enum JsonNode<'a> {
    /// A string with its quotes, a number, `true`, `false` or `null`: as it stands there.
    Scalar(&'a str),
    Array(Vec<JsonNode<'a>>),
    /// Keys with their quotes.
    Object(Vec<(&'a str, JsonNode<'a>)>),
}

/// Deeper nesting is not looked into.
const DEEPEST: usize = 120;

/// A whole text.
#[derive(Debug)]
pub(in crate::view::structure) struct Tree<'a> {
    pub(super) root: JsonNode<'a>,
    pub(super) counts: JsonCounts,
}

/// What is counted while a text is read.
#[derive(Debug, Default)]
pub(super) struct JsonCounts {
    pub(super) scalars: usize,
    /// The length of the longest list or object.
    pub(super) longest: usize,
    /// The length of the longest string, in bytes as it stands there.
    pub(super) longest_string: usize,
}

/// Reads `text`, which must be known to be valid; none if it is nested too deep.
pub(in crate::view::structure) fn parse(text: &str) -> Option<Tree<'_>> {
    let mut reader = JsonReader {
        rest: text,
        counts: JsonCounts::default(),
    };
    let root = reader.value(0)?;
    let counts = reader.counts;
    Some(Tree { root, counts })
}

struct JsonReader<'a> {
    rest: &'a str,
    counts: JsonCounts,
}

impl<'a> JsonReader<'a> {
    fn value(&mut self, depth: usize) -> Option<JsonNode<'a>> {
        if depth > DEEPEST {
            return None;
        }
        work::step(1);
        match self.peek()? {
            b'[' => {
                let items = self.items(b']', |reader| reader.value(depth + 1))?;
                Some(JsonNode::Array(items))
            }
            b'{' => {
                let members = self.items(b'}', |reader| {
                    let key = reader.scalar()?;
                    reader.peek().filter(|c| *c == b':')?;
                    reader.skip();
                    Some((key, reader.value(depth + 1)?))
                })?;
                Some(JsonNode::Object(members))
            }
            _ => {
                let scalar = self.scalar()?;
                self.counts.scalars += 1;
                self.counts.longest_string = self.counts.longest_string.max(scalar.len());
                Some(JsonNode::Scalar(scalar))
            }
        }
    }

    /// What stands between brackets, the closing one of which is `end`.
    fn items<T>(&mut self, end: u8, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let mut items = Vec::new();
        self.skip();
        while self.peek()? != end {
            items.push(read(self)?);
            if self.peek() == Some(b',') {
                self.skip();
            }
        }
        self.skip();
        self.counts.longest = self.counts.longest.max(items.len());
        Some(items)
    }

    fn scalar(&mut self) -> Option<&'a str> {
        self.peek()?;
        let bytes = self.rest.as_bytes();
        let end = if self.rest.starts_with('"') {
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
        self.rest = self.rest.trim_ascii_start();
        self.rest.bytes().next()
    }

    /// Steps over a byte of punctuation.
    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }
}

/// Where the string that `bytes` start with ends, its closing quote included.
fn string_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}
