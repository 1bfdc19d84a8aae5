//! Wrong tokens are answered slowly.
//!
//! Only the answer to a wrong token waits. A right token is answered at once, so nobody is
//! locked out by others who share their address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::refusal::AccessRefusal;

/// The number of wrong tokens that are answered without a delay, for typing errors.
const FREE: u32 = 3;
/// The first wait; it doubles with every wrong token.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// The maximum number of doublings; it suffices to reach the longest wait.
const DOUBLINGS: u32 = 6;
/// The maximum number of delayed answers per address; more are refused at once.
const WAITING: u32 = 4;
/// After this time without a wrong token an address begins anew.
const FORGOTTEN_AFTER: Duration = Duration::from_mins(10);
/// How many addresses are remembered; the oldest are forgotten first.
const ADDRESSES: usize = 1_024;

/// Addresses that presented wrong tokens.
#[derive(Default)]
pub(crate) struct WrongTokens(Arc<Mutex<HashMap<IpAddr, WrongTokenCount>>>);

/// What is known of one address.
struct WrongTokenCount {
    count: u32,
    waiting: u32,
    last: Instant,
}

/// An answer that waits.
struct WaitingAnswer {
    all: Arc<Mutex<HashMap<IpAddr, WrongTokenCount>>>,
    address: IpAddr,
}

impl WrongTokens {
    /// Counts a wrong token, waits according to its address, and returns the refusal.
    pub(super) async fn answer(&self, peer: IpAddr) -> AccessRefusal {
        match self.begin(network(peer), Instant::now()) {
            Some((wait, waiting)) => {
                tokio::time::sleep(wait).await;
                // Held until here. If the client goes away during the wait, it is dropped with the
                // future and frees its place as well.
                drop(waiting);
                AccessRefusal::token()
            }
            None => AccessRefusal::too_many_wrong_tokens(),
        }
    }

    /// The delay of the answer; none if too many answers to this address are waiting.
    fn begin(&self, address: IpAddr, now: Instant) -> Option<(Duration, WaitingAnswer)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        forget(&mut all, now);
        let from = all.entry(address).or_insert(WrongTokenCount {
            count: 0,
            waiting: 0,
            last: now,
        });
        from.count = from.count.saturating_add(1);
        from.last = now;
        // A refusal at once also counts as a wrong token. Answers that wait hold a connection each,
        // so their number per address is limited.
        if from.waiting >= WAITING {
            return None;
        }
        from.waiting += 1;
        let wait = wait_after(from.count);
        let waiting = WaitingAnswer {
            all: Arc::clone(&self.0),
            address,
        };
        Some((wait, waiting))
    }
}

impl Drop for WaitingAnswer {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(from) = all.get_mut(&self.address) {
            from.waiting = from.waiting.saturating_sub(1);
        }
    }
}

fn wait_after(count: u32) -> Duration {
    match count.checked_sub(FREE + 1) {
        None => Duration::ZERO,
        Some(further) => (FIRST_WAIT * (1 << further.min(DOUBLINGS))).min(LONGEST_WAIT),
    }
}

/// Makes room for one more address: removes old ones, or the oldest one.
fn forget(all: &mut HashMap<IpAddr, WrongTokenCount>, now: Instant) {
    if all.len() < ADDRESSES {
        return;
    }
    all.retain(|_, from| now.duration_since(from.last) < FORGOTTEN_AFTER);
    if all.len() < ADDRESSES {
        return;
    }
    let oldest = all.iter().min_by_key(|(_, from)| from.last);
    if let Some(address) = oldest.map(|(address, _)| *address) {
        all.remove(&address);
    }
}

/// The network of an address. Whoever has one IPv6 address usually has 2^64 of them, and could
/// use another one for every guess.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(long) => {
            let [a, b, c, d, ..] = long.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        short @ IpAddr::V4(_) => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u32) -> IpAddr {
        IpAddr::from(last.to_be_bytes())
    }

    #[test]
    fn waits_grow_and_end() {
        assert_eq!(wait_after(FREE), Duration::ZERO);
        assert_eq!(wait_after(FREE + 1), FIRST_WAIT);
        assert_eq!(wait_after(FREE + 2), FIRST_WAIT * 2);
        assert_eq!(wait_after(u32::MAX), LONGEST_WAIT);
    }

    #[test]
    fn one_address_waits_with_few_answers() {
        let wrong = WrongTokens::default();
        let now = Instant::now();
        let waiting: Vec<_> = (0..WAITING).map(|_| wrong.begin(address(1), now)).collect();
        assert!(waiting.iter().all(Option::is_some));
        assert!(wrong.begin(address(1), now).is_none());
        assert!(wrong.begin(address(2), now).is_some());
        drop(waiting);
        assert!(wrong.begin(address(1), now).is_some());
    }

    #[test]
    fn few_addresses_are_remembered() {
        let wrong = WrongTokens::default();
        let start = Instant::now();
        for at in 0..5_000 {
            let now = start + Duration::from_millis(u64::from(at));
            drop(wrong.begin(address(at), now));
        }
        assert!(wrong.0.lock().unwrap().len() <= ADDRESSES);
    }

    #[test]
    fn a_network_is_one_address() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }
}
