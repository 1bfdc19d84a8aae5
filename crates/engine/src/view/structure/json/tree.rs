//! Reads a JSON text in one pass: checks that it is valid, and finds its lists and objects.

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
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct JsonList {
    /// Their number.
    pub(super) count: u32,
    /// The position after its opening bracket, and that of its closing bracket.
    start: u32,
    end: u32,
    /// The index of the first list inside it, and of the first one after it.
    inner: u32,
    next: u32,
}

/// Deeper nesting is not read: the reader recurses.
const DEEPEST: usize = 120;

/// A valid JSON text. Scalars have no entry of their own: there are many, a view shows few of them,
/// and they are found again by reading from the start of their list. Lists have one, so that those
/// that are not shown can be skipped.
#[derive(Debug)]
pub(in crate::view::structure) struct Tree<'a> {
    text: &'a str,
    /// The lists and objects in the order in which they open. The first is the root.
    lists: Vec<JsonList>,
    pub(super) counts: JsonCounts,
}

/// Counts of a text.
#[derive(Debug, Default)]
pub(super) struct JsonCounts {
    pub(super) scalars: usize,
    /// The length of the longest list or object.
    pub(super) longest: usize,
    /// The length of the longest scalar in bytes, as in the text.
    pub(super) longest_string: usize,
}

/// Reads a list or an object; none if `text` is anything else, or nested too deep.
pub(in crate::view::structure) fn parse(text: &str) -> Option<Tree<'_>> {
    let inner = text.trim_matches([' ', '\t', '\n', '\r']);
    let bracketed = (inner.starts_with('{') && inner.ends_with('}'))
        || (inner.starts_with('[') && inner.ends_with(']'));
    // Most texts are told apart without reading them. Positions have four bytes, because a text may
    // have a list in every few bytes.
    if !bracketed || u32::try_from(inner.len()).is_err() {
        return None;
    }
    let mut reader = JsonReader {
        bytes: inner.as_bytes(),
        lists: Vec::new(),
        counts: JsonCounts::default(),
    };
    let end = reader.list(0, 0)?;
    (end == inner.len()).then_some(Tree {
        text: inner,
        lists: reader.lists,
        counts: reader.counts,
    })
}

impl<'a> Tree<'a> {
    pub(super) fn root(&self) -> JsonEntry<'a> {
        let root = self.lists.first().copied().unwrap_or_default();
        self.entry(root)
    }

    fn entry(&self, list: JsonList) -> JsonEntry<'a> {
        match self.text.as_bytes().get(list.end as usize) {
            Some(b'}') => JsonEntry::Object(list),
            _ => JsonEntry::Array(list),
        }
    }

    /// The entries of a list. Those of an object alternate between keys and values.
    pub(super) fn entries(&self, list: JsonList) -> impl Iterator<Item = JsonEntry<'a>> {
        let (mut at, mut inner) = (list.start as usize, list.inner as usize);
        let end = list.end as usize;
        std::iter::from_fn(move || {
            let rest = self.text.get(at..end)?;
            // The text is valid, so punctuation between entries needs no check.
            let rest = rest.trim_start_matches([',', ':', ' ', '\t', '\n', '\r']);
            at = end - rest.len();
            if rest.starts_with(['[', '{']) {
                let found = *self.lists.get(inner)?;
                (at, inner) = (found.end as usize + 1, found.next as usize);
                return Some(self.entry(found));
            }
            let scalar = rest.get(..scalar_end(rest.as_bytes(), 0)?)?;
            at += scalar.len();
            Some(JsonEntry::Scalar(scalar))
        })
    }
}

struct JsonReader<'a> {
    bytes: &'a [u8],
    lists: Vec<JsonList>,
    counts: JsonCounts,
}

impl JsonReader<'_> {
    /// Reads the list or object at `at` and returns the position behind it; none if it is not valid.
    fn list(&mut self, mut at: usize, depth: usize) -> Option<usize> {
        let bytes = self.bytes;
        let is_object = *bytes.get(at)? == b'{';
        let close = if is_object { b'}' } else { b']' };
        let index = self.lists.len();
        at += 1;
        let (start, inner) = (narrow(at), narrow(index + 1));
        // The rest is known only when everything in between is read.
        self.lists.push(JsonList::default());
        let mut count = 0;
        at = skip_space(bytes, at);
        let mut is_open = *bytes.get(at)? != close;
        while is_open {
            if is_object {
                at = skip_space(bytes, string_end(bytes, at)?);
                at = skip_space(bytes, after(bytes, at, b':')?);
            }
            if matches!(bytes.get(at)?, b'[' | b'{') {
                (depth < DEEPEST).then_some(())?;
                at = self.list(at, depth + 1)?;
            } else {
                let end = scalar_end(bytes, at)?;
                self.counts.scalars += 1;
                self.counts.longest_string = self.counts.longest_string.max(end - at);
                at = end;
            }
            count += 1;
            at = skip_space(bytes, at);
            is_open = *bytes.get(at)? != close;
            if is_open {
                at = skip_space(bytes, after(bytes, at, b',')?);
            }
        }
        self.counts.longest = self.counts.longest.max(count);
        work::step(1 + count);
        *self.lists.get_mut(index)? = JsonList {
            count: narrow(count),
            start,
            end: narrow(at),
            inner,
            next: narrow(self.lists.len()),
        };
        Some(at + 1)
    }
}

/// The position behind the byte `wanted`, which must be at `at`.
fn after(bytes: &[u8], at: usize, wanted: u8) -> Option<usize> {
    (*bytes.get(at)? == wanted).then_some(at + 1)
}

