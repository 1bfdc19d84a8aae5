//! The state machine that reads ASCII text: one table lookup per byte, or per two bytes.
//!
//! A state is what the next byte depends on: the kind of the piece that the previous byte belongs
//! to, and as much of its length as matters. Each transition increments one counter. Most counters
//! are features; [`CORRECTIONS`] derives the features that a transition cannot count directly.

use super::{FEATURES, Feature};

/// The number of counters, a power of two.
pub(super) const COUNTERS: usize = 128;

/// Counters of transitions that stand for two features, and of those without a feature.
const WORD_AT_DIGIT: usize = FEATURES;
const WORD_AT_MARK: usize = FEATURES + 1;
const DIGIT_AT_WORD: usize = FEATURES + 2;
const DIGIT_AT_BLANK: usize = FEATURES + 3;
const UNCOUNTED: usize = FEATURES + 4;
const _: () = assert!(UNCOUNTED < COUNTERS);

/// What the next byte depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextState(u8);

pub(super) const TEXT_START: TextState = TextState(0);
/// After a newline.
pub(super) const LINE_START: TextState = TextState(1);
/// After a tab or a control character.
const AFTER_CONTROL: TextState = TextState(2);
const ONE_BLANK: TextState = TextState(3);
const MORE_BLANKS: TextState = TextState(4);
/// One, two or three digits of a group.
const FIRST_DIGIT: TextState = TextState(5);
const THIRD_DIGIT: TextState = TextState(7);
const ONE_MARK: TextState = TextState(8);
const MORE_MARKS: TextState = TextState(9);
/// After a non-ASCII sign or letter.
pub(super) const AFTER_SIGN: TextState = TextState(10);
pub(super) const AFTER_LETTER_BEYOND: TextState = TextState(11);
/// The first state within a word: see [`WordState`].
const WORDS: u8 = 16;
const STATES: usize = 128;

impl TextState {
    /// True after a letter, ASCII or not.
    pub(super) fn is_word(self) -> bool {
        self == AFTER_LETTER_BEYOND || self.0 >= WORDS
    }
}

/// A state within a word: the kind of the word, and its letters so far.
#[derive(Clone, Copy)]
struct WordState {
    kind: WordKind,
    /// True after a lower-case letter. Then a capital starts the next word.
    lower_seen: bool,
    /// The letters so far, at most [`LONGEST`].
    length: u8,
}

/// Longer words only count their further letters.
const LONGEST: u8 = 14;

#[derive(Clone, Copy)]
enum WordKind {
    /// After a blank or at the start of a line.
    Free,
    Glued,
    /// Glued to a digit before it.
    AtDigit,
    /// Continues a word of non-ASCII letters.
    Joined,
}

impl WordState {
    const fn of(state: TextState) -> Option<Self> {
        let Some(number) = state.0.checked_sub(WORDS) else {
            return None;
        };
        // The inverse of `state`. States above the last word state do not occur; they decode to
        // `Joined`.
        let kind = match number / (2 * LONGEST) {
            0 => WordKind::Free,
            1 => WordKind::Glued,
            2 => WordKind::AtDigit,
            _ => WordKind::Joined,
        };
        Some(Self {
            kind,
            lower_seen: number % (2 * LONGEST) >= LONGEST,
            length: number % LONGEST + 1,
        })
    }

    const fn state(self) -> TextState {
        let kind = self.kind as u8 * 2 + self.lower_seen as u8;
        TextState(WORDS + kind * LONGEST + self.length - 1)
    }
}

/// Classes of ASCII characters.
#[derive(Clone, Copy)]
enum CharacterClass {
    Lower,
    Upper,
    Digit,
    Blank,
    Newline,
    Tab,
    Control,
    Mark,
}

const CLASSES: [CharacterClass; 8] = [
    CharacterClass::Lower,
    CharacterClass::Upper,
    CharacterClass::Digit,
    CharacterClass::Blank,
    CharacterClass::Newline,
    CharacterClass::Tab,
    CharacterClass::Control,
    CharacterClass::Mark,
];

