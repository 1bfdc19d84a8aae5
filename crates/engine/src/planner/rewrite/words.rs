//! The words of the model in hidden rounds.
//!
//! They are short compared to the outputs, and contain what was found and decided.

use std::borrow::Cow;
use std::collections::HashSet;

use trimtab_model::{Message, Part, Role};

use crate::budget::cut_level;
use crate::view::figures::{first_bytes, last_bytes};

/// The prefixes of the first and the further lines of a message's words.
const FIRST: &str = "- ";
const FURTHER: &str = "  ";
/// Marks a cut.
const CUT: &str = " \u{2026} ";
/// The words of a message are not cut to fewer bytes than this. The oldest are dropped instead.
const LEAST: usize = 120;

/// The words of one message, on one or more lines.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MessageWords(String);

impl MessageWords {
    /// The words of a message; none if it has no text, or is not the model's.
    pub(super) fn of(message: &Message) -> Option<Self> {
        if message.role != Role::Assistant {
            return None;
        }
        let texts = message.parts.iter().filter_map(Part::as_text);
        let lines = texts.flat_map(str::lines).map(str::trim_end);
        let lines: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
        (!lines.is_empty()).then(|| Self(lines.join("\n")))
    }

    /// The bytes that it takes in a block.
    fn bytes(&self) -> usize {
        let lines = self.0.lines().count();
        self.0.len() + lines * FURTHER.len() + 1
    }

    /// The words, cut to `bytes`.
    fn within(&self, bytes: usize) -> Cow<'_, Self> {
        if self.bytes() <= bytes {
            return Cow::Borrowed(self);
        }
        let cut = self.cut(bytes);
        // The prefixes of further lines are known only after the cut. So cut once more if needed.
        let over = cut.bytes().saturating_sub(bytes);
        Cow::Owned(if over > 0 {
            self.cut(bytes - over.min(bytes))
        } else {
            cut
        })
    }

    /// Keeps two thirds of `bytes` from the beginning and the rest from the end.
    fn cut(&self, bytes: usize) -> Self {
        let left = bytes.saturating_sub(CUT.len() + FIRST.len() + 1);
        let head = first_bytes(&self.0, left * 2 / 3).trim_end();
        let tail = last_bytes(&self.0, left - left * 2 / 3).trim_start();
        Self(format!("{head}{CUT}{tail}"))
    }
}

/// Reads the words of an earlier block, oldest first.
pub(super) fn read<'b>(lines: impl Iterator<Item = &'b str>) -> Vec<MessageWords> {
    let mut words: Vec<MessageWords> = Vec::new();
    for line in lines {
        if let Some(first) = line.strip_prefix(FIRST) {
            words.push(MessageWords(first.to_owned()));
        } else if let (Some(last), Some(further)) = (words.last_mut(), line.strip_prefix(FURTHER)) {
            last.0.push('\n');
            last.0.push_str(further);
        }
    }
    words
}

/// Writes words as lines of a block, within `bytes`: all of them, with long ones cut to one length.
/// If even that is too much, words are dropped that newer ones repeat except for numbers, as in
/// "step 4 is done", then the oldest.
pub(super) fn render_words(words: &[MessageWords], bytes: usize) -> String {
    // Repetitions are dropped only if the words do not fit at their shortest.
    let all: usize = words.iter().map(|words| words.bytes().min(LEAST)).sum();
    let mut seen = HashSet::new();
    let mut left = bytes;
    let newest = words.iter().rev().filter(|words| {
        let known: Cow<'_, str> = if all <= bytes {
            Cow::Borrowed(&words.0)
        } else {
            words.0.replace(|c: char| c.is_ascii_digit(), "").into()
        };
        seen.insert(known)
    });
    let newest = newest.take_while(|words| {
        let least = words.bytes().min(LEAST);
        let fits = least <= left;
        left = left.saturating_sub(least);
        fits
    });
    let kept: Vec<&MessageWords> = newest.collect();
    let sizes = kept.iter().map(|words| words.bytes()).collect();
    let level = cut_level(sizes, bytes).max(LEAST);
    let mut lines = String::new();
    for words in kept.into_iter().rev() {
        for (at, line) in words.within(level).0.lines().enumerate() {
            lines.push('\n');
            lines.push_str(if at == 0 { FIRST } else { FURTHER });
            lines.push_str(line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> MessageWords {
        MessageWords::of(&Message::assistant(text)).unwrap()
    }

    #[test]
    fn decision_outlives_newer_words_that_differ_by_numbers_only() {
        let steps = (1..40).map(|step| words(&format!("Step {step} is done, I go on.")));
        let decided = words("I decided to keep the old parser, because of its error messages.");
        let all: Vec<MessageWords> = std::iter::once(decided).chain(steps).collect();
        let lines = render_words(&all, 400);
        assert!(lines.contains("keep the old parser") && lines.contains("Step 39"));
        assert!(!lines.contains("Step 12"), "{lines}");
        let whole = render_words(&all, 4_000);
        assert!(whole.contains("Step 12"), "{whole}");
    }

    #[test]
    fn words_are_read_as_they_were_written() {
        let all = [
            words("one"),
            words("two\n- with a list\n  and more\n\nend"),
            words("three"),
        ];
        let block = render_words(&all, 1_000);
        assert_eq!(block.lines().nth(1), Some("- one"));
        let read = read(block.lines());
        assert_eq!(read.len(), 3);
        assert_eq!(read[1].0, "two\n- with a list\n  and more\nend");
        assert_eq!(read, all);
    }

    #[test]
    fn long_words_are_cut_before_old_ones_go() {
        let long = format!("begin {} end", "x".repeat(5_000));
        let all = [words("the decision"), words(&long), words("the newest")];
        let block = render_words(&all, 400);
        assert!(block.len() <= 400, "{}", block.len());
        for kept in ["- the decision", "- begin x", "x end", "- the newest"] {
            assert!(block.contains(kept), "{kept} in {block}");
        }
        assert_eq!(render_words(&all, 30), "\n- the newest");
    }

    #[test]
    fn repeated_words_are_shown_once_at_their_last_place() {
        let all = [words("again"), words("other"), words("again")];
        assert_eq!(render_words(&all, 1_000), "\n- other\n- again");
    }
}
