//! The headers that carry a key to a provider.

use trimtab_model::Dialect;

/// The API version that Messages requires.
const MESSAGES_VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// The headers that a request of `dialect` needs in addition to its content type. With a key, the
/// last one carries it.
///
/// ```
/// use trimtab_model::Dialect;
/// use trimtab_wire::auth::key_headers;
///
/// let headers = key_headers(Dialect::Chat, Some("sk-1"));
/// assert_eq!(headers, [("authorization", "Bearer sk-1".to_owned())]);
/// ```
pub fn key_headers(dialect: Dialect, key: Option<&str>) -> Vec<(&'static str, String)> {
    let is_messages = dialect == Dialect::Messages;
    let version = is_messages.then(|| (MESSAGES_VERSION.0, MESSAGES_VERSION.1.to_owned()));
    let key = key.map(|key| {
        if is_messages {
            ("x-api-key", key.to_owned())
        } else {
            ("authorization", format!("Bearer {key}"))
        }
    });
    version.into_iter().chain(key).collect()
}
