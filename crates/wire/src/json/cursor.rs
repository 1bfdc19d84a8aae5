//! A forward-only cursor in JSON text.
//!
//! It is as strict as any parser: text that the cursor accepts is valid for every parser (except
//! for numbers too large for a float).

use std::borrow::Cow;

use trimtab_model::work;

use super::span::Span;
use super::strings::{End, closing_quote};
use super::unscannable::{Unscannable, Why};

/// The maximum nesting depth; parsers commonly stop at 128.
const MAX_DEPTH: u32 = 127;

pub(crate) type Scanned<T> = Result<T, Unscannable>;

/// A place in JSON text.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

/// A list or object that is being read.
pub(crate) struct Open {
    close: u8,
    first: bool,
}

impl Open {
    /// A list or object that ends with `close`, after its first element.
    pub(crate) fn past_first(close: u8) -> Self {
        Self {
            close,
            first: false,
        }
    }
}

/// A field's name, and the start of the field.
pub(crate) struct Key<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) start: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self::at(text, 0)
    }

    /// A cursor at the start of a value that was scanned before.
    pub(crate) fn at(text: &'a str, at: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            at,
            depth: 0,
        }
    }

    /// A cursor inside `depth` lists and objects.
    pub(crate) fn inside(text: &'a str, at: usize, depth: u32) -> Self {
        Self {
            depth,
            ..Self::at(text, at)
        }
    }

    pub(crate) fn offset(&self) -> usize {
        self.at
    }

    /// The first byte of the next value.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.bytes.get(self.at).copied()
    }

    pub(crate) fn fail<T>(&self, why: Why) -> Scanned<T> {
        let why = match why {
            Why::UnexpectedByte if self.at >= self.bytes.len() => Why::Truncated,
            other => other,
        };
        Err(Unscannable {
            offset: self.at,
            why,
        })
    }

    /// Checks that only white space is left.
    pub(crate) fn finish(mut self) -> Scanned<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail(Why::TrailingBytes),
        }
    }

    /// Enters a list or object at the cursor.
    pub(crate) fn open(&mut self) -> Scanned<Open> {
        let close = match self.peek() {
            Some(b'{') => b'}',
            Some(b'[') => b']',
            _ => return self.fail(Why::UnexpectedByte),
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(Why::TooDeep);
        }
        self.at += 1;
        Ok(Open { close, first: true })
    }

    /// Moves to the next element or field; false at the end, which is consumed.
    pub(crate) fn more(&mut self, open: &mut Open) -> Scanned<bool> {
        let first = std::mem::replace(&mut open.first, false);
        match self.peek() {
            Some(byte) if byte == open.close => {
                self.at += 1;
                self.depth = self.depth.saturating_sub(1);
                Ok(false)
            }
            Some(b',') if !first => {
                self.at += 1;
                self.skip_space();
                Ok(true)
            }
            Some(_) if first => Ok(true),
            _ => self.fail(Why::UnexpectedByte),
        }
    }

    /// Moves over the name of the next field; none at the end.
    pub(crate) fn field(&mut self, open: &mut Open) -> Scanned<Option<Key<'a>>> {
        if !self.more(open)? {
            return Ok(None);
        }
        let start = self.at;
        let end = self.key()?;
        let name = if end.escaped {
            let json = self.text.get(start..=end.quote).unwrap_or_default();
            match serde_json::from_str(json) {
                Ok(name) => Cow::Owned(name),
                Err(_) => return self.fail(Why::BadKey),
            }
        } else {
            Cow::Borrowed(self.text.get(start + 1..end.quote).unwrap_or_default())
        };
        Ok(Some(Key { name, start }))
    }

    /// Moves over a name and its colon.
    fn key(&mut self) -> Scanned<End> {
        let end = self.string()?;
        if self.peek() != Some(b':') {
            return self.fail(Why::UnexpectedByte);
        }
        self.at += 1;
        self.skip_space();
        Ok(end)
    }

    /// Moves over a value of any type.
    pub(crate) fn value(&mut self) -> Scanned<Span> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'{' | b'[') => self.nested()?,
            _ => self.scalar()?,
        }
        work::step_bytes(self.at - start);
        Ok(Span::new(start, self.at))
    }

    /// Moves over a value, without scanning it if it is at `known`.
    pub(crate) fn value_or(&mut self, known: Span) -> Scanned<Span> {
        self.skip_space();
        if known.is_empty() || known.start as usize != self.at {
            return self.value();
        }
        self.at = known.end as usize;
        Ok(known)
    }

    fn string(&mut self) -> Scanned<End> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return self.fail(Why::UnexpectedByte);
        }
        let end = closing_quote(self.bytes, self.at + 1)?;
        self.at = end.quote + 1;
        Ok(end)
    }

    /// Moves over a list or object without recursion: one bit per level tells which it is.
    fn nested(&mut self) -> Scanned<()> {
        let outside = self.depth;
        let mut objects = 0u128;
        let mut open = self.open()?;
        loop {
            if self.more(&mut open)? {
                if open.close == b'}' {
                    self.key()?;
                }
                match self.peek() {
                    Some(b'"') => {
                        self.string()?;
                    }
                    Some(b'{' | b'[') => {
                        objects = objects << 1 | u128::from(open.close == b'}');
                        open = self.open()?;
                    }
                    _ => self.scalar()?,
                }
            } else if self.depth == outside {
                return Ok(());
            } else {
                let close = if objects & 1 == 1 { b'}' } else { b']' };
                objects >>= 1;
                open = Open {
                    close,
                    first: false,
                };
            }
        }
    }

    fn scalar(&mut self) -> Scanned<()> {
        match self.bytes.get(self.at) {
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail(Why::UnexpectedByte),
        }
    }

    fn word(&mut self, word: &[u8]) -> Scanned<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return self.fail(Why::UnexpectedByte);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Scanned<()> {
        self.take_if(|byte| byte == b'-');
        if !self.take_if(|byte| byte == b'0') {
            self.digits()?;
        }
        if self.take_if(|byte| byte == b'.') {
            self.digits()?;
        }
        if self.take_if(|byte| matches!(byte, b'e' | b'E')) {
            self.take_if(|byte| matches!(byte, b'+' | b'-'));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Scanned<()> {
        let digit = |byte: u8| byte.is_ascii_digit();
        if !self.take_if(digit) {
            return self.fail(Why::BadNumber);
        }
        while self.take_if(digit) {}
        Ok(())
    }

    fn take_if(&mut self, wanted: impl Fn(u8) -> bool) -> bool {
        let found = self.bytes.get(self.at).is_some_and(|byte| wanted(*byte));
        self.at += usize::from(found);
        found
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }
}
