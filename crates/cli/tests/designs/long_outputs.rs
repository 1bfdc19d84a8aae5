//! Outputs of a long session: of many sizes and forms, none like another.

use std::fmt::Write as _;

const KB: usize = 1 << 10;
const MB: usize = 1 << 20;

/// How long a session is, and in how large a window.
#[derive(Clone, Copy)]
pub(crate) struct Length {
    pub(crate) rounds: usize,
    pub(crate) window: u64,
    /// Turns at the end of a chat, in which the model only reads.
    pub(crate) reading_turns: usize,
    /// The size of most outputs is between these, evenly over their orders of magnitude.
    usual: (usize, usize),
    /// Every so many rounds an output has this size.
    large: &'static [(usize, usize)],
}

/// Some seconds: what plain test runs have time for.
const SHORT: Length = Length {
    rounds: 20,
    window: 24_000,
    reading_turns: 100,
    usual: (KB, 16 * KB),
    large: &[(13, 200 * KB)],
};

/// Some minutes for each preset. The largest output comes late, because a client sends it again
/// with every request from then on.
const LONG: Length = Length {
    rounds: 500,
    window: 64_000,
    // A preset that shows little of each page needs many.
    reading_turns: 600,
    usual: (KB, 64 * KB),
    large: &[(397, 10 * MB), (89, MB)],
};

impl Length {
    /// The long form in a long run, else the short one.
    pub(crate) fn wanted() -> Self {
        if trimtab_testkit::is_long() {
            LONG
        } else {
            SHORT
        }
    }

    /// All outputs, oldest first.
    pub(crate) fn outputs(&self) -> Vec<String> {
        (0..self.rounds)
            .map(|number| output(number, self.size(number)))
            .collect()
    }

    fn size(&self, number: usize) -> usize {
        let mut large = self.large.iter();
        if let Some((_, size)) = large.find(|(every, _)| number % every == every - 1) {
            return *size;
        }
        // Steps through the range in an order that repeats late.
        let (low, high) = self.usual;
        let orders = (high / low).ilog2() as usize;
        let base = low << (number * 37 % 101 * orders / 101);
        base + base * (number * 61 % 97) / 97
    }
}

/// What only one output says, at its beginning.
pub(crate) fn first_words(number: usize) -> String {
    format!("OUTPUT-{number:04} begins")
}

fn output(number: usize, bytes: usize) -> String {
    let (first, last) = (first_words(number), format!("OUTPUT-{number:04} ends"));
    if number % 5 == 4 && bytes < 2 * MB {
        let items = filled(bytes, |at| format!("{{\"at\":{at},\"of\":{number}}},"));
        return format!("{{\"first\":\"{first}\",\"items\":[{items}0],\"last\":\"{last}\"}}");
    }
    let line = |at: usize| match number % 5 {
        1 => format!("{at} größer als {number}: 漢字 ✓ Ωμέγα\n"),
        2 => format!("row {at} of {number}\r\n"),
        3 => format!("{at}\t{}\n", at.wrapping_mul(7_919 + number) % 99_991),
        _ => format!("worker{number} took {} ms in step {at}\n", at * 31 % 1_009),
    };
    let lines = filled(bytes, line);
    // One in two ends with the end of a line.
    let end = if number.is_multiple_of(2) { "\n" } else { "" };
    format!("{first}\n{lines}{last}{end}")
}

/// Pieces one after the other until they have so many bytes.
fn filled(bytes: usize, piece: impl Fn(usize) -> String) -> String {
    let mut text = String::with_capacity(bytes + KB);
    let mut at = 0;
    while text.len() < bytes {
        let _ = write!(text, "{}", piece(at));
        at += 1;
    }
    text
}
