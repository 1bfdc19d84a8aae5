//! Extracts the features of a text in one pass that roughly follows how public vocabularies split
//! text.
//!
//! Pieces are words, up to three digits, runs of punctuation and runs of blanks. A blank before a
//! word belongs to the word, and a newline after punctuation to the punctuation. Each feature
//! counts one such case, so that the number of tokens is roughly a weighted sum.

use super::script;

/// The number of features.
pub const FEATURES: usize = Feature::Other as usize + 1;

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

/// How often each feature occurs in a text, in the order of the coefficients.
pub fn count_features(text: &str) -> [u32; FEATURES] {
    let mut counter = FeatureCounter {
        before: Before::Line,
        counts: [0; FEATURES],
    };
    let mut rest = text;
    while let Some(first) = rest.bytes().next() {
        let read = match first {
            b'a'..=b'z' | b'A'..=b'Z' => counter.read_word(rest.as_bytes()),
            b'0'..=b'9' => counter.read_digits(rest.as_bytes()),
            b' ' => counter.read_blanks(rest.as_bytes()),
            b'\n' | b'\r' => counter.read_newlines(rest.as_bytes()),
            b'!'..=b'~' => counter.read_marks(rest.as_bytes()),
            0x80.. => counter.read_beyond_ascii(rest),
            b'\t' => counter.read_one(Feature::Tab),
            _ => counter.read_one(Feature::Control),
        };
        rest = rest.get(read..).unwrap_or_default();
    }
    counter.counts
}

/// The piece before the next one, as far as the next one depends on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// The start of a line.
    Line,
    /// A tab or a control character.
    Control,
    Blank,
    Digit,
    /// One punctuation character, or several.
    Mark,
    Marks,
    Word,
    /// A word after a digit.
    WordAtDigit,
    /// A sign or a letter beyond ASCII.
    Sign,
    Letter,
}

/// The letters of a word that count together; each further one counts alone.
const NEAR: usize = 13;
/// Words are told apart by their length: the largest length of each group but the last.
const WORD_LENGTHS: [usize; 6] = [2, 4, 6, 8, 10, NEAR];

/// Counts the features of consecutive pieces. Each `read` method reads a piece at the beginning of
/// its text, and returns the bytes of the piece.
struct FeatureCounter {
    before: Before,
    counts: [u32; FEATURES],
}

impl FeatureCounter {
    /// A word is upper case, then lower case. A capital after lower case starts the next word.
    fn read_word(&mut self, text: &[u8]) -> usize {
        let upper = run(text, u8::is_ascii_uppercase);
        let lower = text.get(upper..).unwrap_or_default();
        let length = upper + run(lower, u8::is_ascii_lowercase);
        self.add(Feature::UpperInside, upper.saturating_sub(1));
        self.add(Feature::LetterFar, length.saturating_sub(NEAR));
        let group = WORD_LENGTHS.iter().take_while(|last| length > **last);
        let group = group.count();
        match self.before {
            Before::Line => {
                self.add(Feature::WordAtLine, 1);
                self.add_in_group(Feature::Word, group);
            }
            Before::Control | Before::Blank => self.add_in_group(Feature::Word, group),
            Before::Digit => {
                self.add(Feature::WordAtDigit, 1);
                self.add_in_group(Feature::Glued, group);
            }
            Before::Mark => {
                // A single mark before a word, as in `.name`, merges with it.
                self.add(Feature::Prefix, 1);
                self.take_back(Feature::Punctuation);
                self.add_in_group(Feature::Glued, group);
            }
            Before::Letter => self.add(Feature::Joined, 1),
            Before::Marks | Before::Word | Before::WordAtDigit | Before::Sign => {
                self.add_in_group(Feature::Glued, group);
            }
        }
        self.before = match self.before {
            Before::Digit => Before::WordAtDigit,
            _ => Before::Word,
        };
        length
    }

    /// Vocabularies group digits by three, and a blank before a digit is a token of its own.
    fn read_digits(&mut self, text: &[u8]) -> usize {
        let length = run(text, u8::is_ascii_digit);
        self.add(Feature::Digits3, length.div_ceil(3));
        match self.before {
            Before::Blank => self.add(Feature::BlankAtDigit, 1),
            // A word between digits counts once.
            Before::Word => self.add(Feature::WordAtDigit, 1),
            _ => {}
        }
        self.before = Before::Digit;
        length
    }

