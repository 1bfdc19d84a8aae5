//! Servers that cut a prompt and say nothing.
//!
//! Some servers drop the front of a prompt that is too long for them, answer the rest, and
//! report as usage what they kept. An estimate alone proves nothing: it may be off by as much.
//! What proves it are two calls of one conversation between which nothing was rewritten: what
//! was sent only grew, and what the server says it read did not.

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

/// The sent and the reported prompt size of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptReading {
    /// The upstream and the model.
    pub(crate) model_key: (String, String),
    /// How often earlier windows were changed so far.
    pub(crate) decisions: usize,
    /// The sent tokens, by an estimate without calibration.
    pub(crate) sent: u64,
    /// The reported tokens.
    pub(crate) read: u64,
}

impl PromptReading {
    fn follows(&self, before: &Self) -> bool {
        self.model_key == before.model_key && self.decisions == before.decisions
    }
}

/// Adds the next reading of a conversation. Returns the window of the server, if it must have
/// truncated the prompt.
pub(crate) fn next_reading(kept: &mut Option<PromptReading>, now: PromptReading) -> Option<u64> {
    let Some(before) = kept.as_ref().filter(|before| now.follows(before)) else {
        *kept = Some(now);
        return None;
    };
    let grown = now.sent.saturating_sub(before.sent);
    if grown < (before.sent / GROWN.0).max(GROWN.1) {
        // Too little growth to tell. The older reading stays, so that the growth adds up.
        return None;
    }
    let cut = was_cut(before, &now, grown);
    *kept = Some(now);
    cut
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
    use super::*;

    /// The windows that follow from calls, each what was sent and what was read.
    fn found(calls: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut kept = None;
        let reading = |(sent, read): &(u64, u64)| PromptReading {
            model_key: ("u".to_owned(), "m".to_owned()),
            decisions: 0,
            sent: *sent,
            read: *read,
        };
        calls
            .iter()
            .map(|call| next_reading(&mut kept, reading(call)))
            .collect()
    }

    #[test]
    fn a_prompt_that_is_read_no_further_was_cut() {
        let grows = [
            (2_000, 2_100),
            (4_000, 4_000),
            (6_000, 4_096),
            (8_000, 4_090),
        ];
        assert_eq!(found(&grows), [None, None, Some(3_600), Some(3_600)]);
        // At once too long: the second call proves it.
        assert_eq!(
            found(&[(30_000, 8_192), (33_000, 8_192)]),
            [None, Some(7_290)]
        );
        // Small steps add up.
        let small = [
            (10_000, 4_096),
            (10_200, 4_096),
            (10_400, 4_096),
            (10_600, 4_096),
        ];
        assert_eq!(found(&small), [None, None, None, Some(3_600)]);
    }

    #[test]
    fn an_estimate_that_is_off_is_no_proof() {
        assert_eq!(found(&[(10_000, 4_000), (20_000, 8_000)]), [None; 2]);
        assert_eq!(found(&[(10_000, 15_000), (11_000, 16_500)]), [None; 2]);
        // A server that leaves out what it had cached.
        assert_eq!(
            found(&[(5_000, 5_000), (8_000, 2_900), (11_000, 3_000)]),
            [None; 3]
        );
        // The same prompt again, and a shorter one.
        assert_eq!(
            found(&[(9_000, 4_096), (9_000, 4_096), (5_000, 4_096)]),
            [None; 3]
        );
        // Nothing is that small.
        assert_eq!(found(&[(2_000, 900), (4_000, 900)]), [None; 2]);
    }

    #[test]
    fn nothing_follows_across_a_change() {
        let mut kept = None;
        let reading = |decided: usize, sent: u64| PromptReading {
            model_key: ("u".to_owned(), "m".to_owned()),
            decisions: decided,
            sent,
            read: 8_192,
        };
        assert_eq!(next_reading(&mut kept, reading(0, 30_000)), None);
        assert_eq!(next_reading(&mut kept, reading(1, 33_000)), None);
        let other = PromptReading {
            model_key: ("u".to_owned(), "other".to_owned()),
            ..reading(1, 36_000)
        };
        assert_eq!(next_reading(&mut kept, other), None);
    }
}
