//! Plots as SVG, without scripts. Colours are variables of the page.

use std::fmt::Write;

use crate::picture::{escaped, ticks};

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 52.0;
const BOTTOM: f64 = 40.0;
const TOP: f64 = 12.0;
const RIGHT: f64 = 16.0;
/// The number of colours. Further series start again with the first.
pub const COLOURS: usize = 8;

/// The colour of a series by its number, as CSS.
pub fn colour(number: usize) -> String {
    format!("var(--c{})", number % COLOURS)
}

/// The points of a line.
pub type PlotLine = Vec<(f64, f64)>;

/// The labels and limits of a plot.
pub struct PlotAxes<'a> {
    /// A description for screen readers.
    pub title: &'a str,
    /// The label of the horizontal axis.
    pub x: &'a str,
    /// The label of the vertical axis.
    pub y: &'a str,
    /// The upper end of the vertical axis. Higher points are not shown.
    pub top: f64,
    /// A horizontal line with its label.
    pub mark: Option<(f64, &'a str)>,
}

struct PlotFrame {
    x: f64,
    y: f64,
}

impl PlotFrame {
    fn new(series: &[PlotLine], top: f64) -> Self {
        let x = series.iter().flatten().map(|point| point.0);
        Self {
            x: x.fold(f64::MIN_POSITIVE, f64::max) * 1.05,
            y: top.max(f64::MIN_POSITIVE),
        }
    }

    fn place(&self, point: (f64, f64)) -> (f64, f64) {
        let (across, up) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let x = LEFT + point.0 / self.x * across;
        let y = HEIGHT - BOTTOM - point.1 / self.y * up;
        (x, y)
    }
}

/// Lines over calls.
pub fn lines(series: &[PlotLine], axes: &PlotAxes<'_>) -> String {
    let frame = PlotFrame::new(series, axes.top);
    let mut svg = begin(&frame, axes);
    for (number, one) in series.iter().enumerate() {
        let mut path = String::new();
        // Without management, lines leave the plot at its upper end.
        let shown = one.iter().filter(|point| point.1 <= frame.y);
        for (x, y) in shown.map(|point| frame.place(*point)) {
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        let _ = write!(
            svg,
            "<polyline style=\"stroke:{}\" points=\"{path}\"/>",
            colour(number)
        );
    }
    svg.push_str("</svg>");
    svg
}

fn begin(frame: &PlotFrame, axes: &PlotAxes<'_>) -> String {
    let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
    let mut svg = format!(
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
        escaped(axes.title),
    );
    for value in ticks(frame.y) {
        let (_, y) = frame.place((0.0, value));
        let _ = write!(
            svg,
            "<line class=\"grid\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            figure(value),
        );
    }
    for value in ticks(frame.x) {
        let (x, _) = frame.place((value, 0.0));
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            floor + 16.0,
            figure(value),
        );
    }
    labels(&mut svg, axes);
    if let Some((value, name)) = axes.mark {
        let (_, y) = frame.place((0.0, value));
        let _ = write!(
            svg,
            "<line class=\"mark\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
             <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y - 4.0,
            escaped(name),
        );
    }
    svg
}

fn labels(svg: &mut String, axes: &PlotAxes<'_>) {
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>\
         <text x=\"11\" y=\"{middle:.1}\" text-anchor=\"middle\" \
         transform=\"rotate(-90 11 {middle:.1})\">{}</text>",
        LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
        HEIGHT - 6.0,
        escaped(axes.x),
        escaped(axes.y),
        middle = TOP + (HEIGHT - TOP - BOTTOM) / 2.0,
    );
}

fn figure(value: f64) -> String {
    let rounded = |value: f64| {
        let text = format!("{value:.2}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    if value >= 1_000_000.0 {
        format!("{}M", rounded(value / 1_000_000.0))
    } else if value >= 1_000.0 {
        format!("{}k", rounded(value / 1_000.0))
    } else {
        rounded(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_an_axis_are_short() {
        let shown = |end: f64| ticks(end).into_iter().map(figure).collect::<Vec<_>>();
        assert_eq!(shown(1.05), ["0", "0.25", "0.5", "0.75", "1"]);
        assert_eq!(shown(80_000.0), ["0", "20k", "40k", "60k", "80k"]);
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let axes = PlotAxes {
            title: "\"<script>",
            x: "<",
            y: "&",
            top: 2.0,
            mark: Some((1.0, "<b>")),
        };
        let svg = lines(&[vec![(1.0, 1.0)]], &axes);
        assert!(!svg.contains("<script") && !svg.contains("<b>"), "{svg}");
    }
}
