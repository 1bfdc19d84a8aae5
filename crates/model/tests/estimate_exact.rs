//! Exact counts against the reference, and the properties that make them cheap.
#![cfg(feature = "exact")]
#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::Path;

use proptest::prelude::*;
use tiktoken_rs::CoreBPE;
use trimtab_model::estimate::{Appending, TokenCounter, Vocabulary};

fn reference(vocabulary: Vocabulary) -> &'static CoreBPE {
    match vocabulary {
        Vocabulary::O200k => tiktoken_rs::o200k_base_singleton(),
        Vocabulary::Cl100k => tiktoken_rs::cl100k_base_singleton(),
    }
}

fn assert_like_reference(text: &str) {
    for vocabulary in Vocabulary::ALL {
        let ours = vocabulary.counter().unwrap().count(text);
        let theirs = reference(vocabulary).encode_ordinary(text).len() as u64;
        let start: String = text.chars().take(60).collect();
        assert_eq!(
            ours,
            theirs,
            "{vocabulary:?}: {start:?}, {} bytes",
            text.len()
        );
    }
}

/// Pieces of everything that vocabularies treat in a way of its own.
fn mixed_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z]{1,12} ?",
        2 => "[A-Z]{0,6}[a-z]{0,9}",
        2 => "[0-9]{1,9}[., ]?",
        2 => "[-=+*/#_.,:;!?()\\[\\]{}'\"`~@$%^&|<>\\\\]{1,6}",
        2 => "[ \\t]{1,9}",
        2 => "(\\r?\\n){1,3}[ /]{0,3}",
        1 => "(don't|I'LL|we've|'s|'ſ|x'S)",
        1 => "<\\|(endoftext|fim_prefix|endofprompt|im_start)\\|>",
        2 => "[а-яё]{1,9} ?",
        1 => "[ÀÉßéèüñ]{1,4}",
        1 => "[一-龥ぁ-んァ-ヶ가-힣。、]{1,6}",
        1 => "[אבגדابتثकखग𝔞𝔟]{1,4}",
        1 => "[😀🎉👍🏽️‍\u{301}\u{2028}\u{a0}\u{3000}─═→]{1,4}",
        1 => any::<String>(),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn counts_are_those_of_the_reference(text in mixed_text()) {
        assert_like_reference(&text);
    }

    /// Long runs go through windows; what is around them must not matter.
    #[test]
    fn long_runs_are_exact(
        before in mixed_text(),
        unit in prop_oneof![
            "[a-z]{1,3}", "[A-Z]{1,2}", "[a-zA-Z]{1,9}", "[-=#*/.]{1,3}", " ", "[ \t]{1,3}", "\n", "\r\n", "[ \n]{2,4}",
        ],
        length in 2000_usize..9000,
        after in mixed_text(),
    ) {
        let run = unit.repeat(length / unit.len());
        assert_like_reference(&format!("{before}{run}{after}"));
    }

    /// Newlines and slashes may belong to the punctuation before them.
    #[test]
    fn long_runs_behind_punctuation_are_exact(
        before in "[-/|>. ]{0,3}[\\r\\n/]{0,3}",
        unit in prop_oneof!["\n", "\r\n", "/", "//\n", "[-/]{1,2}"],
        length in 2000_usize..5000,
        after in "[\\r\\n/]{0,3}[-/a ]{0,3}",
    ) {
        let run = unit.repeat(length / unit.len());
        assert_like_reference(&format!("{before}{run}{after}"));
    }

    /// The text is longer than a chunk, so it is cut at safe places.
    #[test]
    fn safe_cuts_add_up(pieces in prop::collection::vec(mixed_text(), 2..5)) {
        let text = pieces.concat().repeat(60);
        assert_like_reference(&text);
    }

    #[test]
    fn appending_is_counting_again(pieces in prop::collection::vec(mixed_text(), 0..8)) {
        for vocabulary in Vocabulary::ALL {
            let counter = vocabulary.counter().unwrap();
            let mut appending = Appending::new(counter);
            let mut whole = String::new();
            for piece in &pieces {
                appending.push(piece);
                whole.push_str(piece);
                prop_assert_eq!(appending.count(), counter.count(&whole));
            }
        }
    }
}

#[test]
fn special_tokens_in_text_are_ordinary_text() {
    let counter = Vocabulary::O200k.counter().unwrap();
    assert!(counter.count("<|endoftext|>") > 3);
    assert_like_reference("a <|endoftext|> b <|endofprompt|>");
}

/// The reference cannot take all of these, so the known law of each run is checked instead.
#[test]
fn a_megabyte_of_one_character_is_counted() {
    let counter = Vocabulary::O200k.counter().unwrap();
    for character in ["a", " ", "-", "=", "\n"] {
        let short = counter.count(&character.repeat(1 << 12));
        let long = counter.count(&character.repeat(1 << 20));
        assert_eq!(long, short << 8, "{character:?}");
    }
}

/// Letters without an end: the sum over a text cut into words that no token can cross.
#[test]
fn a_megabyte_without_a_break_is_counted() {
    let mut state = 7_u64;
    let mut letter = |alphabet: &[u8]| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        char::from(alphabet[(state >> 33) as usize % alphabet.len()])
    };
    for alphabet in [&b"abcdefghijklmnopqrstuvwxyz"[..], b"ACGT", b"-=+*/#_.,:;"] {
        let text: String = (0..200_000).map(|_| letter(alphabet)).collect();
        assert_like_reference(&text);
    }
}

#[test]
fn recorded_sessions_count_like_the_reference() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/public");
    let Ok(files) = std::fs::read_dir(folder) else {
        println!("skipped: no recorded sessions beside the workspace");
        return;
    };
    for file in files
        .map(|file| file.unwrap().path())
        .filter(|path| path.is_file())
    {
        #[expect(clippy::disallowed_methods, reason = "test data")]
        let text = std::fs::read_to_string(file).unwrap();
        for line in text.lines().take(3) {
            let start: String = line.chars().take(200_000).collect();
            assert_like_reference(&start);
            assert_like_reference(&start.replace("\\n", "\n").replace("\\\"", "\""));
        }
    }
}
