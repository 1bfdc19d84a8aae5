//! Places the labels of a plot so that they cover neither each other nor the points.

use super::svg::WIDTH;

/// The usual width of a letter, and the height of a line, on a phone: there the letters are larger
/// in proportion to the plot.
const LETTER: f64 = 8.6;
const LINE: f64 = 18.0;
/// The distance of a label's middle from its point, and half the size of a point.
const GAP: f64 = 16.0;
const POINT: f64 = 6.0;
/// How many lines a label may be away from its point.
const MOST_LINES: u32 = 8;

/// A rectangle: its middle, and half its width and height.
#[derive(Clone, Copy, Debug)]
struct Area {
    middle: (f64, f64),
    half: (f64, f64),
}

impl Area {
    fn overlaps(&self, other: &Self) -> bool {
        (self.middle.0 - other.middle.0).abs() < self.half.0 + other.half.0
            && (self.middle.1 - other.middle.1).abs() < self.half.1 + other.half.1
    }

    fn fits(&self) -> bool {
        self.middle.0 - self.half.0 >= 0.0
            && self.middle.0 + self.half.0 <= WIDTH
            && self.middle.1 - self.half.1 >= 0.0
    }
}

/// The areas that are taken.
pub(super) struct PlotLabels {
    taken: Vec<Area>,
}

impl PlotLabels {
    /// A plot with these points.
    pub(super) fn around(points: impl Iterator<Item = (f64, f64)>) -> Self {
        let half = (POINT, POINT);
        let taken = points.map(|middle| Area { middle, half }).collect();
        Self { taken }
    }

    /// The place of the label of a point: the middle of its baseline.
    pub(super) fn place(&mut self, name: &str, point: (f64, f64)) -> (f64, f64) {
        let half = (name.chars().count() as f64 * LETTER / 2.0, LINE / 2.0);
        let area = |(x, y): (f64, f64)| Area {
            middle: (point.0 + x, point.1 + y),
            half,
        };
        let mut free = candidates(half.0)
            .map(area)
            .filter(|area| area.fits() && !self.taken.iter().any(|taken| taken.overlaps(area)));
        // If everything is taken, the usual place must do.
        let found = free.next().unwrap_or_else(|| area((0.0, -GAP)));
        self.taken.push(found);
        // Letters stand on the baseline, a bit below their middle.
        (found.middle.0, found.middle.1 + LINE / 3.0)
    }
}

/// Places around a point, the best first: above, below, beside, and then further away.
fn candidates(half_width: f64) -> impl Iterator<Item = (f64, f64)> {
    let beside = half_width + GAP / 2.0 + 2.0;
    (0..MOST_LINES).flat_map(move |lines| {
        let away = GAP + f64::from(lines) * LINE;
        let level = f64::from(lines) * LINE;
        [
            (0.0, -away),
            (0.0, away),
            (beside, -level),
            (-beside, -level),
            (beside, level),
            (-beside, level),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_near_points_do_not_overlap() {
        let names = [
            "oracle",
            "steady",
            "drop-oldest",
            "refs",
            "archive",
            "turns",
        ];
        let points = [0.0, 8.0, 15.0, 30.0, 31.0, 33.0].map(|x| (200.0 + x, 60.0 - x / 4.0));
        let mut labels = PlotLabels::around(points.into_iter());
        for (name, point) in names.iter().zip(points) {
            labels.place(name, point);
        }
        for (at, one) in labels.taken.iter().enumerate().skip(points.len()) {
            let others = labels
                .taken
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at);
            let covered = others.filter(|(_, other)| one.overlaps(other));
            assert_eq!(covered.count(), 0, "{at}: {one:?}");
            assert!(one.fits(), "{one:?}");
        }
    }
}
