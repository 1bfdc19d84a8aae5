//! Runs of lines that are equal, or equal but for numbers.

use std::ops::Range;

use super::kind::Kind;
use super::lines::Lines;

/// How the lines of a run are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    ButForNumbers,
    Equal,
}

/// Runs shorter than this are not worth a gap line.
const SHORTEST: usize = 4;
/// Lines with fewer letters are rows of figures, not repetitions.
const LETTERS: usize = 3;

struct Run {
    lines: Range<usize>,
    likeness: Likeness,
}

/// The runs of a text, in order.
pub(super) struct Folds(Vec<Run>);

impl Folds {
    pub(super) fn of(lines: &Lines<'_>, kind: Kind) -> Self {
        let least = match kind {
            // Rows of a table, and the two sides of a diff, are alike and all different.
            Kind::Table { .. } | Kind::Diff => Likeness::Equal,
            Kind::Json | Kind::Log | Kind::Plain => Likeness::ButForNumbers,
        };
        let mut runs = Vec::new();
        let (mut start, mut likeness) = (0, Likeness::Equal);
        let mut before = lines.get(0);
        for at in 1..=lines.len() {
            let line = lines.get(at);
            let alike = alike(before, line).filter(|alike| at < lines.len() && *alike >= least);
            before = line;
            if let Some(alike) = alike {
                likeness = likeness.min(alike);
                continue;
            }
            if at - start >= SHORTEST {
                runs.push(Run {
                    lines: start..at,
                    likeness,
                });
            }
            (start, likeness) = (at, Likeness::Equal);
        }
        Self(runs)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The run that holds line `at`.
    fn holding(&self, at: usize) -> Option<&Run> {
        let next = self.0.partition_point(|run| run.lines.end <= at);
        self.0.get(next).filter(|run| run.lines.contains(&at))
    }

    /// True for all lines of a run but its first and its last.
    pub(super) fn hides(&self, at: usize) -> bool {
        self.holding(at)
            .is_some_and(|run| at > run.lines.start && at + 1 < run.lines.end)
    }

    /// How all lines of `gap` are like the line before it, if they are.
    pub(super) fn likeness(&self, gap: &Range<usize>) -> Option<Likeness> {
        let before = gap.start.checked_sub(1)?;
        let run = self.holding(before)?;
        (gap.end <= run.lines.end).then_some(run.likeness)
    }
}

fn alike(a: &str, b: &str) -> Option<Likeness> {
    if a == b {
        return Some(Likeness::Equal);
    }
    let (mut a, mut b) = (a.bytes().peekable(), b.bytes().peekable());
    let mut letters = 0;
    loop {
        let (x, y) = (a.next(), b.next());
        match (x, y) {
            (None, None) => return (letters >= LETTERS).then_some(Likeness::ButForNumbers),
            (Some(x), Some(y)) if x.is_ascii_digit() && y.is_ascii_digit() => {
                while a.next_if(u8::is_ascii_digit).is_some() {}
                while b.next_if(u8::is_ascii_digit).is_some() {}
            }
            (Some(x), Some(y)) if x == y => letters += usize::from(x.is_ascii_alphabetic()),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_make_no_difference_and_words_do() {
        assert_eq!(alike("tick 1", "tick 1"), Some(Likeness::Equal));
        assert_eq!(
            alike("12:01 tick 9", "12:02 tick 10"),
            Some(Likeness::ButForNumbers)
        );
        assert_eq!(alike("tick 1", "tack 1"), None);
        assert_eq!(alike("1,2,3", "4,5,6"), None);
    }

    #[test]
    fn a_run_hides_all_but_its_ends() {
        let lines = Lines::new("a\nsame\nsame\nsame\nsame\nz");
        let folds = Folds::of(&lines, Kind::Plain);
        let hidden: Vec<usize> = (0..6).filter(|at| folds.hides(*at)).collect();
        assert_eq!(hidden, [2, 3]);
        assert_eq!(folds.likeness(&(2..4)), Some(Likeness::Equal));
        assert_eq!(folds.likeness(&(1..4)), None);
    }
}
