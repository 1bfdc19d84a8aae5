//! An index of a summary, to look up facts in it.

use foldhash::{HashSet, HashSetExt as _};
use trimtab_model::work;

use crate::facts::{self, FactKind};

/// The length of the shortest word that is compared.
const SHORTEST: usize = 3;

/// The indexed texts.
pub(super) struct SummaryText<'w> {
    texts: Vec<&'w str>,
    /// Names, as written.
    names: HashSet<&'w str>,
    /// Words in lower case.
    words: HashSet<String>,
}

impl<'w> SummaryText<'w> {
    pub(super) fn new(texts: &[&'w str]) -> Self {
        let mut names = HashSet::new();
        let mut words = HashSet::new();
        for text in texts {
            facts::extract(text, &mut |fact| {
                names.extend(forms(fact.text));
            });
            let spaced = text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>,;=".contains(c));
            // Words between spaces as well: a summary may write a name in a way that is no fact on
            // its own.
            names.extend(spaced.map(|name| name.trim_matches(['.', ':', '!', '?'])));
            words.extend(words_of(text).map(str::to_lowercase));
        }
        Self {
            texts: texts.to_vec(),
            names,
            words,
        }
    }

    /// True if it contains the fact `text`: a name exactly, a sentence or a line in most of its
    /// words.
    pub(super) fn has(&self, kind: FactKind, text: &str) -> bool {
        match kind {
            FactKind::Constraint | FactKind::Error | FactKind::Command => self.tells(text),
            _ if text.contains(' ') => self.has_words(text),
            _ => forms(text).any(|form| self.names.contains(form)),
        }
    }

    /// True if the words of `text` occur in a row. The texts are searched only if all words occur.
    fn has_words(&self, text: &str) -> bool {
        let known = text.split(' ').all(|word| self.names.contains(word));
        known && self.contains(text)
    }

    fn contains(&self, text: &str) -> bool {
        let mut texts = self.texts.iter();
        texts.any(|written| {
            work::step_text(written);
            written.contains(text)
        })
    }

    /// True if two thirds of the words occur.
    fn tells(&self, text: &str) -> bool {
        let text = facts::unescaped(text);
        let (mut all, mut known) = (0, 0);
        for word in words_of(&text) {
            all += 1;
            known += usize::from(self.words.contains(&word.to_lowercase()));
        }
        // A text without words, such as a line of signs, can only be compared as a whole.
        match all {
            0 => self.contains(&text),
            all => known * 3 >= all * 2,
        }
    }
}

fn words_of(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.filter(|word| word.chars().count() >= SHORTEST)
}

/// The part of a fact that a summary must contain to cover it. Facts with the same key are covered
/// by the same words.
pub(super) fn fact_key(kind: FactKind, text: &str) -> String {
    match kind {
        FactKind::Constraint | FactKind::Error | FactKind::Command => {
            // Numbers are left out: errors that differ only in a line number are covered by the
            // same words.
            let words: Vec<&str> = words_of(text).filter(|word| !has_digit(word)).collect();
            words.join(" ").to_lowercase()
        }
        _ => forms(text).last().unwrap_or(text).to_owned(),
    }
}

fn has_digit(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The forms in which a name may be written: unchanged, without the parentheses of a call, without
/// its line number.
fn forms(text: &str) -> impl Iterator<Item = &str> {
    let name = text.strip_suffix("()").unwrap_or(text);
    let name = name.strip_prefix("./").unwrap_or(name);
    let file = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == ':');
    let bare = (file.len() < name.len() && name.contains(['/', '.'])).then_some(file);
    [Some(text), Some(name), bare].into_iter().flatten()
}
