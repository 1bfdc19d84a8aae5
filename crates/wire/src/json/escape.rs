//! Unescapes JSON strings in one pass.

/// Unescapes the inside of a valid JSON string.
///
/// A lone surrogate, which some agents write when they cut a text, becomes U+FFFD.
pub(super) fn unescape(inner: &str) -> String {
    let mut text = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escaped) = rest.split_at_checked(at).unwrap_or((rest, ""));
        text.push_str(plain);
        rest = one(escaped, &mut text);
    }
    text.push_str(rest);
    text
}

/// Unescapes one escape, and returns the rest.
fn one<'a>(escaped: &'a str, text: &mut String) -> &'a str {
    let mut rest = escaped.chars();
    rest.next();
    match rest.next() {
        Some('n') => text.push('\n'),
        Some('t') => text.push('\t'),
        Some('r') => text.push('\r'),
        Some('b') => text.push('\u{8}'),
        Some('f') => text.push('\u{c}'),
        Some('u') => return code_unit(rest.as_str(), text),
        Some(itself) => text.push(itself),
        None => {}
    }
    rest.as_str()
}

/// Unescapes four hex digits, and the second half of a pair if there is one.
fn code_unit<'a>(digits: &'a str, text: &mut String) -> &'a str {
    let (first, behind) = hex(digits);
    let pair = behind.strip_prefix("\\u").map(hex);
    // Characters outside the basic plane are written as two escapes, a surrogate pair.
    if let (0xD800..=0xDBFF, Some((second @ 0xDC00..=0xDFFF, behind))) = (first, pair) {
        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        text.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
        return behind;
    }
    // The second escape was only looked at. It is not consumed here, because it may stand for
    // itself.
    text.push(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER));
    behind
}

fn hex(digits: &str) -> (u32, &str) {
    let (four, behind) = digits.split_at_checked(4).unwrap_or((digits, ""));
    let code = u32::from_str_radix(four, 16);
    (
        code.unwrap_or(u32::from(char::REPLACEMENT_CHARACTER)),
        behind,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_escape_is_known() {
        let inner = r#"a\nb\tc\rd\be\ff\/g\\h\"i\u00e9j\ud83d\ude00k"#;
        let parsed: String = serde_json::from_str(&format!("\"{inner}\"")).unwrap();
        assert_eq!(unescape(inner), parsed);
    }

    #[test]
    fn half_pairs_are_replaced() {
        assert_eq!(unescape(r"\ud83d"), "\u{FFFD}");
        assert_eq!(unescape(r"\ude00x"), "\u{FFFD}x");
        assert_eq!(unescape(r"\ud83d\u0041"), "\u{FFFD}A");
        assert_eq!(unescape(r"\ud83d\ud83d\ude00"), "\u{FFFD}\u{1F600}");
    }

    proptest! {
        #[test]
        fn it_gives_what_a_parser_gives(text in any::<String>()) {
            let quoted = serde_json::to_string(&text).unwrap();
            let inner = quoted.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            prop_assert_eq!(unescape(inner), text);
        }
    }
}
