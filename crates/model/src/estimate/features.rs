//! Extracts the features of a text in one pass that roughly follows how public vocabularies split
//! text.
//!
//! Pieces are words, up to three digits, runs of punctuation and runs of blanks. A blank before a
//! word belongs to the word, and a newline after punctuation to the punctuation. Each feature
//! counts one such case, so that the number of tokens is roughly a weighted sum.

use super::script;

/// The number of features.
pub(super) const FEATURES: usize = Feature::Other as usize + 1;

/// A countable case in a text. The order is that of the coefficients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Feature {
    /// A word after a blank or at the start of a line. The first of seven, by length: 1-2, 3-4,
    /// 5-6, 7-8, 9-10, 11-13 letters and more.
    Word = 0,
    /// A word directly after punctuation, a digit or a camel-case hump, by the same lengths.
    Glued = 7,
    /// Letters after the thirteenth of a word.
    LetterFar = 14,
    /// Upper-case letters after the first letter of a word.
    UpperInside,
    /// A word next to a digit, as in hexadecimal numbers and ids.
    WordAtDigit,
    /// A word at the start of a line, without a blank before it.
    WordAtLine,
    /// Up to three digits of a run.
    Digits3,
    /// A separate run of punctuation.
    Punctuation,
    /// One punctuation character directly before a word, which absorbs it.
    Prefix,
    /// Punctuation characters after the first of a run: different from and equal to the previous
    /// one.
    PunctuationMore,
    PunctuationSame,
    /// Newlines after punctuation, which absorbs them, and after anything else.
    NewlineAtPunctuation,
    Newline,
    /// Further newlines of a run.
    NewlineMore,
    /// One blank before a digit, which cannot absorb it.
    BlankAtDigit,
    /// A run of two or more blanks, and the blanks in it.
    Indent,
    IndentMore,
    Tab,
    /// Control characters.
    Control,
    /// ASCII letters that continue a word after a non-ASCII letter.
    Joined,
    /// A run of non-ASCII letters: at the start of a line, elsewhere; the letters by script.
    WordTwoAtLine,
    WordTwo,
    Latin,
    Greek,
    Cyrillic,
    Armenian,
    Hebrew,
    Arabic,
    OtherTwo,
    WordWideAtLine,
    WordWide,
    Devanagari,
    Bengali,
    Gurmukhi,
    Gujarati,
    Tamil,
    Telugu,
    Malayalam,
    Sinhala,
    Thai,
    Myanmar,
    Georgian,
    Khmer,
    Kana,
    Han,
    Hangul,
    LatinMore,
    /// General punctuation, arrows, box drawing and other signs; and repetitions of the same sign.
    Sign,
    SignSame,
    /// Punctuation of Han and Kana, and full-width forms.
    SignHan,
    Emoji,
    Other,
}

/// How often each [`Feature`] occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Features([u32; FEATURES]);

/// The previous character class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PrecedingText {
    Line,
    Blank,
    Word,
    WordBeyond,
    Digit,
    Punctuation,
}

impl Features {
    /// The counts, in the order of [`Feature`].
    pub(super) fn counts(&self) -> &[u32; FEATURES] {
        &self.0
    }

    /// Reads a text.
    pub(super) fn of(text: &str) -> Self {
        let mut features = Self([0; FEATURES]);
        let mut before = PrecedingText::Line;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some((rest, &byte)) = bytes
            .get(at..)
            .and_then(|rest| rest.first().map(|byte| (rest, byte)))
        {
            let taken;
            (taken, before) = match byte {
                b'a'..=b'z' | b'A'..=b'Z' => features.word(rest, before),
                b'0'..=b'9' => features.digits(rest),
                b' ' => features.blanks(rest),
                b'\n' | b'\r' => features.newlines(rest, before),
                b'\t' => (features.count(Feature::Tab, 1), PrecedingText::Blank),
                0x80.. => features.beyond_ascii(text.get(at..).unwrap_or_default(), before),
                0x00..=0x1f | 0x7f => (features.count(Feature::Control, 1), PrecedingText::Blank),
                _ => features.punctuation(rest),
            };
            at += taken;
        }
        features
    }

    /// Adds to a feature. Returns the number, which is often the number of consumed bytes.
    fn count(&mut self, feature: Feature, times: usize) -> usize {
        self.count_at(feature as usize, times)
    }

    // Saturate: the estimate of a huge text may be wrong, but must not overflow.
    fn count_at(&mut self, feature: usize, times: usize) -> usize {
        if let Some(count) = self.0.get_mut(feature) {
            *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        }
        times
    }

