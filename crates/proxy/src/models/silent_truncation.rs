//! Servers that cut a prompt and say nothing.
//!
//! Some servers drop the front of a prompt that is too long for them, answer the rest, and
//! report as usage what they kept. An estimate alone proves nothing: it may be off by as much.
//! What proves it are two calls of one conversation between which nothing was rewritten: what
//! was sent only grew, and what the server says it read did not.

/// Below this nothing is judged, in tokens: no server in use has a smaller window.
const LEAST: u64 = 1_800;
/// By how much what was sent must have grown: a share of it, as a divisor, and at least so many
/// tokens. Framing and rounding are less.
const GROWN: (u64, u64) = (20, 256);
/// The share of the growth, as a divisor, that the server may have read nevertheless.
const READ: u64 = 8;
/// How much of what the server kept is taken as its window: it may have kept a little less
/// than it could, and our estimates may be a little low.
const SURE_PERCENT: u64 = 90;

/// What was sent in a call, and what the server says it read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PromptReading {
    /// The upstream and the model.
    pub(crate) model_key: (String, String),
    /// How often what was sent before was changed so far.
    pub(crate) decisions: usize,
    /// What was sent, by an estimate that learns nothing on the way.
    pub(crate) sent: u64,
    /// What the server says it read.
    pub(crate) read: u64,
}

impl PromptReading {
    fn follows(&self, before: &Self) -> bool {
        self.model_key == before.model_key && self.decisions == before.decisions
    }
}

/// Takes the next reading of a conversation; gives the window that the server must have, if it
/// cut what it was sent.
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