const fn class_of(byte: u8) -> CharacterClass {
    match byte {
        b'a'..=b'z' => CharacterClass::Lower,
        b'A'..=b'Z' => CharacterClass::Upper,
        b'0'..=b'9' => CharacterClass::Digit,
        b' ' => CharacterClass::Blank,
        b'\n' | b'\r' => CharacterClass::Newline,
        b'\t' => CharacterClass::Tab,
        b'!'..=b'~' => CharacterClass::Mark,
        _ => CharacterClass::Control,
    }
}

/// The next state and the counter to increment.
const fn derive(state: TextState, class: CharacterClass) -> (TextState, usize) {
    match class {
        CharacterClass::Lower => letter(state, false),
        CharacterClass::Upper => letter(state, true),
        CharacterClass::Digit => digit(state),
        CharacterClass::Blank => match state {
            ONE_BLANK => (MORE_BLANKS, Feature::Indent as usize),
            MORE_BLANKS => (MORE_BLANKS, Feature::IndentMore as usize),
            // A single blank is free: the word after it absorbs it. `digit` counts it if a digit
            // follows.
            _ => (ONE_BLANK, UNCOUNTED),
        },
        CharacterClass::Newline => match state {
            LINE_START => (LINE_START, Feature::NewlineMore as usize),
            ONE_MARK | MORE_MARKS | AFTER_SIGN => {
                (LINE_START, Feature::NewlineAtPunctuation as usize)
            }
            _ => (LINE_START, Feature::Newline as usize),
        },
        CharacterClass::Tab => (AFTER_CONTROL, Feature::Tab as usize),
        CharacterClass::Control => (AFTER_CONTROL, Feature::Control as usize),
        CharacterClass::Mark => match state {
            ONE_MARK | MORE_MARKS => (MORE_MARKS, Feature::PunctuationMore as usize),
            _ => (ONE_MARK, Feature::Punctuation as usize),
        },
    }
}

/// A word is upper case, then lower case. A capital after lower case starts the next word.
const fn letter(state: TextState, is_upper: bool) -> (TextState, usize) {
    if let Some(word) = WordState::of(state)
        && !(is_upper && word.lower_seen)
    {
        return longer_word(word, is_upper);
    }
    let (kind, counter) = match state {
        TEXT_START | LINE_START => (WordKind::Free, Feature::WordAtLine as usize),
        AFTER_CONTROL | ONE_BLANK | MORE_BLANKS => (WordKind::Free, Feature::Word as usize),
        TextState(FIRST..=LAST) => (WordKind::AtDigit, WORD_AT_DIGIT),
        // A single mark before a word, as in `.name`, merges with it.
        ONE_MARK => (WordKind::Glued, WORD_AT_MARK),
        AFTER_LETTER_BEYOND => (WordKind::Joined, Feature::Joined as usize),
        _ => (WordKind::Glued, Feature::Glued as usize),
    };
    let word = WordState {
        kind,
        lower_seen: !is_upper,
        length: 1,
    };
    (word.state(), counter)
}

const FIRST: u8 = FIRST_DIGIT.0;
const LAST: u8 = THIRD_DIGIT.0;

/// A word counts again when its length reaches the next class of lengths.
const fn longer_word(word: WordState, is_upper: bool) -> (TextState, usize) {
    let length = if word.length < LONGEST {
        word.length + 1
    } else {
        LONGEST
    };
    let reached = match length {
        3 => 1,
        5 => 2,
        7 => 3,
        9 => 4,
        11 => 5,
        // Length 14 is the seventh class. The condition keeps letters after the fourteenth from
        // counting as a new word each.
        LONGEST if word.length < LONGEST => 6,
        _ => 0,
    };
    let counter = match word.kind {
        _ if word.length == LONGEST => Feature::LetterFar as usize,
        // A joined word has no classes of lengths, so its fourteenth letter counts as far at once.
        WordKind::Joined if length == LONGEST => Feature::LetterFar as usize,
        WordKind::Free if reached > 0 => Feature::Word as usize + reached,
        WordKind::Glued | WordKind::AtDigit if reached > 0 => Feature::Glued as usize + reached,
        _ => UNCOUNTED,
    };
    let lower_seen = word.lower_seen || !is_upper;
    let longer = WordState {
        lower_seen,
        length,
        ..word
    };
    (longer.state(), counter)
}

