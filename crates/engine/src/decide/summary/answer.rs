//! Parses and judges the summariser's answer.

use thiserror::Error;

use crate::pattern::LazyRegex;

/// A parsed answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SummaryAnswer {
    /// The retained text; empty if there is none.
    pub retain: String,
    /// The text between the summary tags; empty if there were none.
    pub summary: String,
    /// The summary to use: the tagged text, otherwise the whole answer without its tags.
    pub effective_summary: String,
}

impl SummaryAnswer {
    /// Parses an answer. Tags are case-insensitive, and the first pair counts.
    ///
    /// ```
    /// # use trimtab_engine::decide::summary::answer::SummaryAnswer;
    /// let answer = SummaryAnswer::parse("<RETAIN>a</RETAIN> <summary> b </summary>", true);
    /// assert_eq!((answer.retain.as_str(), answer.summary.as_str()), ("a", "b"));
    /// assert_eq!(SummaryAnswer::parse("no tags", true).effective_summary, "no tags");
    /// ```
    pub fn parse(text: &str, retain_asked: bool) -> Self {
        let retain = retain_asked.then(|| tagged(text, &RETAIN)).flatten();
        let summary = tagged(text, &SUMMARY).unwrap_or_default();
        // A model that ignores the form still gives a usable summary.
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

    /// True if there is nothing to use.
    pub fn is_empty(&self) -> bool {
        self.retain.is_empty() && self.effective_summary.is_empty()
    }
}

/// Why an answer is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SummaryRefusal {
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
pub enum SummaryEnding {
    /// Completely.
    Whole,
    /// At the answer's limit.
    CutOff,
    /// With a call of a tool.
    ToolCall,
}

/// Checks an answer by its ending, content and size.
pub fn judge(
    answer: &SummaryAnswer,
    ending: SummaryEnding,
    tokens: u64,
    replaces: u64,
) -> Result<(), SummaryRefusal> {
    // A cut answer may lack its most important part, however complete its text looks.
    match ending {
        SummaryEnding::CutOff => Err(SummaryRefusal::CutOff),
        SummaryEnding::ToolCall => Err(SummaryRefusal::ToolCall),
        SummaryEnding::Whole if answer.is_empty() => Err(SummaryRefusal::Empty),
        SummaryEnding::Whole if tokens >= replaces => {
            Err(SummaryRefusal::TooLarge { tokens, replaces })
        }
        SummaryEnding::Whole => Ok(()),
    }
}

/// The parts of an answer, in case-insensitive tags.
static RETAIN: LazyRegex = LazyRegex::new(r"(?is)<retain>\s*(.*?)\s*</retain>");
static SUMMARY: LazyRegex = LazyRegex::new(r"(?is)<summary>\s*(.*?)\s*</summary>");
/// What is removed from an answer that is used as a whole.
static RETAIN_OR_TAG: LazyRegex = LazyRegex::new(r"(?is)<retain>.*?</retain>|</?summary>");

/// The text of the first such part.
fn tagged(text: &str, part: &LazyRegex) -> Option<String> {
    Some(part.captures(text)?.get(1)?.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_refused_if_it_helps_nobody() {
        let answer = SummaryAnswer::parse("<summary>s</summary>", true);
        assert_eq!(judge(&answer, SummaryEnding::Whole, 10, 100), Ok(()));
        assert_eq!(
            judge(&answer, SummaryEnding::CutOff, 10, 100),
            Err(SummaryRefusal::CutOff)
        );
        assert_eq!(
            judge(&answer, SummaryEnding::ToolCall, 10, 100),
            Err(SummaryRefusal::ToolCall)
        );
        let large = Err(SummaryRefusal::TooLarge {
            tokens: 100,
            replaces: 100,
        });
        assert_eq!(judge(&answer, SummaryEnding::Whole, 100, 100), large);
        assert_eq!(
            judge(&SummaryAnswer::default(), SummaryEnding::Whole, 0, 100),
            Err(SummaryRefusal::Empty)
        );
    }
}
