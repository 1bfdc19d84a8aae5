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
    /// Instructions for the retained text; empty to ask for no such part.
    pub retain: String,
    /// Additional instructions for the retained text.
    pub retain_directives: Vec<String>,
}

impl Default for SummaryPrompt {
    fn default() -> Self {
        Self {
            summary: SUMMARY_PROMPT.to_owned(),
            summary_directives: Vec::new(),
            retain: RETAIN_PROMPT.to_owned(),
            retain_directives: Vec::new(),
        }
    }
}

impl SummaryPrompt {
    /// The text at the end of the request.
    ///
    /// ```
    /// # use trimtab_engine::policy::SummaryPrompt;
    /// let mut prompt = SummaryPrompt { retain: String::new(), ..SummaryPrompt::default() };
    /// prompt.summary = "Be short.".into();
    /// prompt.summary_directives = vec!["Keep file names.".into()];
    /// assert!(prompt.instructions().ends_with("Summary instructions:\nBe short.\n- Keep file names."));
    /// ```
    pub fn instructions(&self) -> String {
        let (mut form, mut retain) = ("", String::new());
        if !self.retain.is_empty() {
            form = "<retain>...</retain>\n";
            retain = section("Retain", &self.retain, &self.retain_directives) + "\n";
        }
        let summary = section("Summary", &self.summary, &self.summary_directives);
        let text = format!(
            "The conversation so far is about to be replaced by what you write now.\n\
             Do not call tools and do not go on with the work; answer in exactly this form:\n\
             {form}<summary>...</summary>\n\n{retain}{summary}"
        );
        text.trim().to_owned()
    }
}

fn section(title: &str, prompt: &str, directives: &[String]) -> String {
    let bullets = directives
        .iter()
        .map(|directive| format!("\n- {directive}"));
    let bullets: String = bullets.collect();
    format!("{title} instructions:\n{prompt}{bullets}\n")
}
