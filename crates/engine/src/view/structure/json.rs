//! Cuts JSON so that it stays JSON: shortens long lists, long strings and deep nesting until it
//! fits.

mod render;
mod tree;

use render::RenderLimits;
pub(super) use tree::{Tree, parse};

use super::fitting::{TriedAmount, largest_fitting};
use super::marker::{self, ShownCounts};
use super::{CutRequest, ShortenedView};

/// The number of elements of every list that are shown before strings are shortened.
const FEW: usize = 3;
/// The lengths of strings that are finally tried, in bytes.
const STRINGS: [usize; 5] = [1_000, 400, 160, 60, 24];
/// A text with more bytes than this many times the cap is unlikely to fit: the length of the
/// longest common tokens.
const BYTES_PER_UNIT: u64 = 8;
/// The number of bisection steps towards the longest string length that fits.
const REFINEMENTS: usize = 4;
/// The number of attempts with shorter strings cut by structure, before only their start is shown.
const STRUCTURE_ATTEMPTS: usize = 3;
/// The nesting depths that are tried when nothing else helps.
const DEPTHS: std::ops::Range<usize> = 1..8;

/// The view of `text` with its `tree`; none if not even its marker fits.
pub(super) fn cut(text: &str, tree: &Tree<'_>, request: &CutRequest<'_>) -> Option<ShortenedView> {
    RenderAttempt {
        text,
        tree,
        how: request,
    }
    .best()
}

struct RenderAttempt<'a> {
    text: &'a str,
    tree: &'a Tree<'a>,
    how: &'a CutRequest<'a>,
}

