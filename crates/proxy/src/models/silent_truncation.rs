//! Servers that cut a prompt and say nothing.
//!
//! Some servers drop the front of a prompt that is too long for them, answer the rest, and
//! report as usage what they kept. An estimate alone proves nothing: it may be off by as much.
//! What proves it are three calls of one conversation between which nothing was rewritten: what
//! was sent only grew, and what the server says it read did not, twice. Prompts with images and
//! other parts whose size is a guess prove nothing.

use super::learned::OwnedModelKey;

/// The smallest window that is detected, in tokens. No server in use has a smaller one.
const LEAST: u64 = 1_800;
/// The minimum growth of a prompt: a share of it, as a divisor, and a number of tokens. Framing and
/// rounding stay below.
const GROWN: (u64, u64) = (20, 256);
/// The maximum share of the growth, as a divisor, that the server may have read.
const READ: u64 = 8;
/// The percentage of the kept prompt that is taken as the window, to allow for rounding and for
/// errors of our estimate.
const SURE_PERCENT: u64 = 90;

/// How far the windows that two pairs of calls suggest may differ, as a divisor.
const SAME: u64 = 10;

/// The sent and the reported prompt size of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptReading {
    /// Under which key something is learned about its model.
    pub(crate) model_key: OwnedModelKey,
    /// How often earlier windows were changed so far.
    pub(crate) decisions: usize,
    /// The sent tokens, by an estimate without calibration.
    pub(crate) sent: u64,
    /// The reported tokens.
    pub(crate) read: u64,
}

/// What a reading says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptCheck {
    /// The whole prompt was read, as far as one can tell.
    Whole,
    /// The prompt may have been truncated. Only the next calls can show it.
    Suspicious,
    /// The server truncates prompts, and this is its window.
    Truncated(u64),
}

/// The readings of a conversation.
#[derive(Debug, Default)]
pub(crate) struct TruncationWatch {
    last: Option<PromptReading>,
    /// The window that the last readings suggested. It is believed when it is suggested again.
    suspected: Option<u64>,
}

impl PromptReading {
    fn follows(&self, before: &Self) -> bool {
        self.model_key == before.model_key && self.decisions == before.decisions
    }
}

impl TruncationWatch {
    /// Adds the next reading of the conversation.
    pub(crate) fn next_reading(&mut self, now: PromptReading) -> PromptCheck {
        let Some(before) = self.last.as_ref().filter(|before| now.follows(before)) else {
            *self = Self {
                last: Some(now),
                suspected: None,
            };
            return PromptCheck::Whole;
        };
        let grown = now.sent.saturating_sub(before.sent);
        if grown < (before.sent / GROWN.0).max(GROWN.1) {
            // Too little growth to tell. The older reading stays, so that the growth adds up.
            return PromptCheck::Whole;
        }
        let window = was_cut(before, &now, grown);
        self.last = Some(now);
        let earlier = std::mem::replace(&mut self.suspected, window);
        match (window, earlier) {
            (None, _) => PromptCheck::Whole,
            (Some(window), Some(earlier)) if window.abs_diff(earlier) <= earlier / SAME => {
                PromptCheck::Truncated(window)
            }
            (Some(_), _) => PromptCheck::Suspicious,
        }
    }
}

fn was_cut(before: &PromptReading, now: &PromptReading, grown: u64) -> Option<u64> {
    let most = now.read.max(before.read);
    let stands_still = now.read <= before.read.saturating_add(grown / READ);
    // The server read clearly less than was sent, even if the estimate is a tenth too high.
    let is_less = now.read < now.sent - now.sent / 10;
    // Some servers do not count what they had cached: they report only the new part, or far less.
    let only_new = now.read.abs_diff(grown) < grown / 2 || now.read < before.read / 2;
    let cut = stands_still && is_less && !only_new && most >= LEAST;
    cut.then(|| most / 100 * SURE_PERCENT)
}

#[cfg(test)]
mod tests {
    use super::PromptCheck::{Suspicious, Truncated, Whole};
    use super::*;

    fn reading(decisions: usize, sent: u64, read: u64) -> PromptReading {
        PromptReading {
            model_key: ["t", "u", "m"].map(str::to_owned),
            decisions,
            sent,
            read,
        }
    }

    /// What follows from calls, each what was sent and what was read.
    fn found(calls: &[(u64, u64)]) -> Vec<PromptCheck> {
        let mut watch = TruncationWatch::default();
        let calls = calls.iter();
        let checked = calls.map(|(sent, read)| watch.next_reading(reading(0, *sent, *read)));
        checked.collect()
    }

    #[test]
    fn a_prompt_that_is_read_no_further_twice_was_truncated() {
        let grows = [
            (2_000, 2_100),
            (4_000, 4_000),
            (6_000, 4_096),
            (8_000, 4_090),
        ];
        assert_eq!(found(&grows), [Whole, Whole, Suspicious, Truncated(3_600)]);
        // The first prompt is too long already.
        let long = [(30_000, 8_192), (33_000, 8_192), (36_000, 8_192)];
        assert_eq!(found(&long), [Whole, Suspicious, Truncated(7_290)]);
        // Small steps add up.
        let small = (0..7).map(|step| (10_000 + 200 * step, 4_096));
        let small: Vec<(u64, u64)> = small.collect();
        let expected = [
            Whole,
            Whole,
            Whole,
            Suspicious,
            Whole,
            Whole,
            Truncated(3_600),
        ];
        assert_eq!(found(&small), expected);
    }

    #[test]
    fn one_strange_figure_is_no_proof() {
        let once = [
            (4_000, 4_000),
            (6_000, 4_000),
            (8_000, 8_000),
            (10_000, 8_000),
        ];
        assert_eq!(found(&once), [Whole, Suspicious, Whole, Suspicious]);
        // Two suspicions of different windows do not agree.
        let different = [(9_000, 8_192), (12_000, 8_192), (40_000, 11_000)];
        assert_eq!(found(&different), [Whole, Suspicious, Suspicious]);
    }

    #[test]
    fn an_estimate_that_is_off_is_no_proof() {
        assert_eq!(found(&[(10_000, 4_000), (20_000, 8_000)]), [Whole; 2]);
        assert_eq!(found(&[(10_000, 15_000), (11_000, 16_500)]), [Whole; 2]);
        // A server that leaves out what it had cached.
        assert_eq!(
            found(&[(5_000, 5_000), (8_000, 2_900), (11_000, 3_000)]),
            [Whole; 3]
        );
        // The same prompt again, and a shorter one.
        assert_eq!(
            found(&[(9_000, 4_096), (9_000, 4_096), (5_000, 4_096)]),
            [Whole; 3]
        );
        // No server has so small a window.
        assert_eq!(found(&[(2_000, 900), (4_000, 900)]), [Whole; 2]);
    }

    #[test]
    fn nothing_follows_across_a_change() {
        let mut watch = TruncationWatch::default();
        assert_eq!(watch.next_reading(reading(0, 30_000, 8_192)), Whole);
        assert_eq!(watch.next_reading(reading(0, 33_000, 8_192)), Suspicious);
        assert_eq!(watch.next_reading(reading(1, 36_000, 8_192)), Whole);
        let other = PromptReading {
            model_key: ["t", "u", "other"].map(str::to_owned),
            ..reading(1, 39_000, 8_192)
        };
        assert_eq!(watch.next_reading(other), Whole);
    }
}