/// Vocabularies group digits by three, and a blank before a digit is a token of its own.
const fn digit(state: TextState) -> (TextState, usize) {
    match state {
        TextState(FIRST..LAST) => (TextState(state.0 + 1), UNCOUNTED),
        ONE_BLANK | MORE_BLANKS => (FIRST_DIGIT, DIGIT_AT_BLANK),
        _ => match WordState::of(state) {
            // A word between digits counts once.
            None
            | Some(WordState {
                kind: WordKind::AtDigit,
                ..
            }) => (FIRST_DIGIT, Feature::Digits3 as usize),
            Some(_) => (FIRST_DIGIT, DIGIT_AT_WORD),
        },
    }
}

/// Lengths of words that are told apart.
const LENGTHS: usize = 7;

/// What transitions say about features beside their own: counter, feature, and how often the
/// feature occurs more for each transition.
pub(super) const CORRECTIONS: [(usize, usize, i32); 12 + 2 * LENGTHS] = [
    (Feature::WordAtLine as usize, Feature::Word as usize, 1),
    (Feature::Indent as usize, Feature::IndentMore as usize, 2),
    (WORD_AT_DIGIT, Feature::Glued as usize, 1),
    (WORD_AT_DIGIT, Feature::WordAtDigit as usize, 1),
    (WORD_AT_MARK, Feature::Glued as usize, 1),
    (WORD_AT_MARK, Feature::Prefix as usize, 1),
    (WORD_AT_MARK, Feature::Punctuation as usize, -1),
    (DIGIT_AT_WORD, Feature::Digits3 as usize, 1),
    (DIGIT_AT_WORD, Feature::WordAtDigit as usize, 1),
    (DIGIT_AT_BLANK, Feature::Digits3 as usize, 1),
    (DIGIT_AT_BLANK, Feature::BlankAtDigit as usize, 1),
    (
        Feature::PunctuationSame as usize,
        Feature::PunctuationMore as usize,
        -1,
    ),
    // A longer word was also counted with each shorter length that it had.
    (1, 0, -1),
    (2, 1, -1),
    (3, 2, -1),
    (4, 3, -1),
    (5, 4, -1),
    (6, 5, -1),
    // The letter that reaches the last class is itself the first one after the thirteenth.
    (6, Feature::LetterFar as usize, 1),
    (8, 7, -1),
    (9, 8, -1),
    (10, 9, -1),
    (11, 10, -1),
    (12, 11, -1),
    (13, 12, -1),
    (13, Feature::LetterFar as usize, 1),
];

/// The class of each byte. Non-ASCII bytes are not read here.
#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the compiler evaluates it, and all numbers are below 256"
)]
static CLASS_OF: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = class_of(byte as u8) as u8;
        byte += 1;
    }
    classes
};

/// The next state (in the upper half) and the counter, by state and class.
#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the compiler evaluates it, and all numbers are below 256"
)]
static TRANSITIONS: [u16; STATES * CLASSES.len()] = {
    let mut transitions = [0; STATES * CLASSES.len()];
    let mut at = 0;
    while at < transitions.len() {
        let state = TextState((at / CLASSES.len()) as u8);
        let (next, counter) = derive(state, CLASSES[at % CLASSES.len()]);
        transitions[at] = (next.0 as u16) << 8 | counter as u16;
        at += 1;
    }
    transitions
};

/// The state after `byte`, which must be ASCII, and the counter to increment.
#[inline]
pub(super) fn transition(state: TextState, byte: u8) -> (TextState, usize) {
    let class = CLASS_OF.get(usize::from(byte)).copied().unwrap_or(0);
    let at = usize::from(state.0) * CLASSES.len() + usize::from(class);
    // The remainders change nothing. They show the compiler that the positions exist.
    let entry = TRANSITIONS.get(at % TRANSITIONS.len());
    let [counter, next] = entry.copied().unwrap_or_default().to_le_bytes();
    (TextState(next), usize::from(counter) % COUNTERS)
}

