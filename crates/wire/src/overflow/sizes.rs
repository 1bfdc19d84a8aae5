//! Extracts the figures of an error text.

use serde::{Deserialize, Serialize};

use super::echo::Echo;
use super::kind::OverflowKind;
use super::pattern::OverflowPattern;

/// The figures of an error text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ErrorSizes {
    /// The limit.
    pub limit: Option<u64>,
    /// The size that was sent, including the requested answer if the text says so.
    pub actual: Option<u64>,
    /// The size of the prompt.
    pub prompt: Option<u64>,
    /// The requested answer.
    pub answer: Option<u64>,
    /// The excess.
    pub excess: Option<u64>,
}

impl ErrorSizes {
    /// The excess, stated or computed.
    pub fn excess(&self) -> Option<u64> {
        let over = || {
            self.actual?
                .checked_sub(self.limit?)
                .filter(|over| *over > 0)
        };
        self.excess.or_else(over)
    }
}

/// A pattern with the named groups `limit`, `actual`, `prompt`, `answer`, `excess`, and `chars`,
/// `chars_limit`, `chars_tokens` for servers that count before tokenising.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SizePattern {
    pub(super) pattern: OverflowPattern,
    /// True if the figures of all matches are added up.
    #[serde(default)]
    sum: bool,
}

/// The first match of each figure.
#[derive(Default)]
struct FoundSizes {
    sizes: ErrorSizes,
    chars: Option<u64>,
    chars_limit: Option<u64>,
    chars_tokens: Option<u64>,
}

impl FoundSizes {
    fn slot(&mut self, name: &str) -> Option<&mut Option<u64>> {
        Some(match name {
            "limit" => &mut self.sizes.limit,
            "actual" => &mut self.sizes.actual,
            "prompt" => &mut self.sizes.prompt,
            "answer" => &mut self.sizes.answer,
            "excess" => &mut self.sizes.excess,
            "chars" => &mut self.chars,
            "chars_limit" => &mut self.chars_limit,
            "chars_tokens" => &mut self.chars_tokens,
            _ => return None,
        })
    }

    /// Takes the figures of a pattern that are still missing, and are not repeated from the request.
    fn take(&mut self, figure: &SizePattern, text: &str, echo: &Echo<'_>) {
        // Most patterns do not occur in most texts, which is cheap to check.
        let Some(regex) = figure
            .pattern
            .regex()
            .filter(|regex| regex.is_match(text.as_bytes()))
        else {
            return;
        };
        for name in regex.capture_names().flatten() {
            let found = regex.captures_iter(text.as_bytes());
            let found =
                found.filter(|found| !echo.has(found.get(0).map_or(b"", |all| all.as_bytes())));
            let mut numbers = found.filter_map(|found| number(found.name(name)?.as_bytes()));
            let value = if figure.sum {
                numbers.reduce(u64::saturating_add)
            } else {
                numbers.next()
            };
            if let Some(slot) = self.slot(name) {
                *slot = slot.or(value);
            }
        }
    }

    /// The prompt in tokens, computed from its characters if only those were counted.
    fn estimated_prompt(&self) -> Option<u64> {
        let tokens = u128::from(self.chars?).checked_mul(u128::from(self.chars_tokens?))?;
        u64::try_from(tokens.checked_div(u128::from(self.chars_limit?))?).ok()
    }
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Extracts the figures, and decides by them whether prompt, answer or both are too large.
pub(super) fn measure(
    figures: &[SizePattern],
    text: &str,
    kind: OverflowKind,
    echo: &Echo<'_>,
) -> (OverflowKind, ErrorSizes) {
    let mut found = FoundSizes::default();
    for figure in figures {
        found.take(figure, text, echo);
    }
    let prompt = found.sizes.prompt.or_else(|| found.estimated_prompt());
    let mut sizes = found.sizes;
    if let (Some(prompt), Some(answer)) = (sizes.prompt, sizes.answer) {
        sizes.actual = Some(prompt.saturating_add(answer));
    }
    sizes.actual = sizes.actual.or(sizes.prompt);
    // One figure cannot have two meanings: the more specific pattern came first.
    sizes.limit = sizes.limit.filter(|limit| sizes.excess != Some(*limit));
    sizes.actual = sizes.actual.filter(|actual| sizes.limit != Some(*actual));
    (settle(kind, &sizes, prompt), sizes)
}

/// Figures override words: which of the two is too large is arithmetic.
fn settle(kind: OverflowKind, sizes: &ErrorSizes, prompt: Option<u64>) -> OverflowKind {
    let (OverflowKind::Prompt | OverflowKind::PromptAndAnswer, Some(limit)) = (kind, sizes.limit)
    else {
        return kind;
    };
    match (prompt, sizes.answer) {
        // A prompt that fills the window leaves no room for any answer, so a shorter answer does
        // not help.
        (Some(prompt), _) if prompt >= limit => OverflowKind::Prompt,
        (_, Some(answer)) if answer >= limit => OverflowKind::AnswerLimit,
        (Some(prompt), Some(answer)) if prompt.saturating_add(answer) > limit => {
            OverflowKind::PromptAndAnswer
        }
        _ => kind,
    }
}