    /// A word: upper case, then lower case. A capital after lower case starts the next word.
    fn word(&mut self, rest: &[u8], before: PrecedingText) -> (usize, PrecedingText) {
        // The loop has only one branch, because a misprediction costs more than a letter.
        let (mut length, mut upper, mut lower_seen) = (0, 0, false);
        for byte in rest {
            let is_lower = byte.is_ascii_lowercase();
            let is_upper = byte.is_ascii_uppercase() && !lower_seen;
            if !(is_lower | is_upper) {
                break;
            }
            lower_seen |= is_lower;
            upper += usize::from(is_upper);
            length += 1;
        }
        self.count_at(word_feature(length, before), 1);
        self.count(Feature::LetterFar, length.saturating_sub(13));
        self.count(Feature::UpperInside, upper.saturating_sub(1));
        let at_digit =
            before == PrecedingText::Digit || rest.get(length).is_some_and(u8::is_ascii_digit);
        self.count(Feature::WordAtDigit, usize::from(at_digit));
        self.count(
            Feature::WordAtLine,
            usize::from(before == PrecedingText::Line),
        );
        match rest.get(length..) {
            // The most common case: one blank and the next word.
            Some([b' ', next, ..]) if next.is_ascii_alphabetic() => {
                (length + 1, PrecedingText::Blank)
            }
            _ => (length, PrecedingText::Word),
        }
    }

    fn digits(&mut self, rest: &[u8]) -> (usize, PrecedingText) {
        let length = run(rest, u8::is_ascii_digit);
        // Vocabularies group digits by three.
        self.count(Feature::Digits3, length.div_ceil(3));
        (length, PrecedingText::Digit)
    }

    fn blanks(&mut self, rest: &[u8]) -> (usize, PrecedingText) {
        let length = run(rest, |&byte| byte == b' ');
        if length > 1 {
            self.count(Feature::Indent, 1);
            self.count(Feature::IndentMore, length);
        }
        // A blank before a digit is a token of its own.
        let digit = rest.get(length).is_some_and(u8::is_ascii_digit);
        self.count(Feature::BlankAtDigit, usize::from(digit));
        (length, PrecedingText::Blank)
    }

    fn newlines(&mut self, rest: &[u8], before: PrecedingText) -> (usize, PrecedingText) {
        let length = run(rest, |&byte| byte == b'\n' || byte == b'\r');
        let feature = if before == PrecedingText::Punctuation {
            Feature::NewlineAtPunctuation
        } else {
            Feature::Newline
        };
        self.count(feature, 1);
        self.count(Feature::NewlineMore, length - 1);
        (length, PrecedingText::Line)
    }

    fn punctuation(&mut self, rest: &[u8]) -> (usize, PrecedingText) {
        let length = run(rest, u8::is_ascii_punctuation);
        let word = rest.get(length).is_some_and(u8::is_ascii_alphabetic);
        // A single mark before a word, as in `.name`, merges with it.
        let alone = !(word && length == 1);
        self.count(
            if alone {
                Feature::Punctuation
            } else {
                Feature::Prefix
            },
            1,
        );
        let pairs = rest.iter().zip(rest.get(1..length).unwrap_or_default());
        let same = pairs.filter(|(a, b)| a == b).count();
        self.count(Feature::PunctuationSame, same);
        self.count(Feature::PunctuationMore, length - 1 - same);
        (length, PrecedingText::Punctuation)
    }

    fn beyond_ascii(&mut self, rest: &str, before: PrecedingText) -> (usize, PrecedingText) {
        let Some(first) = rest.chars().next() else {
            return (rest.len(), before);
        };
        let feature = script::of(first);
        let same = rest
            .chars()
            .take_while(|&c| !c.is_ascii() && script::of(c) == feature);
        if feature == Feature::Sign {
            // Runs of the same sign, such as lines of box drawing, merge into few tokens.
            let signs = same.take_while(|&c| c == first).count();
            self.count(Feature::Sign, 1);
            self.count(Feature::SignSame, signs - 1);
            return (signs * first.len_utf8(), PrecedingText::Punctuation);
        }
        let (letters, bytes) = same.fold((0, 0), |(n, bytes), c| (n + 1, bytes + c.len_utf8()));
        self.count(feature, letters);
        self.start_beyond(first.len_utf8() > 2, before);
        (bytes, PrecedingText::WordBeyond)
    }

    fn start_beyond(&mut self, wide: bool, before: PrecedingText) {
        let feature = match (before, wide) {
            // Letters that continue a word do not start a new one.
            (PrecedingText::Word | PrecedingText::WordBeyond, _) => return,
            (PrecedingText::Line, false) => Feature::WordTwoAtLine,
            (PrecedingText::Line, true) => Feature::WordWideAtLine,
            (_, false) => Feature::WordTwo,
            (_, true) => Feature::WordWide,
        };
        self.count(feature, 1);
    }
}

/// The feature of a word by its length and position.
fn word_feature(length: usize, before: PrecedingText) -> usize {
    const BY_LENGTH: [u8; 15] = [0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 6];
    let bucket = BY_LENGTH.get(length.min(14)).copied().unwrap_or(6);
    let first = match before {
        PrecedingText::Line | PrecedingText::Blank => Feature::Word,
        PrecedingText::WordBeyond => return Feature::Joined as usize,
        PrecedingText::Word | PrecedingText::Digit | PrecedingText::Punctuation => Feature::Glued,
    };
    first as usize + usize::from(bucket)
}

fn run(bytes: &[u8], wanted: impl Fn(&u8) -> bool) -> usize {
    bytes.iter().take_while(|byte| wanted(byte)).count()
}

#[cfg(test)]
mod tests;
