//! Classes of bytes, and lists of words.

use std::sync::OnceLock;

use foldhash::HashSet;

/// The classes of the bytes of a word, one bit each; 0 for a byte between words.
pub(super) type ByteClass = u16;

pub(super) const LOWER: ByteClass = 1;
pub(super) const UPPER: ByteClass = 1 << 1;
pub(super) const DIGIT: ByteClass = 1 << 2;
pub(super) const UNDER: ByteClass = 1 << 3;
pub(super) const SLASH: ByteClass = 1 << 4;
pub(super) const DOT: ByteClass = 1 << 5;
pub(super) const COLON: ByteClass = 1 << 6;
pub(super) const DASH: ByteClass = 1 << 7;
/// One of `@ ~ # % $`.
pub(super) const SIGN: ByteClass = 1 << 8;
/// A byte of a non-ASCII character.
pub(super) const HIGH: ByteClass = 1 << 9;

pub(super) const LETTER: ByteClass = LOWER | UPPER | HIGH;

/// The class of `byte`.
pub(super) fn class(byte: u8) -> ByteClass {
    match byte {
        b'a'..=b'z' => LOWER,
        b'A'..=b'Z' => UPPER,
        b'0'..=b'9' => DIGIT,
        b'_' => UNDER,
        b'/' => SLASH,
        b'.' => DOT,
        b':' => COLON,
        b'-' => DASH,
        b'@' | b'~' | b'#' | b'%' | b'$' => SIGN,
        0x80.. => HIGH,
        _ => 0,
    }
}

/// The classes in `text`.
pub(super) fn classes_in(text: &str) -> ByteClass {
    text.bytes().fold(0, |classes, byte| classes | class(byte))
}

/// True if `text` is not empty and has only bytes of `allowed`.
pub(super) fn only(text: &str, allowed: ByteClass) -> bool {
    !text.is_empty() && text.bytes().all(|byte| class(byte) & allowed != 0)
}

/// A list of words in lower case, for case-insensitive lookups.
pub(super) struct WordList {
    /// The words, separated by spaces.
    words: &'static str,
    /// For each length, the first letters of the words of that length, one bit each. This rules out
    /// most words without a lookup.
    first_letters: [u32; 16],
    set: OnceLock<HashSet<&'static str>>,
}

impl WordList {
    #[expect(
        clippy::indexing_slicing,
        reason = "it is made at compile time, and would not compile if an index were wrong"
    )]
    pub(super) const fn new(words: &'static str) -> Self {
        let bytes = words.as_bytes();
        let mut first_letters = [0; 16];
        let (mut start, mut at) = (0, 0);
        while at <= bytes.len() {
            if at == bytes.len() || bytes[at] == b' ' {
                // The low five bits of an ASCII letter are its number in the alphabet, in both
                // cases.
                first_letters[at - start] |= 1 << (bytes[start] & 31);
                start = at + 1;
            }
            at += 1;
        }
        Self {
            words,
            first_letters,
            set: OnceLock::new(),
        }
    }

    /// False if no word of the list has this first letter, in either case, and this length.
    #[inline]
    pub(super) fn may_have(&self, first: u8, length: usize) -> bool {
        let letters = self.first_letters.get(length).copied().unwrap_or(0);
        letters >> (first & 31) & 1 == 1
    }

    pub(super) fn has(&self, word: &str) -> bool {
        let first = word.bytes().next().unwrap_or(0);
        if !self.may_have(first, word.len()) {
            return false;
        }
        let words = self.set.get_or_init(|| self.words.split(' ').collect());
        // Lower-casing allocates, and most words are in lower case.
        let is_small = !word.bytes().any(|byte| byte.is_ascii_uppercase());
        words.contains(word) || (!is_small && words.contains(&*word.to_ascii_lowercase()))
    }
}
