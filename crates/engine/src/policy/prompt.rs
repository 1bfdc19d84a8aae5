//! The instructions for the summariser.

use serde::{Deserialize, Serialize};

/// The default instructions for the summary.
const SUMMARY_PROMPT: &str = "\
Write down what is needed to go on with the work: the task and its constraints in the \
user's own words, what was done and decided and why, what was found out, the files, \
commands, names and numbers involved, what failed and how, and what is to be done next.";

/// The default instructions for the retained text.
const RETAIN_PROMPT: &str = "\
List what must survive word for word: refs of stored outputs, exact paths, ids, numbers, \
error texts and decisions that later work depends on. One item a line.";

/// The instructions for the summariser.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SummaryPrompt {
    /// Instructions for the summary.
    pub summary: String,
    /// Additional instructions for the summary.
    pub summary_directives: Vec<String>,
    /// Instructions for the retained text; none, in a file the empty text, to ask for no such part.
    #[serde(with = "empty_is_none")]
    pub retain: Option<String>,
    /// Additional instructions for the retained text.
    pub retain_directives: Vec<String>,
}

impl Default for SummaryPrompt {
    fn default() -> Self {
        Self {
            summary: SUMMARY_PROMPT.to_owned(),
            summary_directives: Vec::new(),
            retain: Some(RETAIN_PROMPT.to_owned()),
            retain_directives: Vec::new(),
        }
    }
}

impl SummaryPrompt {
    /// The text at the end of the request.
    ///
    /// ```
    /// # use trimtab_engine::policy::SummaryPrompt;
    /// let mut prompt = SummaryPrompt { retain: None, ..SummaryPrompt::default() };
    /// prompt.summary = "Be short.".into();
    /// prompt.summary_directives = vec!["Keep file names.".into()];
    /// assert!(prompt.instructions().ends_with("Summary instructions:\nBe short.\n- Keep file names."));
    /// ```
    pub fn instructions(&self) -> String {
        let mut lines = vec![
            "The conversation so far is about to be replaced by what you write now.",
            "Do not call tools and do not go on with the work; answer in exactly this form:",
        ];
        if self.retain.is_some() {
            lines.push("<retain>...</retain>");
        }
        lines.extend(["<summary>...</summary>", ""]);
        let mut lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
        if let Some(retain) = &self.retain {
            lines.extend(section(
                "Retain instructions:",
                retain,
                &self.retain_directives,
            ));
            lines.push(String::new());
        }
        lines.extend(section(
            "Summary instructions:",
            &self.summary,
            &self.summary_directives,
        ));
        lines.join("\n").trim().to_owned()
    }
}

fn section(title: &str, prompt: &str, directives: &[String]) -> Vec<String> {
    let bullets = directives.iter().map(|directive| format!("- {directive}"));
    [title.to_owned(), prompt.to_owned()]
        .into_iter()
        .chain(bullets)
        .collect()
}

/// TOML has no null, so the empty text means none in files.
mod empty_is_none {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::ref_option, reason = "serde passes it like this")]
    pub(super) fn serialize<S: Serializer>(
        text: &Option<String>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        text.as_deref().unwrap_or_default().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<String>, D::Error> {
        let text = String::deserialize(deserializer)?;
        Ok(Some(text).filter(|text| !text.is_empty()))
    }
}
