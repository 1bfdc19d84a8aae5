//! A JSON text as a tree of slices of it.

/// One value.
#[derive(Debug)]
pub(in crate::view::structure) enum Node<'a> {
    /// A string with its quotes, a number, `true`, `false` or `null`: as it stands there.
    Scalar(&'a str),
    Array(Vec<Node<'a>>),
    /// Keys with their quotes.
    Object(Vec<(&'a str, Node<'a>)>),
}

/// Deeper nesting is not looked into.
const DEEPEST: usize = 120;

/// Reads `text`, which must be known to be valid; none if it is nested too deep.
pub(super) fn parse(text: &str) -> Option<Node<'_>> {
    let mut reader = Reader { rest: text };
    reader.value(0)
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        if depth > DEEPEST {
            return None;
        }
        match self.peek()? {
            '[' => self.array(depth),
            '{' => self.object(depth),
            _ => self.scalar().map(Node::Scalar),
        }
    }

    fn array(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut items = Vec::new();
        self.skip();
        while self.peek()? != ']' {
            items.push(self.value(depth + 1)?);
            self.comma();
        }
        self.skip();
        Some(Node::Array(items))
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut members = Vec::new();
        self.skip();
        while self.peek()? != '}' {
            let key = self.scalar()?;
            self.peek().filter(|c| *c == ':')?;
            self.skip();
            members.push((key, self.value(depth + 1)?));
            self.comma();
        }
        self.skip();
        Some(Node::Object(members))
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

    /// The next char that is not white space.
    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest.chars().next()
    }

    fn skip(&mut self) {
        let mut chars = self.rest.chars();
        chars.next();
        self.rest = chars.as_str();
    }

    fn comma(&mut self) {
        if self.peek() == Some(',') {
            self.skip();
        }
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

impl Node<'_> {
    /// How many scalars there are in it.
    pub(super) fn scalars(&self) -> usize {
        match self {
            Self::Scalar(_) => 1,
            Self::Array(items) => items.iter().map(Self::scalars).sum(),
            Self::Object(members) => members.iter().map(|(_, node)| node.scalars()).sum(),
        }
    }

    /// The length of its longest list or object.
    pub(super) fn longest(&self) -> usize {
        match self {
            Self::Scalar(_) => 0,
            Self::Array(items) => items
                .iter()
                .map(Self::longest)
                .max()
                .unwrap_or(0)
                .max(items.len()),
            Self::Object(members) => {
                let inner = members.iter().map(|(_, node)| node.longest()).max();
                inner.unwrap_or(0).max(members.len())
            }
        }
    }
}
