//! Keeps whole lines from the head up to a byte limit, with a note that names the ref (design
//! `refs`).

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use trimtab_model::Ref;

use super::figures::first_chars;
use super::placeholder::with_reader;
use super::shape::bytes;
use super::structure;

/// Settings of the head cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HeadLinesCut {
    /// Each line is cut at this many chars.
    pub max_line_chars: usize,
    /// Lines are kept while they and the newlines between them fit this many bytes. The note is not
    /// counted.
    pub max_bytes: usize,
}

impl Default for HeadLinesCut {
    fn default() -> Self {
        Self {
            max_line_chars: 2_000,
            max_bytes: 51_200,
        }
    }
}

impl HeadLinesCut {
    /// The view of `text`: the same bytes if nothing must be cut.
    pub(super) fn view<'a>(&self, text: &'a str, stored: Option<&Ref>) -> Cow<'a, str> {
        let mut body = String::new();
        let (mut clipped, mut complete) = (false, true);
        for (at, line) in text.split('\n').enumerate() {
            // In this design, a line ends with LF or CRLF.
            let line = line.strip_suffix('\r').unwrap_or(line);
            let kept = first_chars(line, self.max_line_chars);
            let newline = if at > 0 { "\n" } else { "" };
            // The first line that does not fit ends the view. Skipping it would hide a gap.
            if body.len() + newline.len() + kept.len() > self.max_bytes {
                complete = false;
                break;
            }
            body.extend([newline, kept]);
            clipped |= kept.len() < line.len();
        }
        // The body has no carriage returns, so an uncut output must come from the original text.
        if complete && !clipped {
            return Cow::Borrowed(text);
        }
        // A JSON document is often one long line, and its first chars are of no use.
        if clipped && serde_json::from_str::<IgnoredAny>(text).is_ok() {
            let request = structure::CutRequest {
                cap: self.max_bytes as u64,
                measure: &bytes,
                stored,
            };
            return structure::cut(text, &request);
        }
        body.push_str(&note(stored));
        Cow::Owned(body)
    }
}

fn note(stored: Option<&Ref>) -> String {
    stored.map_or_else(
        || "\n\n[tool output truncated]".to_owned(),
        |stored| {
            let note = format!("\n\n[tool output truncated; ref={stored}]");
            with_reader(note, stored)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str, max_line_chars: usize, max_bytes: usize) -> String {
        let shape = HeadLinesCut {
            max_line_chars,
            max_bytes,
        };
        shape.view(text, None).into_owned()
    }

    #[test]
    fn carriage_returns_survive_unless_something_is_cut() {
        assert_eq!(view("a\r\nb\r\n", 9, 4), "a\r\nb\r\n");
        assert_eq!(view("a\r\nb\r\nc", 9, 3), "a\nb\n\n[tool output truncated]");
    }

    #[test]
    fn a_json_document_on_one_line_is_cut_like_text() {
        let long = "a line of the file\\n".repeat(500);
        let json = format!("{{\"path\":\"a.txt\",\"content\":\"{long}\"}}");
        let shown = view(&json, 100, 4_000);
        assert!((2_000..=4_000).contains(&shown.len()), "{}", shown.len());
        assert_eq!(view(&json, 100, 20_000), json);
    }

    #[test]
    fn a_first_line_over_the_cap_leaves_the_note_alone() {
        assert_eq!(view("abcdef", 9, 4), "\n\n[tool output truncated]");
    }
}
