//! A few fields of an object, found in one pass and without allocating.

use crate::scan::cursor::Cursor;

/// The values of the fields `names` of the object in `json`, as they came; the last one
/// where a name is there twice. None if `json` is not an object.
pub(crate) fn pick<'a, const N: usize>(
    json: &'a str,
    names: [&str; N],
) -> Option<[Option<&'a str>; N]> {
    let mut cursor = Cursor::new(json);
    if cursor.peek() != Some(b'{') {
        return None;
    }
    let mut found = [None; N];
    let mut open = cursor.open().ok()?;
    while let Some(key) = cursor.field(&mut open).ok()? {
        let value = cursor.value().ok()?;
        let place = names.iter().zip(&mut found).find(|(name, _)| key.name == **name);
        if let Some((_, place)) = place {
            *place = Some(value.of(json));
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_in_any_order() {
        let json = r#" {"b": [1, 2], "\u0061": "x", "c": null, "b": 3}"#;
        assert_eq!(pick(json, ["a", "b", "d"]), Some([Some("\"x\""), Some("3"), None]));
        assert_eq!(pick("[]", ["a"]), None);
        assert_eq!(pick("{\"a\": ", ["a"]), None);
    }
}
