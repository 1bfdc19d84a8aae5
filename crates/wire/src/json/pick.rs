//! Finds a few fields of an object in one pass, without allocating.

use super::cursor::JsonCursor;

/// The raw values of the fields `names` of the object in `json`; the last one for duplicates. None
/// if `json` is not an object.
pub(crate) fn pick<'a, const N: usize>(
    json: &'a str,
    names: [&str; N],
) -> Option<[Option<&'a str>; N]> {
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
