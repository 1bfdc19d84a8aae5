//! Extracts the features of a text in one pass that roughly follows how public vocabularies split
//! text.
//!
//! Pieces are words, up to three digits, runs of punctuation and runs of blanks. A blank before a
//! word belongs to the word, and a newline after punctuation to the punctuation. Each feature
//! counts one such case, so that the number of tokens is roughly a weighted sum.
//!
//! ASCII is read by a state machine without branches ([`transitions`]), because a processor cannot
//! predict where words end. Long texts are read two bytes at a time.

mod transitions;

use super::script;
use transitions::{
    AFTER_LETTER_BEYOND, AFTER_SIGN, CORRECTIONS, COUNTER_PAIRS, COUNTERS, LINE_START, TEXT_START,
    TextState, counters_of, transition, transition_pair,
};

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

/// Longer texts are read in blocks of about this size, so that the counts of a block stay small.
const BLOCK: usize = 16 << 10;
/// Shorter blocks are read in one go.
const SHORTEST_QUARTERED: usize = 512;
/// How far a place to divide a text is searched.
const LONGEST_SEARCH: usize = 1_024;

impl Features {
    /// The counts, in the order of [`Feature`].
    pub(super) fn counts(&self) -> &[u32; FEATURES] {
        &self.0
    }

    /// Reads a text.
    pub(super) fn of(text: &str) -> Self {
        let mut counter = FeatureCounter::default();
        let mut rest = text;
        while !rest.is_empty() {
            let block;
            (block, rest) = divide(rest, BLOCK);
            // Four counters must be created and added up, which costs more than it saves on a short
            // block. Other scripts need the branch of `read_beyond_ascii`.
            if block.len() >= SHORTEST_QUARTERED && block.is_ascii() {
                counter.read_quarters(block);
            } else {
                counter.read(block);
            }
            counter.count_neighbours(block.as_bytes());
        }
        counter.finish()
    }
}

/// Counts the features of consecutive texts.
struct FeatureCounter {
    state: TextState,
    counts: [u32; COUNTERS],
}

impl Default for FeatureCounter {
    fn default() -> Self {
        Self {
            state: TEXT_START,
            counts: [0; COUNTERS],
        }
    }
}

