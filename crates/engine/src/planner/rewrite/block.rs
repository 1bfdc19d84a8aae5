//! The block that represents the oldest rounds: their refs, what the model said in them, and lines
//! from their outputs.

use std::fmt::Write;

use trimtab_model::{Message, MessageKind, Part, Ref};

use super::words::{self, MessageWords};
use crate::normalise::Slot;
use crate::view::placeholder::read_call;

/// The beginning of a block.
const HEAD: &str = "[trimtab: earlier rounds left out; everything in them: ";
/// The beginnings of its sections: refs of still earlier rounds, words of the model, outputs. No
/// line of words begins like these.
const EARLIER: &str = "before that, in the same way: ";
const WORDS: &str = "said by you in them:";
const OUTPUTS: &str = "from outputs in them:";
/// The maximum length of the call that reads a block's rounds.
const LONGEST_CALL: usize = 80;

/// The contents of a block.
#[derive(Clone, Debug)]
pub(crate) struct BlockContents {
    /// The refs of blocks before it, oldest first.
    pub(super) earlier: Vec<String>,
    /// What the model said.
    pub(super) words: Vec<MessageWords>,
    /// Lines from outputs, oldest first.
    pub(super) outputs: Vec<String>,
    /// The limit of the whole block in bytes.
    pub(super) bytes: usize,
    /// The limit of the words.
    pub(super) words_bytes: usize,
}

impl BlockContents {
    /// The text of the block. The rounds that are hidden now are stored at `archived`.
    pub(crate) fn text(&self, archived: Option<&Ref>) -> String {
        let call = archived.map_or_else(String::new, |archived| read_call(archived, 0));
        let mut text = format!("{HEAD}{call}]");
        // Writing into a String cannot fail.
        if !self.earlier.is_empty() {
            let _ = write!(text, "\n{EARLIER}{}", self.earlier.join(" "));
        }
        let left = self.bytes.saturating_sub(text.len() + WORDS.len() + 1);
        let words = words::render_words(&self.words, self.words_bytes.min(left));
        if !words.is_empty() {
            let _ = write!(text, "\n{WORDS}{words}");
        }
        // The newest lines come first, because they are needed most. They are written in their
        // original order.
        let mut left = self.bytes.saturating_sub(text.len() + OUTPUTS.len() + 2);
        let newest = self.outputs.iter().rev();
        let fitting = newest.take_while(|output| {
            let fits = output.len() < left;
            left = left.saturating_sub(output.len() + 1);
            fits
        });
        let fitting: Vec<&String> = fitting.collect();
        if !fitting.is_empty() {
            let _ = write!(text, "\n{OUTPUTS}");
        }
        for output in fitting.into_iter().rev() {
            let _ = write!(text, "\n{output}");
        }
        text
    }
}

/// The bytes of a block besides the words and the lines about outputs.
pub(super) fn fixed_bytes(earlier: &[String]) -> usize {
    let refs: usize = earlier.iter().map(|earlier| earlier.len() + 1).sum();
    let lines = [HEAD, EARLIER, WORDS, OUTPUTS];
    let lines: usize = lines.iter().map(|line| line.len() + 1).sum();
    lines + LONGEST_CALL + refs
}

/// Reads what the next block repeats from an earlier one: the refs that it represents, and the
/// words of the model, oldest first.
pub(super) fn read(slots: &[Slot]) -> (Vec<String>, Vec<MessageWords>) {
    let block = slots.iter().rev().find(|slot| is_block(&slot.message));
    let text = block.map(|slot| slot.message.text().into_owned());
    let mut lines = text.as_deref().unwrap_or_default().lines().peekable();
    // The head contains the retrieval call as JSON, see `read_call`.
    let own = lines.next().and_then(|head| {
        let (_, behind) = head.split_once("\"ref_id\":\"")?;
        behind.split_once('"').map(|(id, _)| id.to_owned())
    });
    let earlier = lines.peek().and_then(|line| line.strip_prefix(EARLIER));
    let earlier = earlier.unwrap_or_default().split_whitespace();
    let refs = earlier.map(str::to_owned).chain(own).collect();
    let words = lines.take_while(|line| *line != OUTPUTS);
    (refs, words::read(words))
}

/// True for a block of ours.
pub(super) fn is_block(message: &Message) -> bool {
    let text = message.parts.first().and_then(Part::as_text);
    message.meta.kind == Some(MessageKind::Summary)
        && text.is_some_and(|text| text.starts_with(HEAD))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::normalise::MessageSource;

    fn stored(id: &str) -> Ref {
        serde_json::from_str(&format!(r#"{{"id":"{id}"}}"#)).unwrap()
    }

    #[test]
    fn refs_and_words_of_a_block_are_read_by_the_next_one() {
        let said = Message::assistant("I chose the second way.");
        let contents = BlockContents {
            earlier: vec!["first".to_owned()],
            words: MessageWords::of(&said).into_iter().collect(),
            outputs: vec!["third read a.rs: fn main".to_owned()],
            bytes: 1_000,
            words_bytes: 500,
        };
        let text = contents.text(Some(&stored("second")));
        assert!(text.contains("third read a.rs: fn main"), "{text}");
        let block = Message::user(text).with_kind(MessageKind::Summary);
        assert!(is_block(&block));
        let slot = Slot {
            message: Arc::new(block),
            source: MessageSource::Inserted(1),
        };
        let (refs, words) = read(&[slot]);
        assert_eq!(refs, ["first", "second"]);
        assert_eq!(words, contents.words);
    }

    #[test]
    fn newest_outputs_have_their_place_first() {
        let contents = BlockContents {
            earlier: Vec::new(),
            words: Vec::new(),
            outputs: vec!["old ".repeat(30), "new ".repeat(30)],
            bytes: 300,
            words_bytes: 0,
        };
        let text = contents.text(Some(&stored("r")));
        assert!(
            text.contains("new new") && !text.contains("old old"),
            "{text}"
        );
    }
}