    /// A single blank is free: the word after it absorbs it.
    fn read_blanks(&mut self, text: &[u8]) -> usize {
        let length = run(text, |byte| *byte == b' ');
        if length > 1 {
            self.add(Feature::Indent, 1);
            self.add(Feature::IndentMore, length);
        }
        self.before = Before::Blank;
        length
    }

    fn read_newlines(&mut self, text: &[u8]) -> usize {
        let length = run(text, |byte| matches!(byte, b'\n' | b'\r'));
        let first = match self.before {
            Before::Mark | Before::Marks | Before::Sign => Feature::NewlineAtPunctuation,
            _ => Feature::Newline,
        };
        self.add(first, 1);
        self.add(Feature::NewlineMore, length - 1);
        self.before = Before::Line;
        length
    }

    fn read_marks(&mut self, text: &[u8]) -> usize {
        let length = run(text, u8::is_ascii_punctuation);
        let marks = text.get(..length).unwrap_or_default();
        let pairs = marks.iter().zip(marks.iter().skip(1));
        let same = pairs.filter(|(mark, next)| mark == next).count();
        self.add(Feature::Punctuation, 1);
        self.add(Feature::PunctuationSame, same);
        self.add(Feature::PunctuationMore, length - 1 - same);
        self.before = if length == 1 {
            Before::Mark
        } else {
            Before::Marks
        };
        length
    }

    fn read_one(&mut self, feature: Feature) -> usize {
        self.add(feature, 1);
        self.before = Before::Control;
        1
    }

    /// Reads a run of non-ASCII characters of one script.
    fn read_beyond_ascii(&mut self, rest: &str) -> usize {
        let Some(first) = rest.chars().next() else {
            return rest.len();
        };
        let feature = script::of(first);
        let same = rest
            .chars()
            .take_while(|&c| !c.is_ascii() && script::of(c) == feature);
        if feature == Feature::Sign {
            // Runs of the same sign, such as lines of box drawing, merge into few tokens.
            let signs = same.take_while(|&c| c == first).count();
            self.add(Feature::Sign, 1);
            // At least one: `first` itself is a sign.
            self.add(Feature::SignSame, signs - 1);
            self.before = Before::Sign;
            return signs * first.len_utf8();
        }
        let (letters, bytes) = same.fold((0, 0), |(n, bytes), c| (n + 1, bytes + c.len_utf8()));
        self.add(feature, letters);
        // Letters of more than two bytes are wide.
        let is_wide = first.len_utf8() > 2;
        match (self.before, is_wide) {
            // Letters that continue a word do not start a new one.
            (Before::Word | Before::WordAtDigit | Before::Letter, _) => {}
            (Before::Line, false) => self.add(Feature::WordTwoAtLine, 1),
            (Before::Line, true) => self.add(Feature::WordWideAtLine, 1),
            (_, false) => self.add(Feature::WordTwo, 1),
            (_, true) => self.add(Feature::WordWide, 1),
        }
        self.before = Before::Letter;
        bytes
    }

    fn add_in_group(&mut self, first: Feature, group: usize) {
        self.add_at(first as usize + group, 1);
    }

    fn add(&mut self, feature: Feature, times: usize) {
        self.add_at(feature as usize, times);
    }

    // Saturates: the estimate of a huge text may be wrong, but must not overflow.
    fn add_at(&mut self, place: usize, times: usize) {
        if let Some(count) = self.counts.get_mut(place) {
            *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        }
    }

    fn take_back(&mut self, feature: Feature) {
        if let Some(count) = self.counts.get_mut(feature as usize) {
            *count = count.saturating_sub(1);
        }
    }
}

/// The number of bytes at the beginning of a text that belong to a run.
fn run(text: &[u8], belongs: impl Fn(&u8) -> bool) -> usize {
    text.iter().take_while(|byte| belongs(byte)).count()
}

#[cfg(test)]
mod tests;
