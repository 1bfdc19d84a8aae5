//! Finds a few fields of an object in one pass, without allocating.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::cursor::JsonCursor;

/// The raw values of the fields `names` of the object in `json`; the last one for duplicates. None
/// if `json` is not an object.
///
/// ```
/// let json = r#"{"type": "error", "error": {"code": 1}}"#;
/// let picked = trimtab_wire::json::pick(json, ["type", "usage"]);
/// assert_eq!(picked, Some([Some("\"error\""), None]));
/// ```
pub fn pick<'a, const N: usize>(json: &'a str, names: [&str; N]) -> Option<[Option<&'a str>; N]> {
    let mut cursor = JsonCursor::new(json);
    if cursor.peek() != Some(b'{') {
        return None;
    }
    let mut found = [None; N];
    let mut open = cursor.open().ok()?;
    while let Some(key) = cursor.field(&mut open).ok()? {
        let value = cursor.value().ok()?;
        let place = names
            .iter()
            .zip(&mut found)
            .find(|(name, _)| key.name == **name);
        if let Some((_, place)) = place {
            *place = Some(value.of(json));
        }
    }
    Some(found)
}

/// The raw elements of the list in `json`; empty if it is not a list.
pub(crate) fn elements(json: &str) -> impl Iterator<Item = &str> {
    let mut cursor = JsonCursor::new(json);
    let is_list = cursor.peek() == Some(b'[');
    let mut open = cursor.open().ok().filter(|_| is_list);
    std::iter::from_fn(move || {
        let more = cursor.more(open.as_mut()?).unwrap_or(false);
        let value = more.then(|| cursor.value().ok()).flatten();
        // After an error the cursor is at an undefined place, so the iteration must not go on.
        if value.is_none() {
            open = None;
        }
        value.map(|value| value.of(json))
    })
}

/// The text of `json`, if it is a string.
pub(crate) fn unquoted(json: &str) -> Option<Cow<'_, str>> {
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(inner.into());
    }
    super::text(serde_json::from_str::<&RawValue>(json).ok()?)
}

/// The text of `json`, owned.
pub(crate) fn text_of(json: Option<&str>) -> Option<String> {
    unquoted(json?).map(Cow::into_owned)
}

/// The number in `json`, if it is one.
pub(crate) fn number(json: Option<&str>) -> Option<u64> {
    json?.parse().ok()
}

/// `json`, unless it is `null`.
pub(crate) fn non_null(json: Option<&str>) -> Option<&str> {
    json.filter(|json| *json != "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_any_order() {
        let json = r#" {"b": [1, 2], "\u0061": "x", "c": null, "b": 3}"#;
        assert_eq!(
            pick(json, ["a", "b", "d"]),
            Some([Some("\"x\""), Some("3"), None])
        );
        assert_eq!(elements("[1, {\"a\": []} ,\"x\"]").count(), 3);
        assert_eq!(elements("{}").count(), 0);
        assert_eq!(pick("[]", ["a"]), None);
        assert_eq!(pick("{\"a\": ", ["a"]), None);
    }
}
