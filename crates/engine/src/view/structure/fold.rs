//! Finds runs of lines that are equal, or equal except for numbers.

use std::ops::Range;

use super::lines::TextLines;
use super::output_format::OutputFormat;

/// The similarity of the lines of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    ButForNumbers,
    Equal,
}

/// Runs shorter than this are not worth a gap line.
const SHORTEST: usize = 4;
/// Lines with fewer letters are rows of figures, not repetitions.
const LETTERS: usize = 3;

struct LineRun {
    lines: Range<usize>,
    likeness: Likeness,
}

/// The runs of a text.
pub(super) struct Folds {
    /// In order.
    runs: Vec<LineRun>,
    /// For each line, whether it is inside a run. Waves ask this for every line.
    hidden: Vec<bool>,
}

impl Folds {
    pub(super) fn of(lines: &TextLines<'_>, kind: OutputFormat) -> Self {
        let least = match kind {
            // Rows of a table, sides of a diff, source lines and hits look alike, but each differs.
            OutputFormat::Table { .. }
            | OutputFormat::Diff
            | OutputFormat::Code
            | OutputFormat::Hits => Likeness::Equal,
            OutputFormat::Json | OutputFormat::Log | OutputFormat::Plain => Likeness::ButForNumbers,
        };
        let mut runs = Vec::new();
        let mut hidden = vec![false; lines.len()];
        let (mut start, mut likeness) = (0, Likeness::Equal);
        let (mut before, mut sum_before) = ("", 0);
        for at in 0..=lines.len() {
            let line = lines.get(at);
            let sum = match least {
                Likeness::ButForNumbers => sum_but_for_digits(line),
                Likeness::Equal => 0,
            };
            // The position after the last line ends the last run. Most lines that are not alike
            // have different sums, and need not be compared.
            let may_be = at > 0 && at < lines.len() && sum == sum_before;
            let alike = may_be.then(|| alike(before, line, least)).flatten();
            (before, sum_before) = (line, sum);
            if let Some(alike) = alike {
                // A run is as alike as its least alike pair.
                likeness = likeness.min(alike);
                continue;
            }
            if at - start >= SHORTEST {
                let inside = hidden.get_mut(start + 1..at - 1);
                inside.unwrap_or_default().fill(true);
                runs.push(LineRun {
                    lines: start..at,
                    likeness,
                });
            }
            (start, likeness) = (at, Likeness::Equal);
        }
        Self { runs, hidden }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The run that contains line `at`.
    fn holding(&self, at: usize) -> Option<&LineRun> {
        let next = self.runs.partition_point(|run| run.lines.end <= at);
        self.runs.get(next).filter(|run| run.lines.contains(&at))
    }

    /// True for all lines of a run except its first and its last.
    pub(super) fn hides(&self, at: usize) -> bool {
        self.hidden.get(at) == Some(&true)
    }

    /// The similarity of all lines of `gap` to the line before it, if there is one.
    pub(super) fn likeness(&self, gap: &Range<usize>) -> Option<Likeness> {
        let before = gap.start.checked_sub(1)?;
        let run = self.holding(before)?;
        (gap.end <= run.lines.end).then_some(run.likeness)
    }
}

fn alike(a: &str, b: &str, least: Likeness) -> Option<Likeness> {
    if a == b {
        return Some(Likeness::Equal);
    }
    if least == Likeness::Equal {
        return None;
    }
    let letters = a.bytes().filter(u8::is_ascii_alphabetic);
    (is_equal_but_for_numbers(a.as_bytes(), b.as_bytes())
        && letters.take(LETTERS).count() == LETTERS)
        .then_some(Likeness::ButForNumbers)
}

/// The sum of all bytes that are not digits. Lines that are equal but for numbers have equal sums.
fn sum_but_for_digits(line: &str) -> u8 {
    // In one byte, so that many bytes are added with one instruction.
    line.bytes().fold(0, |sum: u8, byte| {
        sum.wrapping_add(if byte.is_ascii_digit() { 0 } else { byte })
    })
}

/// True if two lines are equal once each number in them is replaced by the same number.
fn is_equal_but_for_numbers(mut a: &[u8], mut b: &[u8]) -> bool {
    // Most lines of a log differ in digits at the same places. Without a branch per byte, many
    // bytes are compared with one instruction.
    let is_same = |(a, b): (&u8, &u8)| (a == b) | (a.is_ascii_digit() & b.is_ascii_digit());
    if a.len() == b.len()
        && a.iter()
            .zip(b)
            .fold(true, |same, pair| same & is_same(pair))
    {
        return true;
    }
    let digits = |bytes: &[u8]| bytes.iter().take_while(|b| b.is_ascii_digit()).count();
    loop {
        let equal = common_start(a, b);
        if equal == a.len() && equal == b.len() {
            return true;
        }
        // The lines may differ in the middle of a number. Go back to its first digit.
        let shared = a.get(..equal).unwrap_or_default().iter().rev();
        let number = equal - shared.take_while(|b| b.is_ascii_digit()).count();
        let (rest_a, rest_b) = (a.get(number..), b.get(number..));
        let (rest_a, rest_b) = (rest_a.unwrap_or_default(), rest_b.unwrap_or_default());
        let (digits_a, digits_b) = (digits(rest_a), digits(rest_b));
        if digits_a == 0 || digits_b == 0 {
            return false;
        }
        a = rest_a.get(digits_a..).unwrap_or_default();
        b = rest_b.get(digits_b..).unwrap_or_default();
    }
}

/// The number of bytes that are equal at the start of both.
fn common_start(a: &[u8], b: &[u8]) -> usize {
    // Eight bytes are compared with one instruction.
    let eights = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    let equal = 8 * eights.take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(equal..), b.get(equal..));
    let rest = a.unwrap_or_default().iter().zip(b.unwrap_or_default());
    equal + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_make_no_difference_and_words_do() {
        let alike = |a, b| alike(a, b, Likeness::ButForNumbers);
        assert_eq!(alike("tick 1", "tick 1"), Some(Likeness::Equal));
        assert_eq!(
            alike("12:01 tick 9", "12:02 tick 10"),
            Some(Likeness::ButForNumbers)
        );
        assert_eq!(
            alike("tick 9 a", "tick 10 a"),
            Some(Likeness::ButForNumbers)
        );
        assert_eq!(alike("tick 1", "tick 12"), Some(Likeness::ButForNumbers));
        assert_eq!(alike("tick 19", "tick 1"), Some(Likeness::ButForNumbers));
        assert_eq!(
            alike("at 107, tick", "at 1, tick"),
            Some(Likeness::ButForNumbers)
        );
        assert_eq!(alike("at 1", "at 1a"), None);
        assert_eq!(alike("tick 1", "tick "), None);
        assert_eq!(alike("tick 1", "tack 1"), None);
        assert_eq!(alike("1,2,3", "4,5,6"), None);
    }

    #[test]
    fn a_run_hides_all_but_its_ends() {
        let lines = TextLines::new("a\nsame\nsame\nsame\nsame\nz");
        let folds = Folds::of(&lines, OutputFormat::Plain);
        let hidden: Vec<usize> = (0..6).filter(|at| folds.hides(*at)).collect();
        assert_eq!(hidden, [2, 3]);
        assert_eq!(folds.likeness(&(2..4)), Some(Likeness::Equal));
        assert_eq!(folds.likeness(&(1..4)), None);
    }
}
