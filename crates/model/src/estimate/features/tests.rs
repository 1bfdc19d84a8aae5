use super::*;

/// The features of a text that are not zero, as (place, times).
fn seen(text: &str) -> Vec<(usize, u32)> {
    let counts = count_features(text).into_iter().enumerate();
    counts.filter(|&(_, times)| times > 0).collect()
}

const WORD_AT_LINE: (usize, u32) = (Feature::WordAtLine as usize, 1);

#[test]
fn words_are_classified_by_length_and_position() {
    assert_eq!(seen("ab"), [(0, 1), WORD_AT_LINE]);
    assert_eq!(seen("ab abc"), [(0, 1), (1, 1), WORD_AT_LINE]);
    // The hump starts a word of its own, upper case alone does not.
    let upper = (Feature::UpperInside as usize, 3);
    assert_eq!(seen("getURLText"), [(1, 1), (10, 1), upper, WORD_AT_LINE]);
    let far = (Feature::LetterFar as usize, 2);
    assert_eq!(seen("abcdefghijklmno"), [(6, 1), far, WORD_AT_LINE]);
}

#[test]
fn blanks_belong_to_words_but_not_to_digits() {
    let (three, blank) = (Feature::Digits3 as usize, Feature::BlankAtDigit as usize);
    assert_eq!(seen("1234 5"), [(three, 3), (blank, 1)]);
    let (indent, more) = (Feature::Indent as usize, Feature::IndentMore as usize);
    assert_eq!(seen("    a"), [(0, 1), (indent, 1), (more, 4)]);
}

#[test]
fn punctuation_takes_newlines_and_words_take_one_mark() {
    let place = |feature: Feature| feature as usize;
    assert_eq!(
        seen(");\n"),
        [
            (place(Feature::Punctuation), 1),
            (place(Feature::PunctuationMore), 1),
            (place(Feature::NewlineAtPunctuation), 1),
        ]
    );
    assert_eq!(seen("_a"), [(7, 1), (place(Feature::Prefix), 1)]);
    assert_eq!(
        seen("---"),
        [
            (place(Feature::Punctuation), 1),
            (place(Feature::PunctuationSame), 2)
        ]
    );
}

#[test]
fn letters_beyond_ascii_are_counted_by_script() {
    let place = |feature: Feature| feature as usize;
    assert_eq!(
        seen("né 漢字"),
        [
            (0, 1),
            WORD_AT_LINE,
            (place(Feature::Latin), 1),
            (place(Feature::WordWide), 1),
            (place(Feature::Han), 2),
        ]
    );
    assert_eq!(
        seen("══"),
        [(place(Feature::Sign), 1), (place(Feature::SignSame), 1)]
    );
    // A script that we do not know ends at the next ASCII character.
    assert_eq!(seen("\u{10348}0").last(), Some(&(place(Feature::Other), 1)));
}
