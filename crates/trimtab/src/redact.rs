//! Removes passwords from addresses in texts.

use std::borrow::Cow;

/// Replaces a user and a password.
const HIDDEN: &str = "***";

/// `text` with the user and the password of every URL in it hidden.
///
/// ```
/// use trimtab::redact::redact_urls;
///
/// let text = "cannot reach http://me:secret@host:80/v1: refused";
/// assert_eq!(redact_urls(text), "cannot reach http://***@host:80/v1: refused");
/// assert_eq!(redact_urls("https://host/model@latest"), "https://host/model@latest");
/// ```
pub fn redact_urls(text: &str) -> Cow<'_, str> {
    const SCHEME_END: &str = "://";
    let mut shown = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(SCHEME_END) {
        shown.push_str(before);
        shown.push_str(SCHEME_END);
        rest = match user_info(after) {
            Some(host) => {
                shown.push_str(HIDDEN);
                host
            }
            None => after,
        };
    }
    if shown.is_empty() {
        return Cow::Borrowed(text);
    }
    shown.push_str(rest);
    Cow::Owned(shown)
}

/// `text`, an address, without user and password, even if its scheme is missing.
///
/// ```
/// use trimtab::redact::redact_address;
///
/// assert_eq!(redact_address("me:secret@proxy:3128"), "***@proxy:3128");
/// ```
pub fn redact_address(text: &str) -> String {
    if text.contains("://") {
        return redact_urls(text).into_owned();
    }
    match text.rsplit_once('@') {
        Some((_, host)) => format!("{HIDDEN}@{host}"),
        None => text.to_owned(),
    }
}

/// The rest of an address from the `@` after its user and password; none if it has neither.
fn user_info(address: &str) -> Option<&str> {
    let is_end =
        |found: char| found.is_whitespace() || matches!(found, '"' | '\'' | '`' | '<' | '>');
    let word = address.split(is_end).next().unwrap_or_default();
    let authority = word.split(['/', '?', '#']).next().unwrap_or_default();
    // A password may contain a slash or another character that ends an authority. Then the text
    // after the colon is not a port, and the last `@` of the whole word counts.
    let port = authority.split_once(':').map(|(_, port)| port);
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_whole = authority.contains('@') || port.is_none_or(is_port);
    let searched = if is_whole { authority } else { word };
    let at = searched.rfind('@')?;
    address.get(at..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_password_is_shown() {
        for (text, expected) in [
            ("http://user:secret@host", "http://***@host"),
            ("http://user:secret@host:1/a@b", "http://***@host:1/a@b"),
            ("http://secret@host?q=a@b", "http://***@host?q=a@b"),
            ("http://user:p@secret@host/", "http://***@host/"),
            ("http://user:sec/ret@host/", "http://***@host/"),
            ("http://user:sec#ret@host/", "http://***@host/"),
            (
                "\"http://u:secret@h\" and 'https://u:secret@i'",
                "\"http://***@h\" and 'https://***@i'",
            ),
            ("http://[::1]:80/x", "http://[::1]:80/x"),
            ("a@b without an address", "a@b without an address"),
            ("https://h/claude@2024", "https://h/claude@2024"),
        ] {
            assert_eq!(redact_urls(text), expected);
        }
    }
}
