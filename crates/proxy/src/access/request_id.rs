//! The id of a request, by which people find it in all logs.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;

/// The header with a client's own id.
const CLIENT_HEADER: &str = "x-request-id";
/// The longest client id that is used.
const LONGEST: usize = 128;

/// The client's own id if it is well-formed, else a new one.
pub(crate) fn for_request(headers: &HeaderMap) -> String {
    let mut given = headers.get_all(CLIENT_HEADER).iter();
    // Of two ids, nobody could say which one the client's log shows.
    let given = match (given.next(), given.next()) {
        (Some(one), None) => one.to_str().ok().filter(|id| is_well_formed(id)),
        _ => None,
    };
    given.map_or_else(new_id, str::to_owned)
}

fn is_well_formed(id: &str) -> bool {
    // The id goes into logs and headers, so it must not be able to forge a line or a field.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    !id.is_empty() && id.len() <= LONGEST && id.bytes().all(is_plain)
}

fn new_id() -> String {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    // A number, hashed with random keys of this process: asking the system for randomness at every
    // request would cost more, and nothing but logs depends on these ids.
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let [one, other] = [0_u8, 1].map(|half| KEYS.hash_one((number, half)));
    format!("tt-{one:016x}{other:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn only_plain_ids_are_taken_over() {
        let taken = |id: &str| {
            let id = HeaderValue::from_str(id).unwrap();
            let name = http::HeaderName::from_static(CLIENT_HEADER);
            for_request(&HeaderMap::from_iter([(name, id)]))
        };
        assert_eq!(taken("req_0-1.a:b"), "req_0-1.a:b");
        for bad in ["", "a b", "a\"b", "{}", &"x".repeat(129)] {
            assert!(taken(bad).starts_with("tt-"), "{bad}");
        }
        assert_ne!(
            for_request(&HeaderMap::new()),
            for_request(&HeaderMap::new())
        );
    }
}
