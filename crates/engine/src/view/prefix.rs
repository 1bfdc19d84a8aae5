//! Keeps the first chars of an output, with a marker (design `retention`).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::figures::first_chars;

/// Settings of the prefix cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PrefixCut {
    /// The number of chars that are kept, without the marker.
    pub chars: usize,
}

impl Default for PrefixCut {
    fn default() -> Self {
        Self { chars: 500 }
    }
}

/// The end of every view of this shape.
const MARKER: &str = "[truncated for context management]";

impl PrefixCut {
    /// The view of `text`: the same bytes if it is short enough or was cut before. `line` stands
    /// where the rest was.
    pub(super) fn view<'a>(self, text: &'a str, line: Option<&str>) -> Cow<'a, str> {
        let kept = first_chars(text, self.chars);
        // Cutting a view again would remove the line that names its ref.
        if kept.len() == text.len() || Self::was_cut(text) {
            return Cow::Borrowed(text);
        }
        let line = line.map_or_else(String::new, |line| format!("\n{line}"));
        Cow::Owned(format!("{kept}{line}\n\n{MARKER}"))
    }

    /// True for a text that was cut like this before.
    pub(super) fn was_cut(text: &str) -> bool {
        text.ends_with(MARKER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_twice_is_cutting_once() {
        let shape = PrefixCut { chars: 3 };
        let once = shape.view("éééé", None).into_owned();
        assert_eq!(once, "ééé\n\n[truncated for context management]");
        assert_eq!(shape.view(&once, None), once);
        assert_eq!(shape.view("ééé", None), "ééé");
        let with_line = shape.view("éééé", Some("[line]")).into_owned();
        assert_eq!(
            with_line,
            "ééé\n[line]\n\n[truncated for context management]"
        );
        assert_eq!(shape.view(&with_line, Some("[line]")), with_line);
    }
}
