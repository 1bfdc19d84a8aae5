//! Normalises the text of an error.

/// The text in lower case, without escapes, addresses and thousands separators, one sentence per
/// line.
pub(super) fn clean(text: &str) -> String {
    let lower = unescape(text).to_lowercase();
    let joined = join_thousands(&lower);
    let mut clean = String::with_capacity(joined.len());
    for word in joined.split_inclusive(|c: char| c.is_whitespace()) {
        push_word(&mut clean, word);
    }
    clean.truncate(clean.trim_end().len());
    clean
}

fn push_word(clean: &mut String, word: &str) {
    let ends_line = word.ends_with('\n');
    let word = without_address(word.trim_end());
    if word.is_empty() {
        if ends_line && !clean.is_empty() {
            clean.push('\n');
        }
        return;
    }
    // The full stop, exclamation mark and question mark of Chinese and Japanese.
    clean.push_str(&word.replace(['\u{3002}', '\u{ff01}', '\u{ff1f}'], "\n"));
    let ends_sentence = word.ends_with(['.', '!', '?']);
    clean.push(if ends_line || ends_sentence {
        '\n'
    } else {
        ' '
    });
}

/// Addresses contain words such as `context-window-size` that say nothing about the error.
fn without_address(word: &str) -> &str {
    word.split_once("://").map_or(word, |(before, _)| {
        before.trim_end_matches(|c: char| c.is_ascii_alphanumeric())
    })
}

/// Removes one or more levels of JSON escapes in a text that is not JSON itself.
fn unescape(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            plain.push(c);
            continue;
        }
        // Errors that were wrapped several times have several backslashes before one escape.
        while chars.next_if_eq(&'\\').is_some() {}
        match chars.next() {
            Some('n' | 'r') => plain.push('\n'),
            Some('t') => plain.push(' '),
            Some('u') => {
                let code: String = std::iter::from_fn(|| chars.next_if(char::is_ascii_hexdigit))
                    .take(4)
                    .collect();
                let c = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                plain.push(c.unwrap_or(' '));
            }
            Some(other) => plain.push(other),
            None => {}
        }
    }
    plain
}

/// `128,000` and `128_000` become `128000`, and `128k` too.
fn join_thousands(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let mut ahead = text.chars();
    let mut digits: usize = 0;
    while let Some(c) = chars.next() {
        ahead.next();
        if is_separator(c) && (1..=3).contains(&digits) && group_follows(ahead.clone()) {
            // The next group has three digits again: stay within the number.
            digits = 0;
            continue;
        }
        let next = chars.peek().copied();
        // A `k` inside a word or a hexadecimal id is no multiplier.
        if c == 'k' && (1..=4).contains(&digits) && !next.is_some_and(char::is_alphanumeric) {
            joined.push_str("000");
            digits = 0;
            continue;
        }
        digits = if c.is_ascii_digit() { digits + 1 } else { 0 };
        joined.push(c);
    }
    joined
}

fn is_separator(c: char) -> bool {
    matches!(c, ',' | '_' | '\'' | '\u{2019}' | '\u{a0}' | '\u{202f}')
}

fn group_follows(mut ahead: std::str::Chars<'_>) -> bool {
    let three = (0..3).all(|_| ahead.next().is_some_and(|c| c.is_ascii_digit()));
    three && !ahead.next().is_some_and(|c| c.is_ascii_digit())
}

/// The text of an HTML page: without tags, scripts and styles.
pub(super) fn without_tags(html: &str) -> String {
    let mut text = String::with_capacity(html.len());
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        text.push('\n');
        // Only the first letters are compared. A copy of the rest for every tag would make this
        // quadratic.
        let name = tag.trim_start().as_bytes();
        let is_named = |wanted: &[u8]| {
            let begin = name.get(..wanted.len());
            begin.is_some_and(|begin| begin.eq_ignore_ascii_case(wanted))
        };
        let end = if is_named(b"script") {
            "</script>"
        } else if is_named(b"style") {
            "</style>"
        } else {
            ">"
        };
        rest = tag.split_once(end).map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_become_one() {
        for (text, expected) in [
            (
                "Limit is 40,000. Used 1_234_567",
                "limit is 40000.\nused 1234567",
            ),
            ("128k of 8K, 2013k1", "128000 of 8000, 2013k1"),
            ("a 1,2 and 12,3456", "a 1,2 and 12,3456"),
            (r#"{\"m\": \"too\nlong\"}"#, "{\"m\": \"too\nlong\"}"),
            (r"\\u8d85\u957f", "超长"),
            ("see https://x.y/context-window now", "see now"),
            ("\\", ""),
            ("\\u", ""),
        ] {
            assert_eq!(clean(text), expected, "{text}");
        }
    }

    #[test]
    fn tags_and_scripts_go() {
        let page = "<html><script>var a = 'x';</script><h1>413 Too Large</h1>";
        assert_eq!(
            without_tags(page).split_whitespace().collect::<Vec<_>>(),
            ["413", "Too", "Large"]
        );
        assert_eq!(without_tags("a < b"), "a \n");
        assert_eq!(
            without_tags("<SCRIPT>x</script> a < Style>y</style>b"),
            "\n a \nb"
        );
    }
}
