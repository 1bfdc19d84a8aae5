//! Formats and parses figures.

pub use trimtab_engine::view::grouped;

/// At most three digits, with a letter for the magnitude.
///
/// ```
/// use trimtab_cli::ui::number::short;
/// assert_eq!([short(999), short(1_240), short(38_249), short(2_000_000)], ["999", "1.2k", "38k", "2.0M"]);
/// ```
pub fn short(number: u64) -> String {
    let (unit, letter) = match number {
        0..1_000 => return number.to_string(),
        // From 999,500 on, thousands would be rounded to 1000k.
        1_000..999_500 => (1_000.0, 'k'),
        _ => (1_000_000.0, 'M'),
    };
    let scaled = number as f64 / unit;
    // From 9.95 on, one decimal would be rounded to 10.0.
    if scaled < 9.95 {
        format!("{scaled:.1}{letter}")
    } else {
        format!("{scaled:.0}{letter}")
    }
}

/// A share in percent.
///
/// ```
/// use trimtab_cli::ui::number::percent;
/// assert_eq!([percent(1, 3), percent(1, 1000), percent(0, 0)], ["33 %", "<1 %", "0 %"]);
/// ```
pub fn percent(part: u64, whole: u64) -> String {
    if part == 0 || whole == 0 {
        return "0 %".to_owned();
    }
    let share = part as f64 / whole as f64 * 100.0;
    if share < 0.5 {
        "<1 %".to_owned()
    } else {
        format!("{share:.0} %")
    }
}

/// `1 call`, `2 calls`.
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(number as u64))
}

/// Parses a number of tokens: `200000`, `200_000`, `200k`, `1M`.
pub fn parse_tokens(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of tokens, such as 200000 or 200k");
    let plain = text.replace(['_', ','], "");
    let (digits, unit) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1_000),
        None => match plain.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1_000_000),
            None => (plain.as_str(), 1),
        },
    };
    let number: u64 = digits.parse().map_err(|_| wrong())?;
    number
        .checked_mul(unit)
        .filter(|&tokens| tokens > 0)
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_counts_parse_in_all_spellings() {
        let read: Vec<_> = [
            "200000",
            "200_000",
            "200k",
            "1M",
            "0",
            "-1",
            "x",
            "99999999999999M",
        ]
        .map(|text| parse_tokens(text).ok())
        .into();
        let expected = [
            Some(200_000),
            Some(200_000),
            Some(200_000),
            Some(1_000_000),
            None,
            None,
            None,
            None,
        ];
        assert_eq!(read, expected);
    }
}
