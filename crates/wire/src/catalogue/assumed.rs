//! Assumes what a model of an unknown name is: like the newest known one of its family.

use std::cmp::Reverse;

use super::names::{bare, undated};
use super::snapshot::{Snapshot, SnapshotEntry};

/// The families whose models are served with the same limits everywhere, with the provider that
/// knows them best. Others run on servers of their own, which have any window.
const FAMILIES: [(&str, &str); 8] = [
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("gemini", "gemini"),
    ("grok", "xai"),
    ("deepseek", "deepseek"),
    ("kimi", "moonshot"),
    ("glm", "zai"),
    ("minimax", "minimax"),
];

/// The longest number in a name that is a version, in digits. Longer ones are dates and sizes.
const VERSION_DIGITS: usize = 2;

/// A name in its words and its version.
struct NameParts<'a> {
    words: Vec<&'a str>,
    version: Vec<u32>,
}

impl Snapshot {
    /// The newest known model of the family of `name`, if that has a version.
    pub(super) fn newest_of_family(&self, name: &str) -> Option<SnapshotEntry<'_>> {
        let bare = bare(name);
        let wanted = NameParts::of(&bare)?;
        let (family, provider) = FAMILIES
            .iter()
            .find(|(family, _)| wanted.words.first() == Some(family))?;
        let known: Vec<SnapshotEntry<'_>> = self
            .lines()
            .filter(|line| line.contains(family))
            .filter_map(SnapshotEntry::parse)
            .filter(|entry| entry.provider == *provider)
            .collect();
        // An unknown member of the family is like the newest of its line, if the line is known.
        (1..=wanted.words.len())
            .rev()
            .find_map(|count| newest(&known, wanted.words.get(..count)?))
            .cloned()
    }
}

/// The newest of the models whose names begin with these words.
fn newest<'e, 's>(known: &'e [SnapshotEntry<'s>], words: &[&str]) -> Option<&'e SnapshotEntry<'s>> {
    let ranked = known.iter().filter_map(|entry| {
        let name = bare(entry.id);
        let parts = NameParts::of(&name)?;
        let more = parts.words.strip_prefix(words)?.len();
        // Of several new models, one without an addition is meant, or else the largest.
        Some(((parts.version, Reverse(more), entry.prices.input), entry))
    });
    ranked
        .max_by(|(one, _), (other, _)| one.cmp(other))
        .map(|(_, entry)| entry)
}

impl<'a> NameParts<'a> {
    /// None if the name has no version, or names a size, as models do that anybody can run.
    fn of(bare: &'a str) -> Option<Self> {
        let (mut words, mut version) = (Vec::new(), Vec::new());
        for word in undated(bare).unwrap_or(bare).split(['-', '_', ':', '@']) {
            let letters = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            let number = word.strip_prefix(letters).unwrap_or_default();
            let is_version = number
                .split('.')
                .all(|digits| digits.len() <= VERSION_DIGITS);
            if number.is_empty() {
                let sized = letters.strip_suffix('b').unwrap_or_default();
                if !sized.is_empty() && sized.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                words.push(word);
            } else if letters.len() > 1 {
                words.push(letters);
            }
            // A single letter before a number, as in `v4` or `k3`, is part of the version.
            if is_version {
                // 4.20 is older than 4.7.
                let (major, minor) = number.split_once('.').unwrap_or((number, ""));
                let minor = minor.split('.').map(|digits| digits.trim_end_matches('0'));
                let digits = std::iter::once(major).chain(minor);
                version.extend(digits.filter_map(|digits| digits.parse::<u32>().ok()));
            }
        }
        (!version.is_empty()).then_some(Self { words, version })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_words_and_a_version() {
        for (name, words, version) in [
            (
                "claude-opus-4-5-20251101",
                vec!["claude", "opus"],
                vec![4, 5],
            ),
            ("claude-3-opus-20240229", vec!["claude", "opus"], vec![3]),
            ("gpt-6.1-sol", vec!["gpt", "sol"], vec![6, 1]),
            ("kimi-k2.6", vec!["kimi"], vec![2, 6]),
            ("deepseek-v4-flash", vec!["deepseek", "flash"], vec![4]),
            ("gpt-3.5-turbo-0125", vec!["gpt", "turbo"], vec![3, 5]),
        ] {
            let parts = NameParts::of(name).unwrap();
            assert_eq!((parts.words, parts.version), (words, version), "{name}");
        }
        for name in [
            "gpt",
            "gpt-4o",
            "gpt-oss-20b",
            "deepseek-r1-70b",
            "latest",
            "",
        ] {
            assert!(NameParts::of(name).is_none(), "{name}");
        }
    }
}