impl RenderAttempt<'_> {
    fn best(&self) -> Option<ShortenedView> {
        // Whole strings are worth more than further elements of a list, so strings are shortened
        // only if even a few elements do not fit.
        let few = FEW.min(self.tree.counts.longest);
        if let Some((items, shown)) = self.most_items(usize::MAX)
            && items >= few
        {
            return Some(shown);
        }
        if let Some(shown) = self.long_strings(few) {
            return Some(shown);
        }
        let mut first = None;
        for string in STRINGS {
            let Some((items, shown)) = self.most_items(string) else {
                continue;
            };
            if items >= few {
                return Some(shown);
            }
            // Fewer elements with longer strings is the best result so far. Shorter strings may
            // allow enough elements.
            first = first.or(Some(shown));
        }
        first.or_else(|| self.shallow())
    }

    /// Shows strings as long as possible with a few elements of every list, if they can be longer
    /// than the lengths that are tried last.
    fn long_strings(&self, few: usize) -> Option<ShortenedView> {
        let shortest = STRINGS.first().copied().unwrap_or(0);
        let enough = |string: usize| self.most_items(string).filter(|(items, _)| *items >= few);
        let cap = usize::try_from(self.how.cap.saturating_mul(BYTES_PER_UNIT));
        let mut high = self
            .tree
            .counts
            .longest_string
            .min(cap.unwrap_or(usize::MAX));
        let mut low = high;
        // Halving from the top: the longest string is often much longer than the cap.
        let mut found = loop {
            low /= 2;
            if low < shortest {
                return None;
            }
            match enough(low) {
                Some((_, shown)) => break shown,
                None => high = low,
            }
        };
        for _ in 0..REFINEMENTS {
            let middle = low + (high - low) / 2;
            match enough(middle) {
                Some((_, shown)) => (low, found) = (middle, shown),
                None => high = middle,
            }
        }
        Some(self.by_structure(low).unwrap_or(found))
    }

    /// The same with strings cut by structure, which may take slightly more room.
    fn by_structure(&self, string: usize) -> Option<ShortenedView> {
        let shorter = std::iter::successors(Some(string), |string| Some(string - string / 8));
        shorter.take(STRUCTURE_ATTEMPTS).find_map(|string| {
            let (items, _) = self.most_items(string)?;
            let bounds = RenderLimits::new(items, string);
            self.within(RenderLimits {
                by_structure: true,
                ..bounds
            })
        })
    }

    /// The view if not even one element of every list fits: fewer levels.
    fn shallow(&self) -> Option<ShortenedView> {
        let string = STRINGS.last().copied().unwrap_or(0);
        let to_depth = |items: usize, depth: usize| {
            let bounds = RenderLimits::new(items, string);
            self.within(RenderLimits { depth, ..bounds })
        };
        let shallow = DEPTHS.rev().find_map(|depth| to_depth(1, depth));
        shallow.or_else(|| to_depth(0, 0))
    }

    /// The maximum of elements per list that fit with strings of this length.
    fn most_items(&self, string: usize) -> Option<(usize, ShortenedView)> {
        let mut best = self.within(RenderLimits::new(1, string))?;
        let one = TriedAmount {
            amount: 1,
            size: best.size,
        };
        let none = TriedAmount { amount: 0, size: 0 };
        let high = self.tree.counts.longest.saturating_add(1);
        let items = largest_fitting(one, none, high, self.how.cap, |items| {
            let shown = self.render(RenderLimits::new(items, string))?;
            let size = shown.size;
            // Of the views that fit, each is longer than the one before it.
            if size <= self.how.cap {
                best = shown;
            }
            Some(size)
        });
        Some((items, best))
    }

    fn within(&self, bounds: RenderLimits) -> Option<ShortenedView> {
        self.render(bounds)
            .filter(|shown| shown.size <= self.how.cap)
    }

    /// The view with these limits, which may be too long; none if it is much too long.
    fn render(&self, bounds: RenderLimits) -> Option<ShortenedView> {
        // The measures in use count a unit for at most four bytes, so no longer text can fit.
        let ceiling = self.how.cap.saturating_mul(64);
        let ceiling = usize::try_from(ceiling).unwrap_or(usize::MAX);
        let mut rendered = render::open(self.tree, bounds, ceiling)?;
        let tally = ShownCounts {
            shown: rendered.scalars,
            total: self.tree.counts.scalars,
            noun: "values",
            shown_bytes: rendered.bytes,
            total_bytes: self.text.len(),
            offset: 0,
        };
        rendered.close(&marker::full_marker(&tally, self.how.stored));
        Some(self.how.measured(rendered.text, rendered.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn within(text: &str, cap: u64) -> Value {
        let bytes = |text: &str| text.len() as u64;
        let request = CutRequest {
            cap,
            measure: &bytes,
            stored: None,
        };
        let view = cut(text, &parse(text).unwrap(), &request).unwrap();
        assert!(view.text.len() as u64 <= cap);
        serde_json::from_str(&view.text).unwrap()
    }

    #[test]
    fn a_long_list_says_how_many_are_missing() {
        let all: Vec<u32> = (0..1_000).collect();
        let view = within(&serde_json::to_string(&all).unwrap(), 200);
        let list = view.as_array().unwrap();
        let shown = list.len() - 2;
        assert!(shown > 5);
        assert_eq!(list[shown], format!("[… {} more elements]", 1_000 - shown));
        let marker = list[shown + 1].as_str().unwrap();
        assert!(marker.starts_with(&format!("[trimtab: showing {shown} of 1,000 values (")));
    }

    #[test]
    fn a_long_string_keeps_its_start() {
        let text = serde_json::json!({ "path": "a/b", "content": "word ".repeat(500) }).to_string();
        let view = within(&text, 400);
        assert_eq!(view["path"], "a/b");
        let content = view["content"].as_str().unwrap();
        assert!(content.starts_with("word word ") && content.ends_with(" more bytes]"));
    }

    #[test]
    fn a_long_string_fills_the_cap_with_its_best_lines() {
        let line = |n: usize| match n {
            1_500 => "error: cannot open the file\n".to_owned(),
            _ => format!("line {n} says nothing much\n"),
        };
        let content: String = (0..3_000).map(line).collect();
        let text = serde_json::json!({ "content": content, "path": "a.txt" }).to_string();
        let view = within(&text, 20_000);
        assert_eq!(view["path"], "a.txt");
        let content = view["content"].as_str().unwrap();
        assert!(content.len() > 12_000, "{}", content.len());
        assert!(content.starts_with("line 0 says nothing much\n"));
        assert!(content.contains("error: cannot open the file\n"));
    }

    #[test]
    fn numbers_keep_their_spelling_and_white_space_goes() {
        let text = format!("{{ \"n\": 1.50,\n \"e\": 1E3 {}}}", " ".repeat(400));
        let bytes = |text: &str| text.len() as u64;
        let view = cut(
            &text,
            &parse(&text).unwrap(),
            &CutRequest {
                cap: 200,
                measure: &bytes,
                stored: None,
            },
        )
        .unwrap();
        assert!(view.text.starts_with(
            "{\"n\":1.50,\n\"e\":1E3,\n\"[trimtab]\":\"[trimtab: showing 2 of 2 values"
        ));
    }

    #[test]
    fn deep_nesting_is_left_out_from_below() {
        let text = format!("{}{}{}", "[{\"k\":".repeat(20), "\"x\"", "}]".repeat(20));
        let view = within(&text, 130);
        assert!(view.to_string().contains("more"), "{view}");
    }

    #[test]
    fn a_view_can_be_cut_again_to_less() {
        let members: Vec<String> = (0..300).map(|n| format!("\"k{n}\":{n}")).collect();
        let text = format!("{{{}}}", members.join(","));
        let once = within(&text, 900).to_string();
        let bytes = |text: &str| text.len() as u64;
        let request = CutRequest {
            cap: 300,
            measure: &bytes,
            stored: None,
        };
        let twice = cut(&once, &parse(&once).unwrap(), &request).unwrap().text;
        assert_eq!(twice.matches("\"[trimtab]\":").count(), 1);
        assert_eq!(twice.matches("\"[…]\":").count(), 1);
    }
}
