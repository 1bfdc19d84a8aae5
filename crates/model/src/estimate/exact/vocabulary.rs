//! Which public vocabulary a model uses.

use serde::{Deserialize, Serialize};

/// A vocabulary whose tokens are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Vocabulary {
    /// `o200k_base`: GPT-4o and everything `OpenAI` released after it.
    O200k,
    /// `cl100k_base`: GPT-4, GPT-3.5 and the embedding models.
    Cl100k,
}

/// Beginnings of model names, the longer ones of a family first.
const FAMILIES: [(&str, Vocabulary); 14] = [
    ("gpt-4o", Vocabulary::O200k),
    ("gpt-4.1", Vocabulary::O200k),
    ("gpt-4.5", Vocabulary::O200k),
    ("gpt-5", Vocabulary::O200k),
    ("gpt-6", Vocabulary::O200k),
    ("gpt-oss", Vocabulary::O200k),
    ("chatgpt-4o", Vocabulary::O200k),
    ("codex-mini", Vocabulary::O200k),
    ("gpt-4-", Vocabulary::Cl100k),
    ("gpt-3.5", Vocabulary::Cl100k),
    ("gpt-35-", Vocabulary::Cl100k),
    ("text-embedding-3", Vocabulary::Cl100k),
    ("text-embedding-ada-002", Vocabulary::Cl100k),
    ("gpt-4", Vocabulary::Cl100k),
];

impl Vocabulary {
    /// Every vocabulary.
    pub const ALL: [Self; 2] = [Self::O200k, Self::Cl100k];

    /// The vocabulary of a model, by its name; none where it is not public.
    ///
    /// A provider's prefix (`openai/`, `azure/`) and the mark of a fine-tuned model (`ft:`)
    /// are passed over.
    ///
    /// ```
    /// use trimtab_model::estimate::Vocabulary;
    ///
    /// assert_eq!(Vocabulary::for_model("openai/gpt-5-mini"), Some(Vocabulary::O200k));
    /// assert_eq!(Vocabulary::for_model("o3"), Some(Vocabulary::O200k));
    /// assert_eq!(Vocabulary::for_model("gpt-4-turbo"), Some(Vocabulary::Cl100k));
    /// assert_eq!(Vocabulary::for_model("claude-sonnet-4"), None);
    /// ```
    pub fn for_model(model: &str) -> Option<Self> {
        let model = model.to_ascii_lowercase();
        let name = model.rsplit('/').next().unwrap_or_default();
        let name = name.strip_prefix("ft:").unwrap_or(name);
        if is_reasoning_series(name) {
            return Some(Self::O200k);
        }
        FAMILIES
            .iter()
            .find(|(prefix, _)| name.starts_with(prefix))
            .map(|&(_, vocabulary)| vocabulary)
    }
}

/// `o1`, `o3-mini`, `o4`: the letter, one digit, then the end or a dash.
fn is_reasoning_series(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next() == Some('o')
        && letters.next().is_some_and(|letter| letter.is_ascii_digit())
        && matches!(letters.next(), None | Some('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_finds_its_vocabulary() {
        let o200k = [
            "gpt-4o-mini",
            "gpt-4.1",
            "gpt-5.1-codex",
            "o1",
            "o4-mini",
            "GPT-4o",
            "ft:gpt-4o:x",
        ];
        let cl100k = ["gpt-4", "gpt-4-0613", "gpt-3.5-turbo", "azure/gpt-35-turbo"];
        let none = [
            "",
            "o",
            "o10",
            "olmo-2",
            "opus",
            "llama-3",
            "gemini-3-pro",
            "my-gpt-4",
        ];
        for model in o200k {
            assert_eq!(
                Vocabulary::for_model(model),
                Some(Vocabulary::O200k),
                "{model}"
            );
        }
        for model in cl100k {
            assert_eq!(
                Vocabulary::for_model(model),
                Some(Vocabulary::Cl100k),
                "{model}"
            );
        }
        for model in none {
            assert_eq!(Vocabulary::for_model(model), None, "{model}");
        }
    }
}
