//! Judges by its form whether a token is hard to guess. Words, sequences and repetitions are
//! rejected; a random token of 128 bits in a usual form passes.

use std::collections::BTreeSet;

/// The minimum strength of a token in bits.
pub(super) const LEAST_BITS: u32 = 128;
/// The minimum number of different characters in a random token.
const LEAST_DISTINCT: usize = 8;
/// The bits per character of human text.
const BITS_IN_WORDS: f64 = 2.0;

/// True if the form of `token` can hold 128 random bits.
pub(super) fn is_strong(token: &str) -> bool {
    let characters: Vec<char> = token.chars().collect();
    let distinct: BTreeSet<char> = characters.iter().copied().collect();
    distinct.len() >= LEAST_DISTINCT
        && !is_sequence(&characters)
        && bits(&characters) >= f64::from(LEAST_BITS)
}

/// The maximum number of bits in text of this form.
fn bits(characters: &[char]) -> f64 {
    let unit = repeated_unit(characters);
    let counted = unit.iter().filter(|found| found.is_alphanumeric()).count();
    let others = unit.len() - counted;
    if unit.iter().all(|found| is_hex(*found)) {
        return counted as f64 * bits_per_character(unit);
    }
    if looks_like_words(unit) {
        return unit.len() as f64 * BITS_IN_WORDS;
    }
    // Separators between groups carry no information; the signs of base64 do, but they are rare. So
    // at most one sign in eight counts.
    let signs = others.min(unit.len() / 8);
    (counted + signs) as f64 * bits_per_character(unit)
}

/// Hexadecimal digits, in groups or not.
fn is_hex(found: char) -> bool {
    found.is_ascii_hexdigit() || matches!(found, '-' | ':' | '_')
}

/// The bits per character, by the alphabet in use.
fn bits_per_character(unit: &[char]) -> f64 {
    let any = |is: fn(&char) -> bool| unit.iter().any(is);
    if unit
        .iter()
        .all(|found| found.is_ascii_digit() || !found.is_alphanumeric())
    {
        return 10_f64.log2();
    }
    if unit.iter().all(|found| is_hex(*found)) {
        return 4.0;
    }
    let mut alphabet = 0_u32;
    alphabet += 26 * u32::from(any(char::is_ascii_lowercase));
    alphabet += 26 * u32::from(any(char::is_ascii_uppercase));
    alphabet += 10 * u32::from(any(char::is_ascii_digit));
    f64::from(alphabet.max(2)).log2()
}

/// True if most characters follow from their predecessor: `aaaa`, `abcd`, `4321`.
fn is_sequence(characters: &[char]) -> bool {
    let pairs = characters.iter().zip(characters.iter().skip(1));
    let near = pairs.filter(|(one, other)| u32::from(**one).abs_diff(u32::from(**other)) <= 1);
    near.count() * 2 > characters.len()
}

/// The shortest prefix whose repetition is the whole text.
fn repeated_unit(characters: &[char]) -> &[char] {
    // A text repeats with a length if it equals itself shifted by that length. This is quadratic,
    // but a token is short and checked once.
    let repeats = |length: usize| {
        let shifted = characters.iter().skip(length);
        characters
            .iter()
            .zip(shifted)
            .all(|(one, other)| one == other)
    };
    let length = (1..=characters.len() / 2).find(|length| repeats(*length));
    length
        .and_then(|length| characters.get(..length))
        .unwrap_or(characters)
}

/// True if upper case, lower case and digits form runs, as in words.
fn looks_like_words(unit: &[char]) -> bool {
    let class = |found: &char| match found {
        found if found.is_ascii_digit() => 0,
        found if found.is_uppercase() => 1,
        _ => 2,
    };
    // Separators stand between words as well, so they say nothing.
    let plain = unit.iter().filter(|found| found.is_alphanumeric());
    let classes: Vec<i32> = plain.map(class).collect();
    let pairs = classes.iter().zip(classes.iter().skip(1));
    let changes = pairs.filter(|(one, other)| one != other).count();
    // In random text of mixed characters six in ten neighbours differ; in words hardly any. One
    // random token in 100,000 has as few changes as words have, but its characters still differ:
    // words repeat their letters.
    let distinct: BTreeSet<&char> = unit.iter().collect();
    changes * 10 < classes.len() * 3 && distinct.len() * 5 < unit.len() * 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tokens_are_strong() {
        for token in [
            "0f8fad5bd9cb469fa16570867728950e",
            "b7c1d1a2f0e94c9e8b5a1f7d2c3e4f5061728394a5b6c7d8e9f00112233445a7",
            "Zx3kP9qLw2Tn8Rv5Yb7Hd1",
            "q83vKz0T5xw1mYbP-4nRzA7uJcE_hL2sVdG6fQ9iXo8",
            "trimtab_9fK2pQ7wLxZ3vB8nM4rT6yH1",
            // Random, with as few changes between upper case, lower case and digits as words have.
            "stsygiZf176pzPQDTEAjFBgipdvaTZETJA_Zensprk0",
        ] {
            assert!(is_strong(token), "{token}");
        }
    }

    #[test]
    fn guessable_tokens_are_weak() {
        for token in [
            "",
            "t",
            "opensesame",
            "0f8fad5bd9cb469fa16570867728950",
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "0123456789abcdef0123456789abcdef",
            "a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4a1b2c3d4",
            "abcdefghijklmnopqrstuvwxyz0123456789",
            "correct-horse-battery-staple-correct",
            "this is the token of our team 2026",
            "CorrectHorseBatteryStaple2026",
            "9876501234987650123498765",
            "------------------------------------------------",
        ] {
            assert!(!is_strong(token), "{token}");
        }
    }

    #[test]
    fn generated_tokens_are_strong() {
        // The digests of a counter are as random as generated bytes, and the same in every run.
        for counter in 0..100_000_u32 {
            let random = blake3::hash(&counter.to_le_bytes());
            let hex = data_encoding::HEXLOWER.encode(random.as_bytes());
            assert!(is_strong(&hex), "{hex}");
            let base64 = data_encoding::BASE64URL_NOPAD.encode(random.as_bytes());
            assert!(is_strong(&base64), "{base64}");
        }
    }
}
