//! Parses model names.

/// The name without surrounding white space and without a client's suffix such as `[1m]`.
pub(super) fn trimmed(name: &str) -> &str {
    let name = name.trim();
    match name
        .strip_suffix(']')
        .and_then(|rest| rest.rsplit_once('['))
    {
        Some((name, _)) if !name.is_empty() => name,
        _ => name,
    }
}

/// The name without a date, a version of the packaging or `latest` at its end.
///
/// `claude-opus-4-5-20251101`, `gpt-5.4-2026-03-05`, `claude-opus-4-5@20251101`,
/// `anthropic.claude-opus-4-5-20251101-v1:0`, `gpt-5-chat-latest`.
pub(super) fn undated(name: &str) -> Option<&str> {
    let mut rest = name;
    if let Some((before, digits)) = rest.rsplit_once(':')
        && digits.len() <= 2
        && is_digits(digits)
    {
        rest = before
            .rsplit_once("-v")
            .filter(|(_, v)| is_digits(v))
            .map_or(before, |(b, _)| b);
    }
    for end in ["-latest", "@latest", "@default", ":latest"] {
        rest = rest.strip_suffix(end).unwrap_or(rest);
    }
    rest = without_date(rest).unwrap_or(rest);
    (rest.len() < name.len() && !rest.is_empty()).then_some(rest)
}

/// The name without a date of the forms `20251101` and `2025-11-01` behind `-` or `@`.
fn without_date(name: &str) -> Option<&str> {
    const DASHED: usize = "2025-11-01".len();
    if let Some((before, date)) = name.rsplit_once(['-', '@'])
        && date.len() == 8
        && date.starts_with("20")
        && is_digits(date)
    {
        return Some(before);
    }
    let (before, date) = name.split_at_checked(name.len().checked_sub(DASHED)?)?;
    let mut fields = date.split('-');
    let mut field = |length| {
        fields
            .next()
            .is_some_and(|f| f.len() == length && is_digits(f))
    };
    (date.starts_with("20") && field(4) && field(2) && field(2))
        .then(|| before.strip_suffix(['-', '@']))?
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The shorter names that `name` begins with, longest first, cut only where a word of the name
/// ends: `gpt-5.4-mini-x` gives `gpt-5.4-mini` and `gpt-5.4` and `gpt`, but not `gpt-5`, because
/// another version is another model.
pub(super) fn families(name: &str) -> impl Iterator<Item = &str> {
    name.char_indices()
        .rev()
        .filter(|(at, _)| is_boundary(name, *at))
        .filter_map(|(at, _)| name.get(..at))
}

/// True if `family` equals `name` or is a prefix of it that ends at a word boundary.
pub(super) fn is_family(family: &str, name: &str) -> bool {
    name.starts_with(family) && (family.len() == name.len() || is_boundary(name, family.len()))
}

/// True if a word of the name ends at `at`.
fn is_boundary(name: &str, at: usize) -> bool {
    let mut rest = name.get(at..).unwrap_or_default().chars();
    match rest.next() {
        Some('-' | ':' | '@' | '_' | '/') => true,
        // A point before a digit is part of a version: `gpt-5` is no family of `gpt-5.4`.
        Some('.') => rest.next().is_some_and(|next| !next.is_ascii_digit()),
        _ => false,
    }
}

/// The maker's name of the model: without provider, region and vendor prefixes.
///
/// `us.anthropic.claude-opus-5-5` and `openrouter/anthropic/claude-opus-5.5` are both
/// `claude-opus-5-5`.
pub(super) fn bare(name: &str) -> String {
    let mut rest = name.rsplit('/').next().unwrap_or(name);
    while let Some((vendor, model)) = rest.split_once('.')
        && vendor.bytes().all(|byte| byte.is_ascii_alphabetic())
    {
        rest = model;
    }
    let rest = rest.to_ascii_lowercase();
    // Some resellers write Claude's versions with a point; for other models the point is part of
    // the name.
    if rest.starts_with("claude") {
        rest.replace('.', "-")
    } else {
        rest
    }
}

/// The edit distance of two names.
pub(super) fn distance(a: &str, b: &str) -> usize {
    // The usual dynamic programme with one row: a cell needs only its left, upper and diagonal
    // neighbour.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (y, cell) in b.bytes().zip(row.iter_mut().skip(1)) {
            let changed = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = changed.min(diagonal + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_packaging_come_off() {
        for (name, expected) in [
            ("claude-opus-4-5-20251101", Some("claude-opus-4-5")),
            ("claude-opus-4-5@20251101", Some("claude-opus-4-5")),
            ("gpt-5.4-2026-03-05", Some("gpt-5.4")),
            (
                "anthropic.claude-opus-4-5-20251101-v1:0",
                Some("anthropic.claude-opus-4-5"),
            ),
            ("gpt-5-chat-latest", Some("gpt-5-chat")),
            ("llama3:8b", None),
            ("gpt-4o", None),
            ("2025-11-01", None),
            ("é025-11-01", None),
        ] {
            assert_eq!(undated(name), expected, "{name}");
        }
    }

    #[test]
    fn a_family_ends_where_a_word_ends() {
        let found: Vec<&str> = families("gpt-5.4-mini-x").collect();
        assert_eq!(found, ["gpt-5.4-mini", "gpt-5.4", "gpt"]);
        assert!(is_family("claude-opus-5", "claude-opus-5-5"));
        assert!(!is_family("gpt-4", "gpt-4.5"));
        assert!(!is_family("gpt-4", "gpt-4o"));
    }

    #[test]
    fn providers_and_vendors_come_off() {
        for (name, expected) in [
            ("us.anthropic.claude-opus-5-5", "claude-opus-5-5"),
            ("openrouter/anthropic/claude-opus-5.5", "claude-opus-5-5"),
            ("gpt-5.4", "gpt-5.4"),
            ("deepinfra/Qwen/Qwen3-32B", "qwen3-32b"),
        ] {
            assert_eq!(bare(name), expected);
        }
        assert_eq!(trimmed(" claude-opus-5-5[1m] "), "claude-opus-5-5");
    }

    #[test]
    fn distance_counts_edits() {
        for (a, b, edits) in [
            ("", "abc", 3),
            ("gpt-5", "gpt-5", 0),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), edits);
        }
    }
}
