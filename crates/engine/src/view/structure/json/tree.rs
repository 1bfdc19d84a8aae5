//! A JSON text as a tree of slices of it.

use trimtab_model::work;

/// One value.
#[derive(Debug)]
pub(super) enum Node<'a> {
    /// A string with its quotes, a number, `true`, `false` or `null`: as it stands there.
    Scalar(&'a str),
    Array(Vec<Node<'a>>),
    /// Keys with their quotes.
    Object(Vec<(&'a str, Node<'a>)>),
}

/// Deeper nesting is not looked into.
const DEEPEST: usize = 120;

/// A whole text.
#[derive(Debug)]
pub(in crate::view::structure) struct Tree<'a> {
    pub(super) root: Node<'a>,
    /// How many scalars there are in it.
    pub(super) scalars: usize,
    /// The length of its longest list or object.
    pub(super) longest: usize,
    /// The length of its longest string, in bytes as it stands there.
    pub(super) longest_string: usize,
}

/// Reads `text`, which must be known to be valid; none if it is nested too deep.
pub(super) fn parse(text: &str) -> Option<Tree<'_>> {
    let mut reader = Reader {
        rest: text,
        scalars: 0,
        longest: 0,
        longest_string: 0,
    };
    let root = reader.value(0)?;
    Some(Tree {
        root,
        scalars: reader.scalars,
        longest: reader.longest,
        longest_string: reader.longest_string,
    })
}

struct Reader<'a> {
    rest: &'a str,
    scalars: usize,
    longest: usize,
    longest_string: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        if depth > DEEPEST {
            return None;
        }
        work::step(1);
        match self.peek()? {
            b'[' => self.array(depth),
            b'{' => self.object(depth),
            _ => {
                self.scalars += 1;
                let scalar = self.scalar()?;
                self.longest_string = self.longest_string.max(scalar.len());
                Some(Node::Scalar(scalar))
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut items = Vec::new();
        self.skip();
        while self.peek()? != b']' {
            items.push(self.value(depth + 1)?);
            self.comma();
        }
        self.skip();
        self.longest = self.longest.max(items.len());
        Some(Node::Array(items))
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut members = Vec::new();
        self.skip();
        while self.peek()? != b'}' {
            let key = self.scalar()?;
            self.peek().filter(|c| *c == b':')?;
            self.skip();
            members.push((key, self.value(depth + 1)?));
            self.comma();
        }
        self.skip();
        self.longest = self.longest.max(members.len());
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

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.rest.as_bytes();
        let at = bytes
            .iter()
            .position(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r'))?;
        if at > 0 {
            self.rest = self.rest.get(at..)?;
        }
        bytes.get(at).copied()
    }

    /// Steps over a byte of punctuation.
    fn skip(&mut self) {
        self.rest = self.rest.get(1..).unwrap_or_default();
    }

    fn comma(&mut self) {
        if self.peek() == Some(b',') {
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