/// The next position from `at` on whose byte `is_wanted` rejects.
#[inline]
fn skip(bytes: &[u8], at: usize, is_wanted: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().take_while(|byte| is_wanted(**byte)).count()
}

#[inline]
fn skip_space(bytes: &[u8], at: usize) -> usize {
    // Usually there is nothing to skip.
    if bytes.get(at).is_some_and(|byte| *byte > b' ') {
        return at;
    }
    skip(bytes, at, |byte| {
        matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
    })
}

/// The end of the scalar at `at`; none if there is none.
#[inline]
fn scalar_end(bytes: &[u8], at: usize) -> Option<usize> {
    let word = |word: &[u8]| {
        let found = bytes.get(at..at + word.len()) == Some(word);
        found.then_some(at + word.len())
    };
    match bytes.get(at)? {
        b'"' => string_end(bytes, at),
        b't' => word(b"true"),
        b'f' => word(b"false"),
        b'n' => word(b"null"),
        _ => number_end(bytes, at),
    }
}

#[inline]
fn string_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut at = after(bytes, at, b'"')?;
    loop {
        at = plain_end(bytes, at);
        match (bytes.get(at)?, bytes.get(at + 1)) {
            (b'"', _) => return Some(at + 1),
            (b'\\', Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't')) => at += 2,
            (b'\\', Some(b'u')) => {
                let digits = bytes.get(at + 2..at + 6)?;
                digits.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                at += 6;
            }
            // A control character, or an escape that does not exist.
            _ => return None,
        }
    }
}

/// The next position from `at` on of a quote, a backslash or a control character.
#[inline]
fn plain_end(bytes: &[u8], mut at: usize) -> usize {
    // Eight bytes at a time, because a processor cannot predict the lengths of short strings. The
    // highest bit of a byte of `below` is set if the byte is less than `limit`. It may also be set
    // in bytes after such a one, but only the first counts.
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let below = |eight: u64, limit: u64| eight.wrapping_sub(ONES * limit) & !eight & (ONES << 7);
    let equal = |eight: u64, byte: u8| below(eight ^ (ONES * u64::from(byte)), 1);
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let eight = u64::from_le_bytes(*eight);
        let found = equal(eight, b'"') | equal(eight, b'\\') | below(eight, u64::from(b' '));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    skip(bytes, at, |byte| !matches!(byte, b'"' | b'\\' | 0..b' '))
}

fn number_end(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = |at: usize| {
        let end = skip(bytes, at, |byte| byte.is_ascii_digit());
        (end > at).then_some(end)
    };
    let mut at = after(bytes, at, b'-').unwrap_or(at);
    // No digit may follow a leading zero.
    at = match after(bytes, at, b'0') {
        Some(end) => end,
        None => digits(at)?,
    };
    if let Some(fraction) = after(bytes, at, b'.') {
        at = digits(fraction)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        let is_signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
        at = digits(at + 1 + usize::from(is_signed))?;
    }
    Some(at)
}

/// A position or an index, which [`parse`] has checked to fit.
fn narrow(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// The value that the tree describes.
    fn value(tree: &Tree<'_>, entry: JsonEntry<'_>) -> Value {
        match entry {
            JsonEntry::Scalar(scalar) => serde_json::from_str(scalar).unwrap(),
            JsonEntry::Array(list) => {
                let values: Vec<Value> = tree.entries(list).map(|e| value(tree, e)).collect();
                assert_eq!(values.len(), list.count as usize);
                values.into()
            }
            JsonEntry::Object(list) => {
                let entries: Vec<Value> = tree.entries(list).map(|e| value(tree, e)).collect();
                assert_eq!(entries.len(), 2 * list.count as usize);
                let pairs = entries.chunks(2);
                let pair = |pair: &[Value]| (pair[0].as_str().unwrap().to_owned(), pair[1].clone());
                Value::Object(pairs.map(pair).collect())
            }
        }
    }

    #[test]
    fn deep_nesting_is_not_read() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(DEEPEST + 1)).is_some());
        assert!(parse(&nested(DEEPEST + 2)).is_none());
    }

    #[test]
    fn strings_of_all_lengths_end_where_a_parser_says() {
        for inside in [
            "\"", "\\", "\\\"", "\\n", "\x1f", "\n", " ", "!", "\x7f", "é", "漢",
        ] {
            for (before, after) in (0..20).flat_map(|n| (0..12).map(move |m| (n, m))) {
                let text = format!("[\"{}{inside}{}\"]", "x".repeat(before), "y".repeat(after));
                let valid = serde_json::from_str::<Value>(&text).is_ok();
                assert_eq!(parse(&text).is_some(), valid, "{text}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Texts of the characters that matter, so that many are almost valid.
        #[test]
        fn valid_texts_and_their_values_are_those_of_a_parser(
            inner in r#"([\[\]{},:" \n0-9.eE+\-]|\\[nu"]|"[a-z]{0,2}":?|[0-9]{1,2},|true|null|\t|é|\x01|[a-f0]{4}){0,12}"#,
            brackets in prop::sample::select(vec!["[]", "{}"]),
        ) {
            let (open, close) = brackets.split_at(1);
            let text = format!("{open}{inner}{close}");
            let expected = serde_json::from_str::<Value>(&text).ok();
            let valid = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            let tree = parse(&text);
            prop_assert_eq!(tree.is_some(), valid, "{}", text);
            if let (Some(tree), Some(expected)) = (tree, expected) {
                prop_assert_eq!(value(&tree, tree.root()), expected);
            }
        }
    }
}
