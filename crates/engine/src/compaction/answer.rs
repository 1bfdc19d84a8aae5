//! Reading what the summariser said.

use std::fmt;

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
        let retain = if retain_asked {
            tagged(text, "retain")
        } else {
            None
        };
        let summary = tagged(text, "summary").unwrap_or_default().to_owned();
        let effective_summary = if summary.is_empty() {
            untagged(text)
        } else {
            summary.clone()
        };
        Self {
            retain: retain.unwrap_or_default().to_owned(),
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Nothing was written.
    Empty,
    /// The answer was cut off.
    CutOff,
    /// The summariser called a tool instead.
    ToolCall,
    /// The answer is not smaller than what it would replace.
    TooLarge {
        /// Tokens of the answer.
        tokens: u64,
        /// Tokens of what it would replace.
        replaces: u64,
    },
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the summary is empty"),
            Self::CutOff => f.write_str("the summary was cut off"),
            Self::ToolCall => f.write_str("the summariser called a tool instead of answering"),
            Self::TooLarge { tokens, replaces } => {
                write!(
                    f,
                    "the summary has {tokens} tokens and would replace only {replaces}"
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}

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

/// The text between the first `<tag>` and the `</tag>` that follows it, trimmed.
fn tagged<'t>(text: &'t str, tag: &str) -> Option<&'t str> {
    let (_, from) = find(text, &format!("<{tag}>"))?;
    let rest = text.get(from..)?;
    let (to, _) = find(rest, &format!("</{tag}>"))?;
    rest.get(..to).map(str::trim)
}

/// The answer without its retain parts and without summary tags.
fn untagged(text: &str) -> String {
    let mut rest = text.to_owned();
    while let Some((from, open)) = find(&rest, "<retain>") {
        let behind = rest.get(open..).unwrap_or_default();
        let Some((_, close)) = find(behind, "</retain>") else {
            break;
        };
        rest.replace_range(from..open + close, "");
    }
    for tag in ["<summary>", "</summary>"] {
        while let Some((from, to)) = find(&rest, tag) {
            rest.replace_range(from..to, "");
        }
    }
    rest.trim().to_owned()
}

/// Where `tag` stands in `text`, in any ASCII case.
fn find(text: &str, tag: &str) -> Option<(usize, usize)> {
    let found = text
        .as_bytes()
        .windows(tag.len())
        .position(|window| window.eq_ignore_ascii_case(tag.as_bytes()))?;
    Some((found, found + tag.len()))
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
