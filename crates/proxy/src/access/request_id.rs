//! The id of a request, by which people find it in all logs.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderMap;

/// The header with a client's own id.
const CLIENT_HEADER: &str = "x-request-id";
/// The length of our own ids after their prefix, in hexadecimal digits: 128 bits.
const LENGTH: usize = 32;
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
    // The system is asked for randomness once, because every question is a system call.
    static KEY: LazyLock<[u8; 32]> = LazyLock::new(|| {
        let mut random = [0; 32];
        // If it gives none, ids are not unique. Nothing but logs depends on them.
        getrandom::fill(&mut random).unwrap_or(());
        random
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let hash = blake3::keyed_hash(&KEY, &count.to_le_bytes());
    format!("tt-{:.LENGTH$}", hash.to_hex().as_str())
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
