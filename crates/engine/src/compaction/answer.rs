//! Reading what the summariser said.

use thiserror::Error;

use crate::pattern::Pattern;

/// What a summariser wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What is to be kept word for word; empty if there is nothing.
    pub retain: String,
    /// The text between the summary tags; empty if there were none.
    pub summary: String,
    /// The summary to use: the tagged text, else the whole answer without its tags.
    pub effective_summary: String,
}

impl Answer {
    /// Reads an answer. Tags are found in any case, the first pair counts.
    ///
    /// ```
    /// # use trimtab_engine::compaction::answer::Answer;
    /// let answer = Answer::parse("<RETAIN>a</RETAIN> <summary> b </summary>", true);
    /// assert_eq!((answer.retain.as_str(), answer.summary.as_str()), ("a", "b"));
    /// assert_eq!(Answer::parse("no tags", true).effective_summary, "no tags");
    /// ```
    pub fn parse(text: &str, retain_asked: bool) -> Self {
        let retain = retain_asked.then(|| tagged(text, &RETAIN)).flatten();
        let summary = tagged(text, &SUMMARY).unwrap_or_default();
        let effective_summary = if summary.is_empty() {
            RETAIN_OR_TAG.remove(text).trim().to_owned()
        } else {
            summary.clone()
        };
        Self {
            retain: retain.unwrap_or_default(),
            summary,
            effective_summary,
        }
    }

    /// True if there is nothing to replace anything with.
    pub fn is_empty(&self) -> bool {
        self.retain.is_empty() && self.effective_summary.is_empty()
    }
}

/// Why an answer is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Nothing was written.
    #[error("the summary is empty")]
    Empty,
    /// The answer was cut off.
    #[error("the summary was cut off")]
    CutOff,
    /// The summariser called a tool instead.
    #[error("the summariser called a tool instead of answering")]
    ToolCall,
    /// The answer is not smaller than what it would replace.
    #[error("the summary has {tokens} tokens and would replace only {replaces}")]
    TooLarge {
        /// Tokens of the answer.
        tokens: u64,
        /// Tokens of what it would replace.
        replaces: u64,
    },
}

/// How the summariser's answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Whole,
    /// At the answer's limit.
    CutOff,
    /// With a call of a tool.
    ToolCall,
}

/// Judges an answer by how it ended, what is in it and how large it is.
pub fn judge(answer: &Answer, ending: Ending, tokens: u64, replaces: u64) -> Result<(), Refusal> {
    match ending {
        Ending::CutOff => Err(Refusal::CutOff),
        Ending::ToolCall => Err(Refusal::ToolCall),
        Ending::Whole if answer.is_empty() => Err(Refusal::Empty),
        Ending::Whole if tokens >= replaces => Err(Refusal::TooLarge { tokens, replaces }),
        Ending::Whole => Ok(()),
    }
}

/// The parts of an answer, in tags of any case.
static RETAIN: Pattern = Pattern::new(r"(?is)<retain>\s*(.*?)\s*</retain>");
static SUMMARY: Pattern = Pattern::new(r"(?is)<summary>\s*(.*?)\s*</summary>");
/// What is left out of an answer that is used as a whole.
static RETAIN_OR_TAG: Pattern = Pattern::new(r"(?is)<retain>.*?</retain>|</?summary>");

/// The text of the first such part.
fn tagged(text: &str, part: &Pattern) -> Option<String> {
    Some(part.captures(text)?.get(1)?.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, String, String) {
        let answer = Answer::parse(text, true);
        (answer.retain, answer.summary, answer.effective_summary)
    }

    fn strings(retain: &str, summary: &str, effective: &str) -> (String, String, String) {
        (retain.into(), summary.into(), effective.into())
    }

    #[test]
    fn the_first_pair_counts() {
        assert_eq!(
            parsed("<summary>one</summary><summary>two</summary>"),
            strings("", "one", "one")
        );
    }

    #[test]
    fn an_answer_without_a_whole_pair_is_its_own_summary() {
        assert_eq!(parsed("<summary>unfinished"), strings("", "", "unfinished"));
        assert_eq!(parsed("<retain>a</retain> rest"), strings("a", "", "rest"));
        assert_eq!(parsed("<retain>keep</retain>"), strings("keep", "", ""));
    }

    #[test]
    fn an_answer_is_refused_if_it_helps_nobody() {
        let answer = Answer::parse("<summary>s</summary>", true);
        assert_eq!(judge(&answer, Ending::Whole, 10, 100), Ok(()));
        assert_eq!(
            judge(&answer, Ending::CutOff, 10, 100),
            Err(Refusal::CutOff)
        );
        assert_eq!(
            judge(&answer, Ending::ToolCall, 10, 100),
            Err(Refusal::ToolCall)
        );
        let large = Err(Refusal::TooLarge {
            tokens: 100,
            replaces: 100,
        });
        assert_eq!(judge(&answer, Ending::Whole, 100, 100), large);
        assert_eq!(
            judge(&Answer::default(), Ending::Whole, 0, 100),
            Err(Refusal::Empty)
        );
    }
}
