//! A forward-only cursor in JSON text.
//!
//! It is as strict as any parser: text that the cursor accepts is valid for every parser (except
//! for numbers too large for a float).

use std::borrow::Cow;

use trimtab_model::work;

use super::span::Span;
use super::strings::{StringEnd, closing_quote};
use super::unscannable::{Unscannable, UnscannableReason};

/// The maximum nesting depth; parsers commonly stop at 128.
const MAX_DEPTH: u32 = 127;

pub(crate) type ScanResult<T> = Result<T, Unscannable>;

/// A place in JSON text.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonCursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

/// A list or object that is being read.
pub(crate) struct OpenContainer {
    close: u8,
    first: bool,
}

impl OpenContainer {
    /// A list or object that ends with `close`, after its first element.
    pub(crate) fn past_first(close: u8) -> Self {
        Self {
            close,
            first: false,
        }
    }
}

/// A field's name, and the start of the field.
pub(crate) struct FieldKey<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) start: usize,
}

impl<'a> JsonCursor<'a> {
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

    pub(crate) fn fail<T>(&self, why: UnscannableReason) -> ScanResult<T> {
        let why = match why {
            UnscannableReason::UnexpectedByte if self.at >= self.bytes.len() => {
                UnscannableReason::Truncated
            }
            other => other,
        };
        Err(Unscannable {
            offset: self.at,
            why,
        })
    }

    /// Checks that only white space is left.
    pub(crate) fn finish(mut self) -> ScanResult<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => self.fail(UnscannableReason::TrailingBytes),
        }
    }

    /// Enters a list or object at the cursor.
    pub(crate) fn open(&mut self) -> ScanResult<OpenContainer> {
        let close = match self.peek() {
            Some(b'{') => b'}',
            Some(b'[') => b']',
            _ => return self.fail(UnscannableReason::UnexpectedByte),
        };
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail(UnscannableReason::TooDeep);
        }
        self.at += 1;
        Ok(OpenContainer { close, first: true })
    }

    /// Moves to the next element or field; false at the end, which is consumed.
    pub(crate) fn more(&mut self, open: &mut OpenContainer) -> ScanResult<bool> {
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
            _ => self.fail(UnscannableReason::UnexpectedByte),
        }
    }

    /// Moves over the name of the next field; none at the end.
    pub(crate) fn field(&mut self, open: &mut OpenContainer) -> ScanResult<Option<FieldKey<'a>>> {
        if !self.more(open)? {
            return Ok(None);
        }
        let start = self.at;
        let end = self.key()?;
        // Names with escapes are rare. Unescaping them matters all the same: `"con\u0074ent"` is
        // `content` for every parser.
        let name = if end.escaped {
            let json = self.text.get(start..=end.quote).unwrap_or_default();
            match serde_json::from_str(json) {
                Ok(name) => Cow::Owned(name),
                Err(_) => return self.fail(UnscannableReason::BadKey),
            }
        } else {
            Cow::Borrowed(self.text.get(start + 1..end.quote).unwrap_or_default())
        };
        Ok(Some(FieldKey { name, start }))
    }

    /// Moves over a name and its colon.
    fn key(&mut self) -> ScanResult<StringEnd> {
        let end = self.string()?;
        if self.peek() != Some(b':') {
            return self.fail(UnscannableReason::UnexpectedByte);
        }
        self.at += 1;
        self.skip_space();
        Ok(end)
    }

    /// Moves over a value of any type.
    pub(crate) fn value(&mut self) -> ScanResult<Span> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => {
                self.string()?;
            }
            Some(b'{' | b'[') => self.nested()?,
            _ => self.scalar()?,
        }
        // Reported here and not per byte: one report per value is cheap and still allows
        // cancellation.
        work::step_bytes(self.at - start);
        Ok(Span::new(start, self.at))
    }

    /// Moves over a value, without scanning it if it is at `known`.
    pub(crate) fn value_or(&mut self, known: Span) -> ScanResult<Span> {
        self.skip_space();
        // An empty span means "nothing known". The value at `known` was scanned before, so it is
        // valid.
        if known.is_empty() || known.start as usize != self.at {
            return self.value();
        }
        self.at = known.end as usize;
        Ok(known)
    }

    fn string(&mut self) -> ScanResult<StringEnd> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return self.fail(UnscannableReason::UnexpectedByte);
        }
        let end = closing_quote(self.bytes, self.at + 1)?;
        self.at = end.quote + 1;
        Ok(end)
    }

    /// Moves over a list or object without recursion: one bit per level tells which it is.
    fn nested(&mut self) -> ScanResult<()> {
        let outside = self.depth;
        // A recursive scan could overflow the stack. The depth limit of 127 fits into the bits of
        // one number.
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
                // The inner container ended; continue in the one around it, which has at least one
                // member.
                let close = if objects & 1 == 1 { b'}' } else { b']' };
                objects >>= 1;
                open = OpenContainer {
                    close,
                    first: false,
                };
            }
        }
    }

    fn scalar(&mut self) -> ScanResult<()> {
        match self.bytes.get(self.at) {
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail(UnscannableReason::UnexpectedByte),
        }
    }

    fn word(&mut self, word: &[u8]) -> ScanResult<()> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if !rest.starts_with(word) {
            return self.fail(UnscannableReason::UnexpectedByte);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> ScanResult<()> {
        self.take_if(|byte| byte == b'-');
        // JSON allows no leading zeros: after a zero only a fraction or an exponent may follow.
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

    fn digits(&mut self) -> ScanResult<()> {
        let digit = |byte: u8| byte.is_ascii_digit();
        if !self.take_if(digit) {
            return self.fail(UnscannableReason::BadNumber);
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
