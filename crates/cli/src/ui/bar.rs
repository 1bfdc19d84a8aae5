//! A bar chart of how something is filled: colours on a terminal, letters elsewhere.

use std::fmt::Write;

use super::style::TextStyle;

/// The default width of a bar.
pub const WIDTH: usize = 72;

/// One segment of the bar.
#[derive(Clone, Copy, Debug)]
pub struct BarSegment {
    /// The name of the segment.
    pub name: &'static str,
    /// Its letter without colour.
    pub letter: char,
    /// Its colour.
    pub style: TextStyle,
    /// Its size.
    pub amount: u64,
}

impl From<(&'static str, char, TextStyle, u64)> for BarSegment {
    fn from((name, letter, style, amount): (&'static str, char, TextStyle, u64)) -> Self {
        Self {
            name,
            letter,
            style,
            amount,
        }
    }
}

/// Renders the bar in `WIDTH` characters. Every non-empty segment is visible.
pub fn render(segments: &[BarSegment], colour: bool) -> String {
    render_in(segments, colour, WIDTH)
}

/// Renders the bar in `whole` characters, not counting the brackets around letters.
pub fn render_in(segments: &[BarSegment], colour: bool, whole: usize) -> String {
    let mut bar = String::new();
    let shown = segments.iter().zip(widths(segments, whole));
    for (segment, width) in shown.filter(|&(_, width)| width > 0) {
        let letter = match (colour, segment.letter) {
            (true, '.') => '\u{2591}',
            (true, _) => '\u{2588}',
            (false, letter) => letter,
        };
        let stretch: String = std::iter::repeat_n(letter, width).collect();
        let style = segment.style;
        let _ = write!(bar, "{style}{stretch}{style:#}");
    }
    if colour { bar } else { format!("[{bar}]") }
}

/// The width of each segment: proportional, at least one, `whole` in total.
fn widths(segments: &[BarSegment], whole: usize) -> Vec<usize> {
    let total: u64 = segments.iter().map(|segment| segment.amount).sum();
    let exact = |amount: u64| amount as f64 * whole as f64 / total.max(1) as f64;
    let mut widths: Vec<usize> = segments
        .iter()
        .map(|segment| match segment.amount {
            0 => 0,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between 0 and the whole"
            )]
            amount => (exact(amount).floor() as usize).max(1),
        })
        .collect();
    // Rounding and the minimum of one leave a difference. Change single columns where the error is
    // largest.
    while widths.iter().sum::<usize>() != whole && total > 0 {
        let short = widths.iter().sum::<usize>() < whole;
        let off = |at: usize, width: usize| {
            let fair = exact(segments.get(at).map_or(0, |segment| segment.amount));
            fair - width as f64
        };
        let candidates = widths.iter().copied().enumerate();
        let candidates = candidates.filter(|&(_, width)| width > usize::from(!short));
        let order =
            |a: &(usize, usize), b: &(usize, usize)| off(a.0, a.1).total_cmp(&off(b.0, b.1));
        let found = if short {
            candidates.max_by(order)
        } else {
            candidates.min_by(order)
        };
        let Some(width) = found.and_then(|(at, _)| widths.get_mut(at)) else {
            break;
        };
        if short {
            *width += 1;
        } else {
            *width -= 1;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(amounts: &[u64]) -> Vec<BarSegment> {
        let letters = ['a', 'b', 'c', 'd', '.'];
        let named = amounts.iter().zip(letters);
        named
            .map(|(&amount, letter)| BarSegment {
                name: "x",
                letter,
                style: TextStyle::Plain,
                amount,
            })
            .collect()
    }

    #[test]
    fn bar_has_a_constant_width() {
        for amounts in [
            vec![1],
            vec![1, 1_000_000],
            vec![3, 3, 3],
            vec![1, 1, 1, 1, 999_999_999],
            vec![0, 7, 0, 5],
            vec![u64::MAX / 4, u64::MAX / 4, 1],
        ] {
            let bar = render(&segments(&amounts), false);
            assert_eq!(bar.chars().count(), WIDTH + 2, "{amounts:?}: {bar}");
        }
    }

    #[test]
    fn bar_respects_the_requested_width() {
        let bar = render_in(&segments(&[1, 1, 1, 1, 96]), false, 30);
        assert_eq!(bar.chars().count(), 32, "{bar}");
    }

    #[test]
    fn only_non_empty_segments_are_visible() {
        let bar = render(&segments(&[1, 0, 1_000_000]), false);
        assert!(bar.starts_with("[ac") && !bar.contains('b'), "{bar}");
    }

    #[test]
    fn empty_segments_give_an_empty_bar() {
        assert_eq!(render(&segments(&[0, 0]), false), "[]");
    }
}