impl FeatureCounter {
    /// Reads a text that starts where [`divide`] divides.
    fn read(&mut self, text: &str) {
        self.state = TEXT_START;
        let bytes = text.as_bytes();
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            at += if byte.is_ascii() {
                self.read_byte(byte);
                1
            } else {
                self.read_beyond_ascii(text.get(at..).unwrap_or_default())
            };
        }
    }

    /// Reads an ASCII text in four places at once: each step waits for the state before it, and
    /// the processor can wait for four states at the same time.
    fn read_quarters(&mut self, text: &str) {
        let quarter = text.len() / 4;
        let (first, rest) = divide(text, quarter);
        let (second, rest) = divide(rest, quarter);
        let (third, fourth) = divide(rest, quarter);
        let texts = [first, second, third, fourth].map(str::as_bytes);
        // The division moves to the next safe place, so the four parts differ in length. They are
        // read together up to the shortest, and the rests one after the other.
        let shortest = texts.map(<[u8]>::len).into_iter().min().unwrap_or(0) / 2 * 2;
        let texts = texts.map(|text| text.split_at_checked(shortest).unwrap_or((&[], text)));
        let [a, b, c, d] = texts.map(|(start, _)| start.as_chunks::<2>().0);
        // The states are apart from the counts, so that they stay in registers.
        let mut states = [TEXT_START; 4];
        let mut counts = [[0; COUNTER_PAIRS]; 4];
        let [state_a, state_b, state_c, state_d] = &mut states;
        let [one, two, three, four] = &mut counts;
        for (((a, b), c), d) in a.iter().zip(b).zip(c).zip(d) {
            *state_a = count_pair(one, *state_a, *a);
            *state_b = count_pair(two, *state_b, *b);
            *state_c = count_pair(three, *state_c, *c);
            *state_d = count_pair(four, *state_d, *d);
        }
        for (state, (_, rest)) in states.iter().zip(texts) {
            self.state = *state;
            for byte in rest {
                self.read_byte(*byte);
            }
        }
        let [one, two, three, four] = &counts;
        let sums = one.iter().zip(two).zip(three).zip(four);
        let sums = sums.map(|(((a, b), c), d)| a + b + c + d);
        for (pair, times) in sums.enumerate().filter(|(_, times)| *times > 0) {
            for counter in counters_of(pair) {
                if let Some(sum) = self.counts.get_mut(counter) {
                    *sum = sum.saturating_add(times);
                }
            }
        }
    }

    /// Counts the features that are about a byte and the one before it. This keeps the previous
    /// byte out of the states, whose number would multiply. No such pair is divided by [`divide`].
    fn count_neighbours(&mut self, bytes: &[u8]) {
        // `&` instead of `&&` avoids a branch.
        let upper = |a: u8, b: u8| a.is_ascii_uppercase() & b.is_ascii_uppercase();
        self.add(Feature::UpperInside, count_pairs(bytes, upper));
        let same = |a: u8, b: u8| (a == b) & a.is_ascii_punctuation();
        self.add(Feature::PunctuationSame, count_pairs(bytes, same));
    }

    #[inline]
    fn read_byte(&mut self, byte: u8) {
        let (state, counted) = transition(self.state, byte);
        self.state = state;
        // `transition` returns a counter below `COUNTERS`, so the compiler drops this check.
        if let Some(count) = self.counts.get_mut(counted) {
            *count = count.wrapping_add(1);
        }
    }

    // Saturate: the estimate of a huge text may be wrong, but must not overflow.
    fn add(&mut self, feature: Feature, times: usize) {
        if let Some(count) = self.counts.get_mut(feature as usize) {
            *count = count.saturating_add(u32::try_from(times).unwrap_or(u32::MAX));
        }
    }

    /// Reads a run of non-ASCII characters of one script, and returns its bytes.
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
            self.state = AFTER_SIGN;
            return signs * first.len_utf8();
        }
        let (letters, bytes) = same.fold((0, 0), |(n, bytes), c| (n + 1, bytes + c.len_utf8()));
        self.add(feature, letters);
        self.start_beyond(first.len_utf8() > 2);
        self.state = AFTER_LETTER_BEYOND;
        bytes
    }

    /// Counts the start of a run of non-ASCII letters, unless it continues a word. Letters are
    /// `wide` if they have more than two bytes.
    fn start_beyond(&mut self, wide: bool) {
        let at_line = self.state == TEXT_START || self.state == LINE_START;
        let feature = match (at_line, wide) {
            // Letters that continue a word do not start a new one.
            _ if self.state.is_word() => return,
            (true, false) => Feature::WordTwoAtLine,
            (true, true) => Feature::WordWideAtLine,
            (false, false) => Feature::WordTwo,
            (false, true) => Feature::WordWide,
        };
        self.add(feature, 1);
    }

    /// Turns the counts of transitions into those of features.
    fn finish(&self) -> Features {
        let transitions = |counter: usize| self.counts.get(counter).copied().unwrap_or(0);
        let mut features: [u32; FEATURES] = std::array::from_fn(transitions);
        for &(counter, feature, times) in &CORRECTIONS {
            if let Some(count) = features.get_mut(feature) {
                // Sums are never negative, so that wrapping in between is harmless.
                let more = transitions(counter).wrapping_mul(times.cast_unsigned());
                *count = count.wrapping_add(more);
            }
        }
        Features(features)
    }
}

/// Counts the transitions of two ASCII bytes, and returns the state after them.
#[inline]
fn count_pair(counts: &mut [u32; COUNTER_PAIRS], state: TextState, bytes: [u8; 2]) -> TextState {
    let (state, pair) = transition_pair(state, bytes);
    // The number of a pair is a byte, so the compiler drops this check.
    if let Some(count) = counts.get_mut(usize::from(pair)) {
        *count = count.wrapping_add(1);
    }
    state
}

/// Divides a text at the first place from byte `at` on where the pieces before and after do not
/// depend on each other: before a blank, or after a newline.
fn divide(text: &str, at: usize) -> (&str, &str) {
    let from = text.as_bytes().get(at..).unwrap_or_default();
    let mut pairs = from.windows(2).take(LONGEST_SEARCH);
    let found = pairs.position(|pair| match pair {
        [before, b' '] => *before != b' ',
        // A run of newlines merges into few tokens, so a run must not be divided.
        [b'\n', after] => !matches!(after, b'\n' | b'\r'),
        _ => false,
    });
    found
        .and_then(|found| text.split_at_checked(at + found + 1))
        // There is no safe place nearby, as in base64 or minified code: read the rest in one go.
        .unwrap_or((text, ""))
}

/// Counts pairs of neighbours. The sum of a chunk fits a byte, so that many pairs are compared
/// with one instruction.
fn count_pairs(bytes: &[u8], is_counted: impl Fn(u8, u8) -> bool) -> usize {
    const CHUNK: usize = 128;
    let next = bytes.get(1..).unwrap_or_default();
    let chunks = bytes.chunks(CHUNK).zip(next.chunks(CHUNK));
    let counts = chunks.map(|(chunk, next)| {
        let pairs = chunk.iter().zip(next);
        pairs.map(|(a, b)| u8::from(is_counted(*a, *b))).sum::<u8>()
    });
    counts.map(usize::from).sum()
}

#[cfg(test)]
mod tests;
