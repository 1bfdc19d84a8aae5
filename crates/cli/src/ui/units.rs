//! Formats and parses sizes and ages.

use std::time::Duration;

const SIZES: [(&str, u64); 12] = [
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

const AGES: [(&str, u64); 5] = [
    ("s", 1),
    ("m", 60),
    ("h", 60 * 60),
    ("d", 24 * 60 * 60),
    ("w", 7 * 24 * 60 * 60),
];

/// A size with its unit, in powers of 1,024.
///
/// ```
/// use trimtab_cli::ui::units::size;
/// assert_eq!([size(0), size(1_023), size(1_536), size(1 << 30)], ["0 B", "1023 B", "1.5 KiB", "1.0 GiB"]);
/// ```
pub fn size(bytes: u64) -> String {
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut units = ["KiB", "MiB", "GiB", "TiB"].into_iter().peekable();
    let mut unit = units.next().unwrap_or_default();
    // Compare with the rounded figure, so that 1024.0 KiB never appears.
    while scaled >= 1023.95 && units.peek().is_some() {
        scaled /= 1024.0;
        unit = units.next().unwrap_or_default();
    }
    let digits = usize::from(scaled < 99.95);
    format!("{scaled:.digits$} {unit}")
}

/// An age in its largest unit.
///
/// ```
/// use trimtab_cli::ui::units::age;
/// assert_eq!([age(59_999), age(60_000), age(100 * 3_600_000)], ["59s", "1m", "4d"]);
/// ```
pub fn age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1_000;
    let unit = AGES.iter().rev().find(|(name, unit)| {
        // Weeks are accepted as input only: 17d is more precise than 2w.
        *name != "w" && seconds >= *unit
    });
    let (name, unit) = unit.unwrap_or(&("s", 1));
    format!("{}{name}", seconds / unit)
}

/// Parses a size: `500MB`, `2GiB`, `1.5g`, `4096`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    parse(text, &SIZES, 1).ok_or_else(|| format!("{text:?} is not a size, such as 500MB or 2GiB"))
}

/// Parses a time span: `90s`, `45m`, `12h`, `7d`, `2w`.
pub fn parse_age(text: &str) -> Result<Duration, String> {
    let seconds = parse(text, &AGES, 0);
    let seconds =
        seconds.ok_or_else(|| format!("{text:?} is not a time span, such as 45m, 12h or 7d"))?;
    Ok(Duration::from_secs(seconds))
}

/// Parses a number with a unit. `bare` is the unit of a number without one, or 0 if a unit is
/// required.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative and small enough was checked"
)]
fn parse(text: &str, units: &[(&str, u64)], bare: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at_checked(end)?;
    let number: f64 = number.replace('_', "").parse().ok()?;
    let unit = match unit.trim() {
        "" => bare,
        name => units.iter().find(|(known, _)| *known == name)?.1,
    };
    let value = number * unit as f64;
    (unit > 0 && (0.0..9e18).contains(&value)).then_some(value as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_parse_in_all_spellings() {
        for (text, expected) in [
            ("0", Some(0)),
            ("4096", Some(4_096)),
            ("2GiB", Some(2 << 30)),
            ("2 gib", Some(2 << 30)),
            ("1.5M", Some(3 << 19)),
            ("500MB", Some(500_000_000)),
            ("", None),
            ("GiB", None),
            ("-1", None),
            ("2 parsecs", None),
            ("99999999TB", None),
        ] {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn ages_need_a_unit() {
        let seconds = |text| parse_age(text).ok().map(|age| age.as_secs());
        assert_eq!(seconds("7d"), Some(604_800));
        assert_eq!(seconds("1.5h"), Some(5_400));
        assert_eq!(seconds("0s"), Some(0));
        assert_eq!(seconds("7"), None);
        assert_eq!(seconds("7 fortnights"), None);
    }
}
