//! The lines of a text, and how alike they are.

use std::ops::Range;

use trimtab_model::work;

/// Lines with fewer letters are rows of figures, not repetitions.
const LETTERS: usize = 3;

/// The likeness of a line to the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    Different,
    ButForNumbers,
    Equal,
}

/// The lines of a text.
pub(super) struct TextLines<'a> {
    text: &'a str,
    /// The start of each line, and the end of the text.
    starts: Vec<usize>,
    /// The likeness of each line to the one before it.
    alike: Vec<Likeness>,
}

impl<'a> TextLines<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        work::step_text(text);
        let mut starts = vec![0];
        let mut alike = Vec::new();
        let mut before = None;
        for line in text.split_inclusive('\n') {
            starts.push(starts.last().map_or(0, |start| start + line.len()));
            alike.push(before.map_or(Likeness::Different, |before| likeness(before, line)));
            before = Some(line);
        }
        Self {
            text,
            starts,
            alike,
        }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn len(&self) -> usize {
        self.alike.len()
    }

    /// The text of some lines, with their newlines.
    pub(super) fn text_of(&self, lines: Range<usize>) -> &'a str {
        let bounds = self.starts.get(lines.start).zip(self.starts.get(lines.end));
        bounds
            .and_then(|(&from, &to)| self.text.get(from..to))
            .unwrap_or_default()
    }

    /// The numbers of the lines in these ranges of bytes.
    pub(super) fn numbers_of(&self, ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
        let number = |byte: usize| self.starts.partition_point(|start| *start < byte);
        let lines = ranges.into_iter();
        lines
            .map(|bytes| number(bytes.start)..number(bytes.end))
            .collect()
    }

    /// True for a line between two that are like it.
    pub(super) fn is_repeated(&self, at: usize) -> bool {
        let alike = |at: usize| self.likeness_of(at..at + 1) > Likeness::Different;
        alike(at) && alike(at + 1)
    }

    /// The likeness of all these lines to the line before them.
    pub(super) fn likeness_of(&self, lines: Range<usize>) -> Likeness {
        let alike = self.alike.get(lines).unwrap_or_default().iter().min();
        alike.copied().unwrap_or(Likeness::Different)
    }

    /// True if some line is like the one before it.
    pub(super) fn has_repetitions(&self) -> bool {
        self.alike.iter().any(|alike| *alike > Likeness::Different)
    }
}

fn likeness(before: &str, line: &str) -> Likeness {
    if before == line {
        return Likeness::Equal;
    }
    // Most lines of a log have their digits at the same places. Without a branch per byte, many
    // bytes are compared with one instruction.
    let pairs = before.bytes().zip(line.bytes());
    let is_same = |(a, b): (u8, u8)| (a == b) | (a.is_ascii_digit() & b.is_ascii_digit());
    let in_place =
        before.len() == line.len() && pairs.fold(true, |same, pair| same & is_same(pair));
    let letters = line.bytes().filter(u8::is_ascii_alphabetic);
    if (in_place || but_for_numbers(before).eq(but_for_numbers(line)))
        && letters.take(LETTERS).count() == LETTERS
    {
        Likeness::ButForNumbers
    } else {
        Likeness::Different
    }
}

/// The bytes of a line, with the same digit for every number.
fn but_for_numbers(line: &str) -> impl Iterator<Item = u8> {
    let mut in_number = false;
    line.bytes().filter_map(move |byte| {
        let continues = in_number && byte.is_ascii_digit();
        in_number = byte.is_ascii_digit();
        (!continues).then_some(if in_number { b'0' } else { byte })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_make_no_difference_and_words_do() {
        let numbers = [
            ("12:01 tick 9", "12:02 tick 10"),
            ("tick 9 a", "tick 10 a"),
            ("tick 19", "tick 1"),
            ("at 107, tick", "at 1, tick"),
        ];
        for (a, b) in numbers {
            assert_eq!(likeness(a, b), Likeness::ButForNumbers, "{a} {b}");
        }
        let words = [
            ("at 1", "at 1a"),
            ("tick 1", "tick "),
            ("tick 1", "tack 1"),
            ("1,2,3", "4,5,6"),
        ];
        for (a, b) in words {
            assert_eq!(likeness(a, b), Likeness::Different, "{a} {b}");
        }
        assert_eq!(likeness("tick 1", "tick 1"), Likeness::Equal);
    }

    #[test]
    fn a_run_repeats_all_but_its_ends() {
        let lines = TextLines::new("a\nsame\nsame\nsame\nsame\nz");
        let repeated: Vec<usize> = (0..6).filter(|at| lines.is_repeated(*at)).collect();
        assert_eq!(repeated, [2, 3]);
        assert_eq!(lines.likeness_of(2..4), Likeness::Equal);
        assert_eq!(lines.likeness_of(1..4), Likeness::Different);
    }
}