/// The number of pairs of classes.
const CLASS_PAIRS: usize = CLASSES.len() * CLASSES.len();
/// The number of pairs of ASCII bytes, as numbers of two bytes. Half of them do not occur.
const BYTE_PAIRS: usize = 1 << 15;
/// Two transitions increment one of 249 pairs of counters, so that the number of a pair fits a byte.
pub(super) const COUNTER_PAIRS: usize = 256;

/// The tables for two transitions in one step.
struct PairTables {
    /// The pair of classes of each pair of bytes.
    classes: [u8; BYTE_PAIRS],
    /// The next state (in the upper half) and the pair of counters, by state and pair of classes.
    transitions: [u16; STATES * CLASS_PAIRS],
    /// The two counters of each pair.
    counters: [[u8; 2]; COUNTER_PAIRS],
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "the compiler evaluates it, and checks the positions; all numbers are below 256"
)]
static PAIR_TABLES: PairTables = {
    let mut tables = PairTables {
        classes: [0; BYTE_PAIRS],
        transitions: [0; STATES * CLASS_PAIRS],
        counters: [[UNCOUNTED as u8; 2]; COUNTER_PAIRS],
    };
    let mut bytes = 0;
    while bytes < BYTE_PAIRS {
        let [first, second] = (bytes as u16).to_le_bytes();
        tables.classes[bytes] =
            class_of(first) as u8 * CLASSES.len() as u8 + class_of(second) as u8;
        bytes += 1;
    }
    // The pair of each two counters that occurred already. Pair 0 is not used.
    let mut pair_of = [[0_u8; COUNTERS]; COUNTERS];
    let (mut pairs, mut at) = (0, 0);
    while at < tables.transitions.len() {
        let state = TextState((at / CLASS_PAIRS) as u8);
        let (between, first) = derive(state, CLASSES[at / CLASSES.len() % CLASSES.len()]);
        let (next, second) = derive(between, CLASSES[at % CLASSES.len()]);
        if pair_of[first][second] == 0 {
            pairs += 1;
            tables.counters[pairs] = [first as u8, second as u8];
            pair_of[first][second] = pairs as u8;
        }
        tables.transitions[at] = (next.0 as u16) << 8 | pair_of[first][second] as u16;
        at += 1;
    }
    tables
};

/// The state after two bytes, which must be ASCII, and the pair of counters to increment.
#[inline]
pub(super) fn transition_pair(state: TextState, bytes: [u8; 2]) -> (TextState, u8) {
    let bytes = usize::from(u16::from_le_bytes(bytes));
    // As above, the remainders only show that the positions exist.
    let classes = PAIR_TABLES.classes.get(bytes % BYTE_PAIRS).copied();
    let at = usize::from(state.0) * CLASS_PAIRS + usize::from(classes.unwrap_or(0));
    let entry = PAIR_TABLES.transitions.get(at % (STATES * CLASS_PAIRS));
    let [pair, next] = entry.copied().unwrap_or_default().to_le_bytes();
    (TextState(next), pair)
}

/// The two counters of a pair.
pub(super) fn counters_of(pair: usize) -> [usize; 2] {
    let counters = PAIR_TABLES.counters.get(pair).copied();
    counters.unwrap_or_default().map(usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pair_of_bytes_counts_like_its_bytes() {
        let bytes = || (0..128).flat_map(|first| (0..128).map(move |second| [first, second]));
        for (state, bytes) in (0..128).flat_map(|state| bytes().map(move |bytes| (state, bytes))) {
            let [first, second] = bytes;
            let (between, counter) = transition(TextState(state), first);
            let (next, last) = transition(between, second);
            let (state, pair) = transition_pair(TextState(state), bytes);
            assert_eq!(state, next, "{bytes:?}");
            assert_eq!(counters_of(pair.into()), [counter, last], "{bytes:?}");
        }
    }
}
